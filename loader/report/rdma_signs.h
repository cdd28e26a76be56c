/* SPDX-License-Identifier: BSD-2-Clause */
/* What counters of RDMA ports are signs of. */
#ifndef NCCLSCOPE_RDMA_SIGNS_H
#define NCCLSCOPE_RDMA_SIGNS_H

#include <stdbool.h>
#include <stddef.h>

/* Whatever drivers call them; what says most comes first, what the sender counts before what the receiver saw of the same. */
enum rdma_sign {
	SIGN_TIMEOUT, /* the sender waited for a confirmation in vain */
	SIGN_LINK,    /* the cable, or what is plugged into it */
	SIGN_RESENT,  /* the sender had to send again */
	SIGN_MISSED,  /* the receiver missed something, or got it twice */
	SIGN_MARKED,  /* a switch was congested, and said so */
	SIGN_HELD,    /* a port had something to send, and might not */
	NR_SIGNS,
	NO_SIGN = NR_SIGNS,
};

/* NO_SIGN: the counter is no sign of trouble, or of a driver that is not known. */
enum rdma_sign rdma_sign_of(const char *counter, size_t len);

/* Something was lost, or had to be sent again; else it is congestion. */
static inline bool rdma_sign_is_loss(enum rdma_sign sign)
{
	return sign <= SIGN_MISSED;
}

#endif
