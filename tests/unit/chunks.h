/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session of `record` without a kernel below it: what decode needs, writing into a directory of its
 * own. For the tests and the fuzzer of decode.
 */
#ifndef NCCLSCOPE_TESTS_CHUNKS_H
#define NCCLSCOPE_TESTS_CHUNKS_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "decode.h"

static char chunks_dir[] = "/tmp/ncclscope-decode-XXXXXX";

static inline struct session *session_new(void)
{
	struct session *s = calloc(1, sizeof(*s));

	s->dir = chunks_dir;
	s->mask = s->keep = 0xffff;
	s->attach_ns = 1000;
	s->uid = (uid_t)-1;
	s->gid = (gid_t)-1;
	if (clock_fit__init(&s->clock, SCOPE_CLOCK_TSC))
		abort();
	clock_fit__add(&s->clock, 1000, 2000);
	clock_fit__add(&s->clock, UINT64_MAX / 2, UINT64_MAX / 2 + 1000);
	return s;
}

/* The same with kernel context, of which all is there. */
static inline struct session *session_new_sched(enum sched_mode mode)
{
	struct session *s = session_new();

	s->sched_mode = mode;
	s->features =
		(struct attach_features){.sched = true, .irq = true, .quota = true, .why = true};
	if (sched__init(&s->sched, 64))
		abort();
	return s;
}

static inline void session_free(struct session *s)
{
	struct out_dir *d, *dtmp;
	struct proc *p, *tmp;

	HASH_ITER (hh, s->procs, p, tmp)
		proc__end(p, "loader-stopped", false, 0);
	HASH_ITER (hh, s->dirs, d, dtmp) {
		HASH_DEL(s->dirs, d);
		close(d->fd);
		free(d);
	}
	sched__free(&s->sched);
	symbols__free(&s->symbols);
	clock_fit__free(&s->clock);
	summary__free(&s->summary);
	free(s->kmsg);
	free(s->gpus);
	free(s);
}

/* Calls fn, if there is one, for every file in the directory, and removes it. */
static inline void chunks_files(void (*fn)(const char *path))
{
	DIR *dir = opendir(chunks_dir);
	char path[sizeof(chunks_dir) + 260];
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", chunks_dir, e->d_name);
		if (fn)
			fn(path);
		unlink(path);
	}
	if (dir)
		closedir(dir);
}

#endif
