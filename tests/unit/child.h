/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of tests: one does something, says so, and stays as it is until it is killed, also when the test fails. */
#ifndef NCCLSCOPE_TESTS_CHILD_H
#define NCCLSCOPE_TESTS_CHILD_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* As fork(): 0 in the child, which ends with child_says(); the test goes on with child_said(). */
static pid_t child_begin(int ready[2])
{
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static _Noreturn void child_says(const int ready[2], char c)
{
	if (write(ready[1], &c, 1) == 1)
		pause();
	_exit(1);
}

static char child_said(const int ready[2])
{
	char c = 0;

	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return c;
}

static void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
