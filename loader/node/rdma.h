/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RDMA ports counted, from /sys/class/infiniband: InfiniBand and RoCE bypass the kernel, so of
 * what happens there nothing else can be seen from outside. Only devices that a recorded process
 * has open are read.
 *
 *	rdma__init(&r, "")                    once; rdma__free() at the end
 *	rdma__look(&r, &p->rdma, pid)         at every turn of the loop, for each process; which
 *	                                      devices it has open, once a second, and less often
 *	                                      where there are many descriptors. All zero at first.
 *	rdma__sample(&r)                      at every turn; does something every 100 ms
 *	rdma__deltas(&r, p->rdma.devices, from, to, emit, arg)   by how much which counters moved
 *
 * Names are those of the files, units what they count in: port_xmit_data and port_rcv_data are
 * words of 4 bytes, port_xmit_wait is ticks of the port. They are whole ports' figures, whoever
 * uses them. A file that cannot be read or holds no number ("N/A (no PMA)") is a counter that is
 * not known, as is one that does not exist.
 *
 * Reading may take long, where each file is a question to the firmware, or the firmware is dead:
 * samples come less often then, so that they take no more than 5% of the time, or are 10 s apart.
 * rdma__sample() waits for the firmware: rdma_sampler.h has somebody else do that.
 */
#ifndef NCCLSCOPE_RDMA_H
#define NCCLSCOPE_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "clock.h"

#define RDMA_PERIOD_NS	  100000000ULL /* between samples */
#define RDMA_SCAN_NS	  NSEC_PER_SEC /* between looks for devices, ports, files, and users */
#define RDMA_COST	  20 /* at most one part in so many of the time goes into samples, */
#define RDMA_REST_NS	  (10 * NSEC_PER_SEC) /* but they are not further apart than that, */
#define RDMA_LOOK_COST	  200		      /* and into looking at one process */
#define RDMA_LOOK_FDS	  1024		      /* of a process, at a time */
#define RDMA_TURN_NS	  5000000ULL /* for all processes, at a time, and RDMA_COST of the time */
#define RDMA_NAME_MAX	  64 /* of a device or a counter, with its 0; longer ones are left out */
#define RDMA_DEVICES_MAX  64 /* a set of devices is a bit each of 64 */
#define RDMA_PORTS_MAX	  64
#define RDMA_COUNTERS_MAX 256 /* of a port */
#define RDMA_ROWS	  640 /* samples that are kept: 64 s; fewer with over 96 counters: */
#define RDMA_ROW_BYTES	  (512 << 10) /* of a port; 2.6 MiB for 8 of 60 counters, at most 32 MiB */
#define RDMA_UNKNOWN	  UINT64_MAX  /* as a reading: there was none */

struct rdma_counter {
	char label[RDMA_NAME_MAX + 3]; /* "hw_", then the name of the file */
	bool hw;		       /* of hw_counters, not of counters */
	bool twin;   /* the other folder has one of this name: shown with the hw_ */
	bool known;  /* raw is its last reading */
	bool failed; /* could not be read: not tried again before the next scan */
	int fd;	     /* -1: closed */
	uint64_t raw;
	uint64_t total; /* of all its movements that we saw */
};

/*
 * One sample. Its totals are as of some time between the two: what was read may have been
 * cached before.
 */
struct rdma_row {
	uint64_t begin_ns, end_ns;
	uint64_t moves; /* of any counter, ever: two rows with the same have the same totals */
	uint64_t total[];
};

struct rdma_port {
	char device[RDMA_NAME_MAX];
	uint32_t nr;
	uint32_t place;	 /* of the device, among the devices */
	bool seen;	 /* in the scan under way */
	uint64_t age_ns; /* how old what the driver tells may be */
	uint64_t row_ns; /* when the newest row was taken */
	struct rdma_counter *counters;
	uint32_t ncounters, cap; /* memory for so many, here and in each row */
	unsigned char *rows;	 /* ring: the n-th ever, from 0, is at n % rows_max */
	uint32_t rows_max;
	uint64_t nrows, oldest; /* those that are kept are from oldest to nrows */
	uint64_t moves;
	uint32_t told; /* for whoever passes on what is new: counters, and rows */
	uint64_t told_rows;
};

struct rdma_device {
	char name[RDMA_NAME_MAX]; /* "": this place is free */
	uint64_t until_ns;	  /* somebody has it open, or has had a moment ago */
	bool elsewhere; /* as last seen: what it counts is to be seen in another network namespace only */
};

struct rdma {
	char *root;  /* "", or the real path of a folder in place of / */
	int root_fd; /* of a folder that is not / */
	uint64_t (*clock)(void);
	struct rdma_device devices[RDMA_DEVICES_MAX];
	struct rdma_port *ports[RDMA_PORTS_MAX];
	uint32_t nports;
	uint64_t next_ns, next_scan_ns;
	uint64_t look_ns;    /* until then looks at processes have had their share of the time */
	uint64_t class_ns;   /* when to ask again */
	bool has_class;	     /* of devices: else nobody can have one open */
	uint64_t files_left; /* that the scan under way may leave open */
	uint32_t share; /* so many are sampled at a time: of time and files each has its part */
	uint64_t samples, cost_ns,
		max_cost_ns; /* of a sample: all of them together, and the longest */
	bool cut; /* there were more devices, ports, counters or files than there is room for */
};

/* Of a process. */
struct rdma_user {
	uint64_t devices; /* set of those that it has had open since we look */
	uint64_t next_ns; /* for the next look */
	/* A look that has not come to the last descriptor yet: */
	long at;	   /* where it goes on, as telldir(3) has it; 0: there is none */
	uint64_t begin_ns; /* when it began */
	uint64_t took_ns;
	uint64_t found; /* set of devices */
};

/*
 * 0 or -errno, if the root cannot be opened: it has sys/ and dev/infiniband/, and no link out
 * of it is followed.
 */
int rdma__init(struct rdma *r, const char *root);
void rdma__free(struct rdma *r);

/*
 * Goes on with a look at a process' descriptors, for a few ms, or begins one when it is time. 0, also when it is not, or
 * there are no devices; -EAGAIN: looks at processes have had their share, this one is to be the first in the next turn;
 * or -errno where its descriptors cannot be read, -ENOENT: it has ended.
 */
int rdma__look(struct rdma *r, struct rdma_user *user, pid_t pid);

/* True if it took a sample of anything. Who sets next_ns to 0 before has it taken now, whenever the last one was. */
bool rdma__sample(struct rdma *r);

/* Was any port of these read since then? Else that nothing moved does not say anything. */
bool rdma__known(const struct rdma *r, uint64_t devices, uint64_t since_ns);

struct rdma_delta {
	const char *device;
	uint32_t port;
	const char *counter; /* valid during the call, like device */
	uint64_t n;	     /* not 0 */
	uint64_t from_ns,
		to_ns;	  /* when, at most: from one sample to another, around what was asked for */
	bool first, last; /* of this port */
};

typedef void (*rdma_emit)(void *arg, const struct rdma_delta *delta);

/*
 * Calls emit for each counter that moved, port after port, from the last sample before `from` to
 * the first one after `to` (as far as there are those); returns the number of calls. Counters that
 * were reset count from 0.
 */
uint32_t rdma__deltas(const struct rdma *r, uint64_t devices, uint64_t from_ns, uint64_t to_ns,
		      rdma_emit emit, void *arg);

/* ---- One port, without clock and files; for rdma.c and its test --------------------------------------- */

struct rdma_port *rdma_port__new(const char *device, uint32_t nr); /* NULL: no memory */
void rdma_port__free(struct rdma_port *p);

/* The counter of that name, made if need be; NULL: no room. May move the others. */
struct rdma_counter *rdma_port__counter(struct rdma_port *p, const char *name, bool hw);

void rdma_counter__take(struct rdma_counter *c, struct rdma_port *p, uint64_t reading);

/*
 * Makes a row of what has been taken; readings were made between the two times. -ENOMEM: it is
 * lost.
 */
int rdma_port__row(struct rdma_port *p, uint64_t begin_ns, uint64_t end_ns);

/* The newest row; there is one. */
const struct rdma_row *rdma_port__last(const struct rdma_port *p);
/* As its file is called. */
const char *rdma_counter__name(const struct rdma_counter *c);

uint32_t rdma_port__deltas(const struct rdma_port *p, uint64_t from_ns, uint64_t to_ns,
			   rdma_emit emit, void *arg);

/* From one reading to the next. */
uint64_t rdma_moved(uint64_t was, uint64_t now, bool hw);
/* The text of a counter's file; RDMA_UNKNOWN if it is no number. */
uint64_t rdma_parse(const char *text, size_t len);
/* A name as sysfs has them, that can be shown and be part of a path. */
bool rdma_name_ok(const char *name);
/* The same of a counter's, which may be of several words: irdma's are. */
bool rdma_counter_name_ok(const char *name);
/* Is a file of that name a counter? Some are settings, and some go up and down. */
bool rdma_is_counter(const char *name);

#endif
