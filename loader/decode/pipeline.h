/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door to the pipeline: whatever comes in from outside (input.h) comes in here, so that the same inputs make the
 * same traces, byte for byte, whether they come from a kernel or from a file.
 */
#ifndef NCCLSCOPE_PIPELINE_H
#define NCCLSCOPE_PIPELINE_H

#include <stddef.h>
#include "input.h"
#include "session.h"

/*
 * Takes an input of a recorder's session (s->live): writes it into the capture, if it has one (s->raw), puts it to the thread that makes traces,
 * if it has that (s->digest), and applies what the recorder itself must know. `data` is aligned to 8 bytes. Only for
 * what we have made or read ourselves.
 */
void pipeline__feed(struct session *s, enum input_kind kind, const void *data, size_t size);

/*
 * Applies an input, whoever has made it. 0; -EINVAL: it makes no sense, and nothing has happened; -ENOMEM. The first one has
 * to be INPUT_SESSION; after INPUT_FINISH there may be another, when the session was freed.
 */
int pipeline__apply(struct session *s, enum input_kind kind, const void *data, size_t size);

/* Frees all that inputs have made; safe on a session that is all zero, and twice. Processes have ended. */
void pipeline__free(struct session *s);

/* Once a second, or so: free() keeps what lies below anything that is in use: after a big job, most of it, for good. */
void pipeline__trim(struct session *s);

/* ---- pipeline_node.c --------------------------------------------------------------------------- */

int pipeline_node(struct session *s, const void *data, size_t size);
int pipeline_netdev(struct session *s, const void *data, size_t size);
int pipeline_node_of(struct session *s, const struct input_node_of *in);
int pipeline_rdma(struct session *s, const void *data, size_t size);
int pipeline_rdma_of(struct session *s, const struct input_rdma_of *in);
int pipeline_kmsg(struct session *s, const void *data, size_t size);
int pipeline_gpu(struct session *s, const struct gpu_sample *now);

/* This INPUT_NODE's sample of a network namespace; NULL: there is none. */
struct netdev_sample *pipeline_netdev_of(const struct session *s, uint64_t netns);
void pipeline_node_free(struct session *s);

#endif
