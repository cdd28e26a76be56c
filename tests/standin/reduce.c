// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reductions over NCCL's data types on host memory: out = a op b, and what ncclAvg does at the end.
 */
#include <string.h>
#include "internal.h"

size_t type_size(int type)
{
	static const size_t sizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

	return type >= 0 && type < ncclNumTypes ? sizes[type] : 0;
}

/* ---- 16-bit floats go through float ---- */

static float bf16_get(uint16_t v)
{
	uint32_t u = (uint32_t)v << 16;
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static uint16_t bf16_put(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	if ((u & 0x7fffffff) > 0x7f800000)
		return 0x7fff;
	return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

static float f16_get(uint16_t v)
{
	uint32_t sign = (uint32_t)(v & 0x8000) << 16, exp = v >> 10 & 31, man = v & 0x3ff, u;
	float f;

	if (!exp) { /* zero and subnormals: man * 2^-24 */
		f = man * 5.9604644775390625e-08f;
		return sign ? -f : f;
	}
	u = sign | (exp == 31 ? 0x7f800000 : (exp + 112) << 23) | man << 13;
	memcpy(&f, &u, sizeof(f));
	return f;
}

static uint16_t f16_put(float f)
{
	uint32_t u, sign, man;
	int exp, shift;

	memcpy(&u, &f, sizeof(u));
	sign = u >> 16 & 0x8000;
	exp = (int)(u >> 23 & 0xff) - 112;
	man = u & 0x7fffff;
	if (exp >= 31)
		return sign | (exp == 143 && man ? 0x7e00 : 0x7c00);
	if (exp < -10)
		return sign;
	if (exp <= 0) {
		man |= 0x800000;
		shift = 14 - exp;
		return sign | ((man + (1u << (shift - 1)) - 1 + (man >> shift & 1)) >> shift);
	}
	man = (uint32_t)exp << 23 | man;
	return sign | ((man + 0xfff + (man >> 13 & 1)) >> 13);
}

#define LOOP(T, GET, PUT, EXPR)                                                                    \
	for (i = 0; i < n; i++) {                                                                  \
		const T x = GET(pa[i]), y = GET(pb[i]);                                            \
		po[i] = PUT(EXPR);                                                                 \
	}
#define SAME(x) (x)
#define REDUCE(NAME, S, T, GET, PUT)                                                               \
	static void NAME(void *out, const void *a, const void *b, size_t n, int op)                \
	{                                                                                          \
		const S *pa = a, *pb = b;                                                          \
		S *po = out;                                                                       \
		size_t i;                                                                          \
                                                                                                   \
		if (op == ncclProd)                                                                \
			LOOP(T, GET, PUT, x *y)                                                    \
		else if (op == ncclMax)                                                            \
			LOOP(T, GET, PUT, x > y ? x : y)                                           \
		else if (op == ncclMin)                                                            \
			LOOP(T, GET, PUT, x < y ? x : y)                                           \
		else                                                                               \
			LOOP(T, GET, PUT, x + y)                                                   \
	}

REDUCE(red_i8, int8_t, int8_t, SAME, SAME)
REDUCE(red_u8, uint8_t, uint8_t, SAME, SAME)
REDUCE(red_u32, uint32_t, uint32_t, SAME, SAME)
REDUCE(red_u64, uint64_t, uint64_t, SAME, SAME)
REDUCE(red_f16, uint16_t, float, f16_get, f16_put)
REDUCE(red_f32, float, float, SAME, SAME)
REDUCE(red_f64, double, double, SAME, SAME)
REDUCE(red_bf16, uint16_t, float, bf16_get, bf16_put)

/* Signed sums and products wrap like the GPU's, so they are done unsigned. */
#define REDUCE_SIGNED(NAME, S, U, UNSIGNED)                                                        \
	static void NAME(void *out, const void *a, const void *b, size_t n, int op)                \
	{                                                                                          \
		const S *pa = a, *pb = b;                                                          \
		S *po = out;                                                                       \
		size_t i;                                                                          \
                                                                                                   \
		if (op == ncclMax)                                                                 \
			LOOP(S, SAME, SAME, x > y ? x : y)                                         \
		else if (op == ncclMin)                                                            \
			LOOP(S, SAME, SAME, x < y ? x : y)                                         \
		else                                                                               \
			UNSIGNED(out, a, b, n, op);                                                \
	}
REDUCE_SIGNED(red_i32, int32_t, uint32_t, red_u32)
REDUCE_SIGNED(red_i64, int64_t, uint64_t, red_u64)

void reduce2(void *out, const void *a, const void *b, size_t n, int type, int op)
{
	static void (*const fn[ncclNumTypes])(void *, const void *, const void *, size_t, int) = {
		red_i8,	 red_u8,  red_i32, red_u32, red_i64,
		red_u64, red_f16, red_f32, red_f64, red_bf16,
	};

	fn[type](out, a, b, n, op);
}

#define DIVIDE(S, T, GET, PUT)                                                                     \
	do {                                                                                       \
		S *p = buf;                                                                        \
		for (i = 0; i < n; i++)                                                            \
			p[i] = PUT(GET(p[i]) / (T)nranks);                                         \
	} while (0)

void reduce_post(void *buf, size_t n, int type, int op, int nranks)
{
	size_t i;

	if (op != ncclAvg)
		return;
	switch (type) {
	case ncclInt8:
		DIVIDE(int8_t, int, SAME, SAME);
		break;
	case ncclUint8:
		DIVIDE(uint8_t, int, SAME, SAME);
		break;
	case ncclInt32:
		DIVIDE(int32_t, int32_t, SAME, SAME);
		break;
	case ncclUint32:
		DIVIDE(uint32_t, uint32_t, SAME, SAME);
		break;
	case ncclInt64:
		DIVIDE(int64_t, int64_t, SAME, SAME);
		break;
	case ncclUint64:
		DIVIDE(uint64_t, uint64_t, SAME, SAME);
		break;
	case ncclFloat16:
		DIVIDE(uint16_t, float, f16_get, f16_put);
		break;
	case ncclFloat32:
		DIVIDE(float, float, SAME, SAME);
		break;
	case ncclFloat64:
		DIVIDE(double, double, SAME, SAME);
		break;
	case ncclBfloat16:
		DIVIDE(uint16_t, float, bf16_get, bf16_put);
		break;
	}
}
