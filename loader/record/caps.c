// SPDX-License-Identifier: BSD-2-Clause
/* Capabilities; see caps.h. */
#include <cap-ng.h>
#include <errno.h>
#include <sys/prctl.h>
#include "caps.h"

static const unsigned int kept[] = {
	CAP_BPF,		/* maps and iterators; links to further files */
	CAP_PERFMON,		/* the same links */
	CAP_SYS_PTRACE,		/* /proc/PID/maps, mem, environ of jobs */
	CAP_DAC_OVERRIDE,	/* other users' files and directories; /proc/PID/mem, to write */
	CAP_CHECKPOINT_RESTORE, /* /proc/PID/map_files: the very libraries that they have loaded */
	CAP_CHOWN,		/* a trace is the job's user's */
	CAP_SYSLOG,		/* /proc/kallsyms: names of functions, before 5.13 */
	CAP_SYS_ADMIN, /* perf's uprobes; what was split off from it, where that is not held */
	CAP_SYS_NICE, /* out of SCHED_IDLE and nice values again, and real-time, without RLIMIT_NICE and RLIMIT_RTPRIO */
};

/* What CAP_SYS_ADMIN does as well: it may be all that we run on. */
static const unsigned long long split_off =
	1ull << CAP_BPF | 1ull << CAP_PERFMON | 1ull << CAP_CHECKPOINT_RESTORE;

/* For good. The bounding set takes a capability that a recorder not of root may lack: then no_new_privs has to do. */
static int apply(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	(void)!capng_apply(CAPNG_SELECT_BOUNDS);
	return capng_apply(CAPNG_SELECT_CAPS) || capng_apply(CAPNG_SELECT_AMBIENT) ? -EPERM : 0;
}

void caps__drop_all(void)
{
	capng_clear(CAPNG_SELECT_ALL);
	apply();
}

int caps__drop(bool perf, bool nice)
{
	const unsigned int n = sizeof(kept) / sizeof(kept[0]);
	unsigned long long held = 0;
	unsigned int i;

	if (capng_get_caps_process())
		return -EIO;
	for (i = 0; i < n; i++)
		if (capng_have_capability(CAPNG_PERMITTED, kept[i]))
			held |= 1ull << kept[i];
	if (!perf && (held & split_off) == split_off)
		held &= ~(1ull << CAP_SYS_ADMIN);
	if (!nice)
		held &= ~(1ull << CAP_SYS_NICE);
	capng_clear(CAPNG_SELECT_ALL);
	for (i = 0; i < n; i++)
		if (held >> kept[i] & 1)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, kept[i]);
	return apply();
}
