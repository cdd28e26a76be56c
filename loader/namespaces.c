// SPDX-License-Identifier: BSD-2-Clause
/* Namespaces of this process and of the node; see namespaces.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>
#include "namespaces.h"

#define PIDNS_FIRST_INO 0xEFFFFFFC /* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h */

bool namespaces__pid_is_nodes(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == PIDNS_FIRST_INO;
}

int namespaces__join_nodes_cgroup(void)
{
	struct stat ours, nodes;
	int fd, err = 0;

	if (!namespaces__pid_is_nodes()) /* 2 is somebody else */
		return -ENOENT;
	fd = open("/proc/2/ns/cgroup", O_RDONLY | O_CLOEXEC); /* kthreadd's, which nobody moves */
	if (fd < 0)
		return -errno;
	if (stat("/proc/self/ns/cgroup", &ours) || fstat(fd, &nodes) ||
	    (ours.st_ino != nodes.st_ino && setns(fd, CLONE_NEWCGROUP)))
		err = -errno;
	close(fd);
	return err;
}
