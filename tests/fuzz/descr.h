/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers and random event descriptors of every version of the ABI, for the tests that drive
 * the plugin's callbacks: whatever NCCL's types allow, and pointers that may be followed where NCCL's may.
 */
#ifndef NCCLSCOPE_TESTS_DESCR_H
#define NCCLSCOPE_TESTS_DESCR_H

#include <stdint.h>
#include <string.h>
#include "nccl_profiler.h"
#include "scope_abi.h"

struct rng {
	uint64_t s;
};

static inline uint64_t rnd(struct rng *r)
{
	r->s ^= r->s << 13;
	r->s ^= r->s >> 7;
	r->s ^= r->s << 17;
	return r->s * 0x2545f4914f6cdd1dULL;
}

/* 0 to n - 1 */
static inline uint32_t rnd_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rnd(r) >> 32) * n >> 32);
}

union any_descr {
	ncclProfilerEventDescr_v1_t v1;
	ncclProfilerEventDescr_v2_t v2;
	ncclProfilerEventDescr_v3_t v3;
	ncclProfilerEventDescr_v4_t v4;
	ncclProfilerEventDescr_v5_t v5;
	ncclProfilerEventDescr_v7_t v7;
	uint64_t words[17];
};

/* Event types that a version of the ABI has: bits 0 to n - 1. */
static inline uint32_t descr_types(int api)
{
	static const uint8_t n[] = {0, 6, 6, 8, 8, 12, 15, 16};

	return n[api];
}

/* SCOPE_ID_WHAT() of the id that a start of this type must get. */
static inline uint32_t descr_what(int api, uint64_t type)
{
	uint32_t what = type && !(type & (type - 1)) ? (uint32_t)__builtin_ctzll(type) : 31;

	return what < descr_types(api) ? what : 31;
}

/* A static string, as NCCL's are; more of them than the plugin has room to intern; or none. */
static inline const char *descr_string(struct rng *r)
{
	static const char text[] = "AllReduce\0ncclFloat32\0RING\0SIMPLE\0\xff\xfe\"\\\n\0"
				   "a string that is longer than the sixty-three bytes which "
				   "are kept of an interned one, by a few";
	uint32_t at = rnd_below(r, 64);

	if (at == 0)
		return NULL;
	/* mostly a few, now and then any suffix of the text */
	return at < 60 ? text + (at % 4) * 11 % 30 : text + rnd_below(r, sizeof(text));
}

static inline void descr_net(struct rng *r, int64_t *id, void **data)
{
	static ncclProfilerNetIbDescr_v1_t ib = {.type = 1, .qp = {1, 2, 3, 4, 5}};
	static ncclProfilerNetSockDescr_v1_t sock = {.type = 1, .sock = {1, 0, 65536}};
	static ncclProfilerNetIbDescr_v1_t odd = {.type = 9};

	switch (rnd_below(r, 5)) {
	case 0:
		*id = 1 | NCCL_PROFILER_NET_TYPE_IB << 16;
		*data = &ib;
		break;
	case 1:
		*id = 1 | NCCL_PROFILER_NET_TYPE_SOCK << 16;
		*data = &sock;
		break;
	case 2:
		*id = 1 | (1 + (int64_t)rnd_below(r, 2)) << 16;
		*data = &odd;
		break;
	case 3:
		*id = 1 | (1 + (int64_t)rnd_below(r, 2)) << 16;
		*data = NULL;
		break;
	default: /* a layout that nobody knows: not followed */
		*id = (int64_t)(rnd(r) | 2) & ~1LL;
		*data = (void *)(uintptr_t)rnd(r);
	}
}

#define DESCR_STRINGS(r, d)                                                                        \
	do {                                                                                       \
		(d)->func = descr_string(r);                                                       \
		(d)->datatype = descr_string(r);                                                   \
	} while (0)

static inline void descr_pointers_old(struct rng *r, int api, union any_descr *d, uint32_t what)
{
	if (what != SCOPE_COLL && what != SCOPE_P2P)
		return;
	d->v1.coll.name = descr_string(r); /* at one place in all three, in coll and p2p */
	if (api == 2 && what == SCOPE_COLL) {
		DESCR_STRINGS(r, &d->v2.coll);
		d->v2.coll.algo = descr_string(r);
		d->v2.coll.proto = descr_string(r);
	} else if (api == 2) {
		DESCR_STRINGS(r, &d->v2.p2p);
	} else if (api == 3 && what == SCOPE_COLL) {
		DESCR_STRINGS(r, &d->v3.coll);
		d->v3.coll.algo = descr_string(r);
		d->v3.coll.proto = descr_string(r);
	} else if (api == 3) {
		DESCR_STRINGS(r, &d->v3.p2p);
	}
}

static inline void descr_pointers(struct rng *r, union any_descr *d, uint32_t what)
{
	bool flag = rnd(r) & 1;

	switch (what) {
	case SCOPE_COLL:
		DESCR_STRINGS(r, &d->v7.coll);
		d->v7.coll.algo = descr_string(r);
		d->v7.coll.proto = descr_string(r);
		d->v7.coll.kernelVariant = descr_string(r);
		d->v7.coll.isSymColl = flag;
		return;
	case SCOPE_P2P:
		DESCR_STRINGS(r, &d->v7.p2p);
		return;
	case SCOPE_COLL_API:
		DESCR_STRINGS(r, &d->v7.collApi);
		d->v7.collApi.graphCaptured = flag;
		return;
	case SCOPE_P2P_API:
		DESCR_STRINGS(r, &d->v7.p2pApi);
		d->v7.p2pApi.graphCaptured = flag;
		return;
	case SCOPE_GROUP_API:
		d->v7.groupApi.graphCaptured = flag;
		return;
	case SCOPE_CE_COLL:
		DESCR_STRINGS(r, &d->v7.ceColl);
		d->v7.ceColl.syncStrategy = descr_string(r);
		d->v7.ceColl.intraBatchSync = flag;
		return;
	case SCOPE_CE_SYNC:
		d->v7.ceCollSync.isComplete = flag;
		return;
	case SCOPE_CE_BATCH:
		d->v7.ceCollBatch.useIntraSync = flag;
		return;
	case SCOPE_KERNEL_PHASE:
		d->v7.kernelPhase.phaseName = descr_string(r);
		return;
	default:
		return;
	}
}

/* Every byte random, but for pointers that may be followed and bytes that C says are 0 or 1. */
static inline void descr_random(struct rng *r, int api, union any_descr *d, uint64_t type,
				uint64_t parent)
{
	uint32_t i, what;

	if (api < 5)
		type &= 0xff;
	what = descr_what(api, type);
	for (i = 0; i < sizeof(d->words) / sizeof(*d->words); i++)
		d->words[i] = rnd(r);
	if (api < 5)
		d->v4.type = (uint8_t)type;
	else
		d->v7.type = type;
	d->v7.parentObj = (void *)(uintptr_t)parent;
	if (what == SCOPE_NET_PLUGIN)
		descr_net(r, &d->v7.netPlugin.id, &d->v7.netPlugin.data);
	else if (api < 4)
		descr_pointers_old(r, api, d, what);
	else
		descr_pointers(r, d, what);
}

#endif
