// SPDX-License-Identifier: BSD-2-Clause
/* Namespaces of this process and of the node; see namespaces.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>
#include "namespaces.h"

/* PROC_PID_INIT_INO and PROC_CGROUP_INIT_INO of the kernel's include/linux/proc_ns.h */
#define PIDNS_FIRST_INO	   0xEFFFFFFC
#define CGROUPNS_FIRST_INO 0xEFFFFFFB

bool namespaces__pid_is_nodes(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == PIDNS_FIRST_INO;
}

int namespaces__join_nodes_cgroup(void)
{
	struct stat st;
	int fd, err = 0;

	if (stat("/proc/self/ns/cgroup", &st))
		return -errno;
	if (st.st_ino == CGROUPNS_FIRST_INO)
		return 0;
	fd = open("/proc/2/ns/cgroup",
		  O_RDONLY | O_CLOEXEC); /* kthreadd's, if that is who has 2 here */
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || (st.st_ino == CGROUPNS_FIRST_INO && setns(fd, CLONE_NEWCGROUP)))
		err = -errno;
	else if (st.st_ino != CGROUPNS_FIRST_INO)
		err = -ENOENT;
	close(fd);
	return err;
}
