/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RDMA ports count (rdma.h), read by a process of its own with a thread for each device: a counter may be a question to the
 * firmware, which the kernel waits for in vain for a minute when that hangs, and no signal ends the wait. Nobody waits for such a
 * device, and the others are read meanwhile. A process, as one of its own threads that hangs so would keep us from ending.
 *
 *	rdma_sampler__start(&s, "")            early, as it forks; rdma_sampler__stop(&s) at the end
 *	rdma_sampler__reset(&s)                a recording begins, or ends: no device is read, and what was told is not told
 *	rdma_sampler__ask(&s, &rdma, now)      at every turn of the loop: which devices, as rdma__look() has found them
 *	while ((in = rdma_sampler__next(&s, &size)))   what has come since, at every turn
 *	rdma_sampler__ask_now(&s)              at the end; then what has come, while (rdma_sampler__wait(&s, end))
 */
#ifndef NCCLSCOPE_RDMA_SAMPLER_H
#define NCCLSCOPE_RDMA_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "input.h"
#include "rdma.h"

#define RDMA_PATIENCE_NS NSEC_PER_SEC /* a device whose sample has not come by then hangs */
#define RDMA_FINISH_NS	 NSEC_PER_SEC /* the last samples are waited for so long at most */

/* What it is asked for: from now on, until it is asked for something else. */
struct rdma_question {
	uint32_t recording; /* its number; of another one's it has told nothing yet */
	uint32_t now;	    /* another number than before: not when it is time */
	uint64_t devices;   /* to be read, a bit for each place */
	char names[RDMA_DEVICES_MAX][RDMA_NAME_MAX]; /* of all places */
};

enum rdma_message_kind {
	RDMA_PORT,  /* what is new of a port of the device: struct input_port and what it says */
	RDMA_READ,  /* the device was read: its ports are those that were told since the last one */
	RDMA_HANGS, /* it is not read, for now */
};

struct rdma_message {
	uint32_t kind;
	uint32_t recording;
	uint32_t place; /* of the device */
	uint32_t now;	/* RDMA_READ: of the question that was answered */
	uint64_t begin_ns, took_ns;
	int32_t err; /* RDMA_HANGS: -ETIMEDOUT, or why there is nobody to read it */
	bool any;    /* there was something to be read */
	bool cut;    /* as in struct rdma */
};

#define RDMA_LETTER_MAX                                                                            \
	(sizeof(struct rdma_message) + sizeof(struct input_port) +                                 \
	 RDMA_COUNTERS_MAX * (sizeof(struct input_counter) + sizeof(uint64_t)))

/* What one message is, with its port. */
union rdma_letter {
	struct {
		struct rdma_message m;
		struct input_port port; /* and what it says */
	};
	char bytes[RDMA_LETTER_MAX];
};

/* A port, as it was told last. */
struct rdma_told {
	struct input_port *news; /* what has come and not been taken; NULL: nothing; owned */
	size_t size;
	struct input_port port; /* without news */
	bool named;		/* since the last RDMA_READ of its device */
};

struct rdma_reading {
	uint64_t begin_ns; /* of its newest sample; 0: there is none */
	uint32_t now;
	bool hangs;
	int err;		      /* to be told */
	char troubled[RDMA_NAME_MAX]; /* whose trouble has been told */
};

struct rdma_sampler {
	int fd;	   /* -1: none */
	pid_t pid; /* 0: it has been waited for */
	struct rdma_question question;
	bool asked; /* the question has been sent */
	union rdma_letter letter;
	size_t letter_size; /* of one that has come and not been taken; 0: there is none */
	struct rdma_reading devices[RDMA_DEVICES_MAX];
	struct rdma_told ports[RDMA_PORTS_MAX]; /* in the order of their devices' places */
	uint32_t nports;
	bool changed;	   /* which ports there are */
	uint64_t rdma_ns;  /* all devices were read since, as far as they do not hang */
	uint64_t after_ns; /* what has not been taken by then ended later */
	uint64_t samples, cost_ns, max_cost_ns;
	bool cut;
	bool died; /* to be told */
};

/* @root: as for rdma__init(). 0 or -errno. */
int rdma_sampler__start(struct rdma_sampler *s, const char *root);
void rdma_sampler__reset(struct rdma_sampler *s);
void rdma_sampler__ask(struct rdma_sampler *s, const struct rdma *r, uint64_t now_ns);
/*
 * What has come, as INPUT_RDMA has it, malloc'ed, and its size; NULL: nothing is new, or no memory. Where more has come than fits
 * into one, the rest is for the next call.
 */
struct input_rdma *rdma_sampler__next(struct rdma_sampler *s, size_t *size);
/* For a sample of each device, whenever the last one was. */
void rdma_sampler__ask_now(struct rdma_sampler *s);
/* Until more has come, or @until_ns. False, at once: all that was asked for now is there but of devices that hang, or it is too late. */
bool rdma_sampler__wait(struct rdma_sampler *s, uint64_t until_ns);
/* Samples that have not come until now are told to have ended after that: whoever has asked for what was until then has not seen them. */
void rdma_sampler__after(struct rdma_sampler *s, uint64_t ns);
/*
 * What to tell, each device once; NULL: nothing. *err: -ETIMEDOUT: it hangs; -ENODEV: it is in another network namespace; else why it is
 * not read. "": no device is, any more.
 */
const char *rdma_sampler__trouble(struct rdma_sampler *s, int *err);
void rdma_sampler__stop(struct rdma_sampler *s);

/* rdma_reader.c: the life of that process: answers to what comes from @fd, until nothing can come any more. */
void rdma_reader__run(int fd, const char *root);

#endif
