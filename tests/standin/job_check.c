// SPDX-License-Identifier: BSD-2-Clause
/*
 * What goes into a collective and what has to come out. Values are small whole numbers, so that a
 * sum is exact in every type; the expectation is computed here, not by the library under test.
 */
#include <math.h>
#include <string.h>
#include "job.h"

size_t job_type_size(ncclDataType_t type)
{
	switch ((int)type) {
	case ncclInt8:
	case ncclUint8:
		return 1;
	case ncclFloat16:
	case ncclBfloat16:
		return 2;
	case ncclInt64:
	case ncclUint64:
	case ncclFloat64:
		return 8;
	default:
		return 4;
	}
}

size_t job_send_count(const struct job_call *c)
{
	if (c->op == JOB_REDUCESCATTER || c->op == JOB_ALLTOALL)
		return c->count * c->nranks;
	return c->count;
}

size_t job_recv_count(const struct job_call *c)
{
	if (c->op == JOB_ALLGATHER || c->op == JOB_ALLTOALL)
		return c->count * c->nranks;
	return c->count;
}

/* What rank r has at place i of its send buffer: 1 to 5; for products 1 or 2, of which few are 2. */
static int value(const struct job_call *c, int r, size_t i)
{
	unsigned h = (unsigned)(i * 2654435761u) ^ (unsigned)(r * 40503u) ^ c->seed * 97u;

	h ^= h >> 13;
	if (c->red == ncclProd &&
	    (c->op == JOB_ALLREDUCE || c->op == JOB_REDUCESCATTER || c->op == JOB_REDUCE))
		return r < 6 ? 1 + h % 2 : 1;
	return 1 + h % 5;
}

static double reduced(const struct job_call *c, size_t i)
{
	double v = value(c, 0, i);
	int r;

	for (r = 1; r < c->nranks; r++) {
		int x = value(c, r, i);

		switch ((int)c->red) {
		case ncclProd:
			v *= x;
			break;
		case ncclMax:
			v = x > v ? x : v;
			break;
		case ncclMin:
			v = x < v ? x : v;
			break;
		default:
			v += x;
		}
	}
	return c->red == ncclAvg ? v / c->nranks : v;
}

static double expected(const struct job_call *c, size_t i)
{
	switch (c->op) {
	case JOB_ALLGATHER:
		return value(c, i / c->count, i % c->count);
	case JOB_REDUCESCATTER:
		return reduced(c, c->rank * c->count + i);
	case JOB_BROADCAST:
		return value(c, c->root, i);
	case JOB_PIPELINE:
		return value(c, 0, i);
	case JOB_SENDRECV:
		return value(c, (c->rank + c->nranks - 1) % c->nranks, i);
	case JOB_ALLTOALL:
		return value(c, i / c->count, c->rank * c->count + i % c->count);
	default:
		return reduced(c, i);
	}
}

/* ---- 16-bit floats: exact for the values used, so bits can be composed ---- */

static uint16_t small_to_f16(int v)
{
	int e = 0;

	if (!v)
		return 0;
	while (v >> (e + 1))
		e++;
	return (e + 15) << 10 | (v - (1 << e)) << (10 - e);
}

static double f16_to_double(uint16_t v)
{
	int e = v >> 10 & 31;
	double m = (v & 0x3ff) / 1024.0;

	return (v & 0x8000 ? -1 : 1) * (e ? ldexp(1 + m, e - 15) : ldexp(m, -14));
}

static double bf16_to_double(uint16_t v)
{
	uint32_t u = (uint32_t)v << 16;
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static void put(void *buf, size_t i, ncclDataType_t type, int v)
{
	float f = v;
	uint32_t u;

	switch ((int)type) {
	case ncclInt8:
	case ncclUint8:
		((uint8_t *)buf)[i] = v;
		break;
	case ncclFloat16:
		((uint16_t *)buf)[i] = small_to_f16(v);
		break;
	case ncclBfloat16:
		memcpy(&u, &f, sizeof(u));
		((uint16_t *)buf)[i] = u >> 16;
		break;
	case ncclFloat32:
		((float *)buf)[i] = f;
		break;
	case ncclFloat64:
		((double *)buf)[i] = v;
		break;
	case ncclInt64:
	case ncclUint64:
		((uint64_t *)buf)[i] = v;
		break;
	default:
		((uint32_t *)buf)[i] = v;
	}
}

static double get(const void *buf, size_t i, ncclDataType_t type)
{
	switch ((int)type) {
	case ncclInt8:
		return ((const int8_t *)buf)[i];
	case ncclUint8:
		return ((const uint8_t *)buf)[i];
	case ncclInt32:
		return ((const int32_t *)buf)[i];
	case ncclUint32:
		return ((const uint32_t *)buf)[i];
	case ncclInt64:
		return ((const int64_t *)buf)[i];
	case ncclUint64:
		return ((const uint64_t *)buf)[i];
	case ncclFloat16:
		return f16_to_double(((const uint16_t *)buf)[i]);
	case ncclBfloat16:
		return bf16_to_double(((const uint16_t *)buf)[i]);
	case ncclFloat32:
		return ((const float *)buf)[i];
	default:
		return ((const double *)buf)[i];
	}
}

static double tolerance(const struct job_call *c)
{
	if (c->red != ncclAvg)
		return 0;
	switch ((int)c->type) {
	case ncclFloat16:
		return 1.0 / 512;
	case ncclBfloat16:
		return 1.0 / 64;
	case ncclFloat32:
		return 1e-6;
	case ncclFloat64:
		return 1e-14;
	default:
		return 0;
	}
}

static bool is_float(ncclDataType_t type)
{
	return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32 ||
	       type == ncclFloat64;
}

void job_fill(const struct job_call *c, void *send)
{
	size_t n = job_send_count(c), i;

	for (i = 0; i < n; i++)
		put(send, i, c->type, value(c, c->rank, i));
}

long job_check(const struct job_call *c, const void *recv)
{
	size_t n = job_recv_count(c), i;
	double tol = tolerance(c), want, have;

	if (c->op == JOB_REDUCE && c->rank != c->root)
		return -1;
	if (c->op == JOB_PIPELINE && !c->rank)
		return -1;
	for (i = 0; i < n; i++) {
		want = expected(c, i);
		have = get(recv, i, c->type);
		if (c->red == ncclAvg && !is_float(c->type))
			want = (double)(long)want;
		if (!(fabs(want - have) <= tol * fabs(want)))
			return i;
	}
	return -1;
}
