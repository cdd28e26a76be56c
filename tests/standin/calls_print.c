// SPDX-License-Identifier: BSD-2-Clause
/*
 * scope-calls FILE: the log of callbacks as JSON, an object for each thread and kind of callback. Kinds
 * are named so that they can be compared with a trace: an event's type, a state's number.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "calls.h"

static const char *const type_names[CALLS_TYPES] = {
	"Group",    "Coll",	 "P2p",	     "ProxyOp",	    "ProxyStep", "ProxyCtrl",
	"KernelCh", "NetPlugin", "GroupApi", "CollApi",	    "P2pApi",	 "KernelLaunch",
	"CeColl",   "CeSync",	 "CeBatch",  "KernelPhase",
};

static void print_kind(int kind)
{
	if (kind >= CALL_STATE)
		printf("\"state-%d\"", kind - CALL_STATE);
	else if (kind >= CALL_START)
		printf("\"%s\"", type_names[kind - CALL_START]);
	else
		printf("\"%s\"", kind == CALL_INIT	 ? "init"
				 : kind == CALL_FINALIZE ? "finalize"
				 : kind == CALL_STOP	 ? "stop"
							 : "stop-of-null");
}

static void print_thread(uint64_t slot, const struct calls_thread *t)
{
	int kind;

	for (kind = 0; kind < CALL_KINDS; kind++) {
		if (!t->begun[kind])
			continue;
		printf("{\"slot\":%" PRIu64 ",\"pid\":%d,\"tid\":%d,\"kind\":", slot, t->pid,
		       t->tid);
		print_kind(kind);
		printf(",\"begun\":%" PRIu64 ",\"returned\":%" PRIu64 "}\n", t->begun[kind],
		       t->returned[kind]);
	}
}

static const struct calls_file *map_file(const char *path)
{
	const struct calls_file *f = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && lseek(fd, 0, SEEK_END) == (off_t)sizeof(*f))
		f = mmap(NULL, sizeof(*f), PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0)
		fprintf(stderr, "Failed to open '%s': %s\n", path, strerror(errno));
	else if (f == MAP_FAILED || f->magic != CALLS_MAGIC)
		fprintf(stderr, "Failed to read '%s': no log of callbacks\n", path);
	else
		return f;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct calls_file *f;
	uint64_t i;

	if (argc != 2) {
		fprintf(stderr, "Usage: scope-calls FILE\n");
		return 2;
	}
	f = map_file(argv[1]);
	if (!f)
		return 1;
	if (f->nthreads > CALLS_THREADS) {
		fprintf(stderr, "The log has room for %d threads, there were %" PRIu64 "\n",
			CALLS_THREADS, f->nthreads);
		return 1;
	}
	for (i = 0; i < f->nthreads; i++)
		print_thread(i, &f->threads[i]);
	return 0;
}
