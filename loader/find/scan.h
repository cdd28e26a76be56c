/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of this node that have the plugin loaded, found in /proc, and the files that it is loaded
 * from: containers have copies of their own. A pass over /proc begins at most once a second, goes on for a
 * moment at a time, and looks into the mappings of a process only when these have changed.
 */
#ifndef NCCLSCOPE_SCAN_H
#define NCCLSCOPE_SCAN_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include "elf_file.h"
#include "hash.h"

struct recorder;
struct target;

/* Another one: somebody has written to the file. */
struct scan_version {
	uint64_t size, mtime_ns;
};

struct scan_file {
	struct elf_file_id key;
	int link; /* of attach.h; -1: not one of ours, or it did not attach */
	int copy; /* likewise, of what overlayfs shows by the same numbers since the file was changed; -1: nothing */
	uint64_t attached_ns; /* when its probe was on: processes that start later are seen whole */
	uint32_t users;	      /* processes that have it loaded, at the last look */
	uint32_t unused;      /* passes without any */
	bool keep;	      /* the one that is at the plugin's path */
	bool changed;	      /* and is perhaps still being written to */
	uint64_t pause_ns,
		retry_ns; /* it did not attach: when to try again, for one that is kept or refused; 0: it did */
	bool refused;		     /* for now, which may pass */
	uint64_t told_ns;	     /* when it was said that it changed; 0: never */
	struct timespec same;	     /* last change of what was attached to as a copy */
	int fd;			     /* O_PATH, with a link */
	struct scan_version version; /* what the probe's places are of */
	UT_hash_handle hh;
};

struct scan_proc {
	pid_t pid;
	uint64_t start; /* field 22 of /proc/PID/stat: with the pid, the process */
	/* Of its address space when its mappings were last looked at, in bytes; UINT64_MAX: they could not be. */
	uint64_t vsize;
	uint64_t look_ns;  /* not to be looked at before */
	uint64_t pause_ns; /* no answer, or no room: it was left alone for so long; 0: neither */
	bool hangs;	   /* it hung, that is why */
	bool no_room;	   /* or so many files are attached to already */
	uint32_t pass;	   /* that last saw it */
	bool told;	   /* why it is not recorded */
	uint64_t first_id; /* struct target's, when we first asked it for events; 0: not yet */
	struct scan_file *file; /* NULL: it has none that we record */
	bool bare;		/* and no probe can be on what it has mapped of it */
	bool hidden;		/* we may not look into it */
	UT_hash_handle hh;
};

#define SCAN_BUILDS 4 /* of the plugin that are recorded: a job can be as old as some upgrades */

struct scan {
	struct scan_proc *procs;
	struct scan_file *files;
	struct scan_proc
		*looked; /* this one is in use, though its number may be another process' by now: */
	bool looked_gone; /* then who looks at it frees it */
	bool only; /* the plugin that was named, and what has a build id of its; else any that speaks our ABI */
	/* Of that, and of those that were at its path before, in any window: the newest first; "": none that could be compared. */
	char builds[SCAN_BUILDS][ELF_BUILD_ID_LEN];
	uint64_t named_ns, named_pause_ns; /* not to look before at what is at its path, and why */
	int named_err; /* why what is there now cannot be recorded, as it was said */
	DIR *dir;      /* open while a pass is under way */
	uint32_t pass;
	uint64_t next_ns;	    /* when a pass may begin */
	uint64_t begin_ns, busy_ns; /* of this one: its begin, and what it has taken */
	uint32_t told,
		untold;	  /* processes of which it was said why they are not recorded, or not */
	uint64_t tell_ns; /* when that begins anew */
	uint64_t
		no_room_ns; /* when it was said last that there is no room for another file; 0: never */
};

/*
 * The plugin that we were started with, by its path; `only`: copies of it, too, but no other build than that path has had.
 * Attaches to it. 0 or -errno.
 */
int scan__init(struct recorder *r, bool only);

/* A whole pass, now: who is there when the recording begins. */
void scan__all(struct recorder *r);

/* Goes on with a pass for a moment, or begins one when it is time. */
void scan__tick(struct recorder *r, uint64_t now);

/* How many processes have a file of the plugin that is recorded, as of the last look at each. */
uint32_t scan__users(const struct scan *s);

/* How many may not be looked into, likewise: nobody knows what they have. */
uint32_t scan__hidden(const struct scan *s);

/*
 * When the probe of the file behind an open target was put on, in ns; 0: not known. What started later
 * is seen from its first callback on.
 */
uint64_t scan__attached_ns(const struct recorder *r, const struct target *t);

/* A process that was asked for events, now or before: the first of its ids that are ours. */
uint64_t scan__first_id(struct recorder *r, const struct target *t);

void scan__free(struct scan *s);

#endif
