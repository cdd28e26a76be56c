// SPDX-License-Identifier: BSD-2-Clause
/*
 * Preloaded into a job: handlers as applications have them. That of SIGTERM cleans up, and sends the signal again; that of SIGTSTP does not stop. And a thread of each rank
 * writes where it may not, HANDLERS_FAULTS times, each of which a handler puts right, as in a garbage collector.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

static char *page;
static long faults;

static void on_term(int sig)
{
	signal(sig, SIG_DFL);
	usleep(20000);
	raise(sig);
}

static void on_stop(int sig)
{
	(void)sig;
}

static void on_fault(int sig)
{
	(void)sig;
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

/* Once the recorder knows the process, and that has made its own arrangements. */
static void *fault(void *arg)
{
	long i;

	sleep(1);
	signal(SIGTERM, on_term);
	signal(SIGTSTP, on_stop);
	signal(SIGSEGV, on_fault);
	for (i = 0; i < faults; i++) {
		mprotect(page, PAGE, PROT_NONE);
		*(volatile char *)page = 1;
	}
	return arg;
}

/* Ranks are the starter's children. */
static void begin(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, fault, NULL))
		pthread_detach(thread);
}

__attribute__((constructor)) static void install(void)
{
	const char *text = getenv("HANDLERS_FAULTS");

	page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	faults = text && page != MAP_FAILED ? strtol(text, NULL, 10) : 0;
	pthread_atfork(NULL, NULL, begin);
}
