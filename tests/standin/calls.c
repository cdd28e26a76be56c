// SPDX-License-Identifier: BSD-2-Clause
/* The log of callbacks, written: STANDIN_CALLBACKS names the file. See calls.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "calls.h"
#include "internal.h"

static struct calls_file *file;
static __thread struct calls_thread *mine;

/* A child of fork(2) is another process: its thread takes a slot of its own. */
static void forget(void)
{
	mine = NULL;
}

static void open_file(void)
{
	const char *path = settings()->callbacks;
	struct calls_file *f = MAP_FAILED;
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0 && !ftruncate(fd, sizeof(*f)))
		f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (f == MAP_FAILED) {
		si_warn("Failed to map '%s' for the log of callbacks: %s", path, strerror(errno));
	} else {
		f->magic = CALLS_MAGIC;
		pthread_atfork(NULL, NULL, forget);
		file = f;
	}
	if (fd >= 0)
		close(fd);
}

void calls_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_file);
}

static struct calls_thread *slot_new(void)
{
	uint64_t i = __atomic_fetch_add(&file->nthreads, 1, __ATOMIC_RELAXED);

	if (i >= CALLS_THREADS)
		return NULL;
	file->threads[i].pid = getpid();
	__atomic_store_n(&file->threads[i].tid, (int32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return &file->threads[i];
}

/* A thread is its slot's only writer, and what it has stored before it dies is there. */
static void count(uint64_t *n)
{
	__atomic_store_n(n, *n + 1, __ATOMIC_RELEASE);
}

void calls_begin(int kind)
{
	if (!file)
		return;
	if (!mine)
		mine = slot_new();
	if (mine)
		count(&mine->begun[kind]);
}

void calls_end(int kind)
{
	if (file && mine)
		count(&mine->returned[kind]);
}
