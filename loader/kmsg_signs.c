// SPDX-License-Identifier: BSD-2-Clause
/* Which lines of the kernel's log tell why a job may be slow or hang, by what drivers and the kernel have said for years. */
#include <string.h>
#include "kmsg.h"

#define WARNING 4 /* KERN_WARNING */

/* A line is of the first that is in it. Its numbers are no kernel addresses: a trace is not root's alone. */
static const struct {
	const char *sign, *has;
	bool any_level; /* else only as a warning or worse: the same name is on much that is usual */
} signs[] = {
	{"gpu", "NVRM: Xid", true}, /* nvidia: the GPU has failed in some way, by number */
	{"nvlink", "SXid", true},   /* nvidia-nvswitch */
	{"gpu", "GPU has fallen off the bus", true},
	{"pcie", "AER: ", true},
	{"pcie", "PCIe Bus Error", true},
	{"pcie", "pcieport", false}, /* "Slot(1): Link Down" */
	{"hardware", "[Hardware Error]", true},
	{"hardware", "mce: CPU", true},
	{"hardware", "EDAC ", true},
	{"thermal", "cpu clock throttled", true},
	{"memory", "Out of memory: Killed process", true},
	{"memory", "Memory cgroup out of memory: Killed process", true},
	{"memory", "page allocation failure", true},
	{"link", "NETDEV WATCHDOG", true},
	{"link", "Link down", true},
	{"link", "Link up", true},
	{"link", "link down", true},
	{"link", "link up", true},
	{"link", "Link is Down", true},
	{"link", "Link is Up", true},
	{"link", "link is not ready", true},
	{"link", "link becomes ready", true},
	{"link", "Port module event", true}, /* mlx5: a cable, or what is in the port */
	{"nic", "mlx5_core",
	 false}, /* whatever else that says is health, commands that time out, resets */
	{"hung-task", "blocked for more than", true},
	{"lockup", "soft lockup", true},
	{"lockup", "hard LOCKUP", true},
	{"lockup", "rcu_sched self-detected stall", true},
	{"lockup", "rcu_preempt self-detected stall", true},
	{"lockup", "detected stalls on CPUs", true},
	{"storage", "I/O error, dev", true},
	{"storage", "I/O timeout", true},
	{"storage", "I/O tag", true},	     /* nvme: "I/O tag 12 (1) timeout, aborting" */
	{"filesystem", "nfs: server", true}, /* "not responding, still trying", "OK" */
	{"filesystem", "LustreError", true},
	{"filesystem", "EXT4-fs error", true},
	{"filesystem", "XFS (", false},
};

const char *kmsg__sign(uint32_t level, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if ((signs[i].any_level || level <= WARNING) &&
		    memmem(text, len, signs[i].has, strlen(signs[i].has)))
			return signs[i].sign;
	return NULL;
}
