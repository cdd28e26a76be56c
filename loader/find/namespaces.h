/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of the kernel's namespaces we are in: a container's, or the node's. */
#ifndef NCCLSCOPE_NAMESPACES_H
#define NCCLSCOPE_NAMESPACES_H

#include <stdbool.h>

/*
 * We are in the pid namespace that the kernel begins with: all processes of the node are there, by the numbers that BPF knows.
 * Where /proc does not tell, as if so.
 */
bool namespaces__pid_is_nodes(void);

/*
 * From here on /proc/PID/cgroup of any process is its path on the node, and not from the cgroup of our container on. For this thread, and threads
 * and processes that it makes. Takes the node's pid namespace and CAP_SYS_ADMIN. 0, also when we are there already, or -errno: all is as before.
 */
int namespaces__join_nodes_cgroup(void);

#endif
