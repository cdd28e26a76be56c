/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of `ncclscope top`: top_model.c makes rows of what recorders tell of themselves, top_text.c
 * lines of rows, top_screen.c shows them in a terminal, top.c as they come (-b). Data flows that way.
 */
#ifndef NCCLSCOPE_TOP_H
#define NCCLSCOPE_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#define TOP_NAME 32
#define TOP_LINE 256

/* One communicator of one process, between two readings. Shares are of the time of its progress threads, 0 to 1. */
struct top_row {
	uint64_t comm;	     /* hash */
	char name[TOP_NAME]; /* the same in hex, printable */
	char command[16];
	int32_t rank, nranks;
	uint32_t pid;	   /* of the host */
	uint32_t recorder; /* likewise */
	double ops;	   /* a second */
	double busbw;	   /* GB/s; 0: no operation ended */
	bool sched;	   /* the shares are known */
	double on_cpu, runq, blocked;
	double throttled, irq; /* of runq, of on_cpu */
	double retrans; /* segments that had to be sent again, a second; of the whole process */
	uint64_t pending;
	uint64_t pending_us; /* the oldest, for how long */
	char func[24];
	uint64_t seq;	 /* of the collective it called last; 0: none yet */
	bool waited_for; /* others on this node have called one that it has not */
	char why[48];	 /* behind whom, or in what, or interrupts: most of what it lost; "" */
};

/* A process as one of its recorders has it. */
struct top_proc {
	uint32_t pid, recorder;
	bool silent;	/* the recorder is */
	bool ranks;	/* it knows communicators of it, */
	bool ops;	/* and operations that have ended between two readings */
	double records; /* a second */
};

enum top_sort { TOP_BY_RANK, TOP_BY_BUSBW, TOP_BY_PENDING, TOP_SORTS };

extern const char *const top_sort_names[TOP_SORTS];

struct top {
	json_t *before, *now; /* readings: arrays of recorders */
	uint64_t now_us;      /* CLOCK_MONOTONIC of the last one */
	struct top_row *rows;
	size_t nrows, room;
	struct top_proc *procs;
	size_t nprocs, procs_room;
	enum top_sort sort;
	/* of all recorders */
	uint32_t recorders, silent, captures, processes;
	uint32_t waiting;     /* further ones, which record nothing now, */
	uint64_t waits_until; /* the first of them until then, us of CLOCK_MONOTONIC */
	double records;	      /* a second */
	uint64_t behind_us;   /* what it shows is so old, of the recorder that gives way most */
	uint64_t lost, lost_new;
	double cpu;	 /* of one CPU, 0.1 is 10 % */
	double ring;	 /* how full the fullest is, 0 to 1 */
	uint64_t memory; /* bytes */
};

/* Takes another reading. 0 or -ENOMEM; what was shown stays then. */
int top__read(struct top *t);
void top__sort(struct top *t);
void top__free(struct top *t);

/* Lines of at most TOP_LINE - 1 bytes, printable ASCII only. */
void top_text__head(const struct top *t, char line[TOP_LINE]);
void top_text__recorders(const struct top *t, char line[TOP_LINE]);
/* As many columns as a terminal of that width has room for. */
void top_text__titles(int width, char line[TOP_LINE]);
void top_text__row(const struct top_row *row, int width, char line[TOP_LINE]);

/* Until somebody quits, or `n` times (0: no end). An exit status. */
int top_screen__run(struct top *t, uint64_t delay_ns, uint64_t n);

#endif
