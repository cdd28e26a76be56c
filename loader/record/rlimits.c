// SPDX-License-Identifier: BSD-2-Clause
/* Resource limits; see rlimits.h. */
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include "rlimits.h"

#define NICE_NONE 20 /* nice value 0, in RLIMIT_NICE's terms */

static struct {
	int resource;
	bool to_infinity; /* else to the hard limit, */
	rlim_t at_least;  /* which is raised to this */
	bool saved;
	struct rlimit was;
} limits[] = {
	{.resource = RLIMIT_NOFILE},
	{.resource = RLIMIT_MEMLOCK, .to_infinity = true},
	{.resource = RLIMIT_NICE, .at_least = NICE_NONE},
	{.resource = RLIMIT_RTPRIO, .at_least = 1},
};

static void (*on_xfsz)(int) = SIG_ERR;

#define NLIMITS (sizeof(limits) / sizeof(*limits))

void limits_raise(void)
{
	struct rlimit want;
	unsigned int i;

	on_xfsz = signal(SIGXFSZ, SIG_IGN);
	for (i = 0; i < NLIMITS; i++) {
		if (getrlimit(limits[i].resource, &limits[i].was))
			continue;
		limits[i].saved = true;
		want = limits[i].was;
		if (want.rlim_max < limits[i].at_least)
			want.rlim_max = limits[i].at_least;
		want.rlim_cur = want.rlim_max;
		if (limits[i].to_infinity)
			want.rlim_cur = want.rlim_max = RLIM_INFINITY;
		/* What is refused shows where it is needed, with a message that says what it was for. */
		setrlimit(limits[i].resource, &want);
	}
}

bool limits_nice(void)
{
	struct rlimit now;
	int nice = getpriority(PRIO_PROCESS, 0);

	if (getrlimit(RLIMIT_NICE, &now) || now.rlim_cur < (rlim_t)(NICE_NONE - nice))
		return false;
	return !getrlimit(RLIMIT_RTPRIO, &now) && now.rlim_cur >= 1;
}

void limits_restore(void)
{
	unsigned int i;

	for (i = 0; i < NLIMITS; i++)
		if (limits[i].saved)
			setrlimit(limits[i].resource, &limits[i].was);
	if (on_xfsz != SIG_ERR)
		signal(SIGXFSZ, on_xfsz);
}
