// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lives that a job may lead: forks, execs, threads that come and go, communicators that come and go and
 * the plugin with them. Two ranks in one process over the stand-in; forks.sh and versions.sh look on.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "nccl.h"
#include "standin.h"

#define RANKS 2
#define COUNT 1024

struct job {
	ncclComm_t comm[RANKS];
	cudaStream_t stream[RANKS];
	float send[RANKS][COUNT], recv[RANKS][COUNT];
};

static struct job job;

static void check(ncclResult_t res, const char *what)
{
	if (!res)
		return;
	fprintf(stderr, "life: Failed to %s: %s\n", what, ncclGetErrorString(res));
	exit(1);
}

static void begin(void)
{
	int r;

	check(ncclCommInitAll(job.comm, RANKS, NULL), "make communicators");
	for (r = 0; r < RANKS; r++)
		check(standinStreamCreate(&job.stream[r]), "make a stream");
}

/* One AllReduce on both ranks, and its result. */
static void run(void)
{
	int r, i;

	for (r = 0; r < RANKS; r++)
		for (i = 0; i < COUNT; i++)
			job.send[r][i] = (float)(r + i);
	check(ncclGroupStart(), "begin a group");
	for (r = 0; r < RANKS; r++)
		check(ncclAllReduce(job.send[r], job.recv[r], COUNT, ncclFloat32, ncclSum,
				    job.comm[r], job.stream[r]),
		      "call AllReduce");
	check(ncclGroupEnd(), "end a group");
	for (r = 0; r < RANKS; r++)
		check(standinStreamSynchronize(job.stream[r]), "complete an operation");
	for (r = 0; r < RANKS; r++)
		for (i = 0; i < COUNT; i++)
			if (job.recv[r][i] != (float)(2 * i + 1))
				check(ncclInternalError, "get the right sum");
}

static void end(void)
{
	int r;

	for (r = 0; r < RANKS; r++) {
		check(ncclCommDestroy(job.comm[r]), "destroy a communicator");
		standinStreamDestroy(job.stream[r]);
	}
}

static void whole_life(void)
{
	begin();
	run();
	end();
}

static void wait_child(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "life: a child failed\n");
		exit(1);
	}
}

/* Children of a process with a live communicator: one leaves by _exit, one by exit and destructors. */
static void do_fork(void)
{
	pid_t pid;

	begin();
	run();
	pid = fork();
	if (!pid)
		_exit(0);
	wait_child(pid);
	run();
	pid = fork();
	if (!pid)
		exit(0);
	wait_child(pid);
	run();
	end();
}

/* A child that makes communicators of its own, after its parent had some. */
static void do_fork_use(void)
{
	pid_t pid;

	whole_life();
	pid = fork();
	if (!pid) {
		whole_life();
		exit(0);
	}
	wait_child(pid);
	whole_life();
}

static void do_exec(char **argv)
{
	begin();
	run();
	argv[1] = "once";
	execv("/proc/self/exe", argv);
	perror("life: exec");
	exit(1);
}

static void *thread_main(void *arg)
{
	(void)arg;
	run();
	return NULL;
}

/* Every operation from a new thread, one after the other. */
static void do_threads(int n)
{
	pthread_t thread;

	begin();
	while (n--) {
		if (pthread_create(&thread, NULL, thread_main, NULL))
			exit(1);
		pthread_join(thread, NULL);
	}
	end();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "once";
	int n = argc > 2 ? atoi(argv[2]) : 1;

	if (!strcmp(mode, "once")) {
		whole_life();
	} else if (!strcmp(mode, "again")) {
		while (n--)
			whole_life();
	} else if (!strcmp(mode, "fork")) {
		do_fork();
	} else if (!strcmp(mode, "fork-use")) {
		do_fork_use();
	} else if (!strcmp(mode, "exec")) {
		do_exec(argv);
	} else if (!strcmp(mode, "threads")) {
		do_threads(n);
	} else if (!strcmp(mode, "leave")) { /* without a word */
		begin();
		run();
		_exit(3);
	} else if (!strcmp(mode, "tag")) {
		standinSetUserTag(0xfeedfacecafef00dull);
		whole_life();
	} else {
		fprintf(stderr,
			"Usage: life once|again|fork|fork-use|exec|threads|leave|tag [N]\n");
		return 2;
	}
	return 0;
}
