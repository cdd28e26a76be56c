// SPDX-License-Identifier: BSD-2-Clause
/* uprobe_multi links; see uprobe_multi.h. */
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/bpf.h>
#include "uprobe_multi.h"

/* What BPF_LINK_CREATE takes for this type of link, as far as needed. */
struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

int uprobe_multi__link(int prog_fd, const char *path, unsigned long offset,
		       unsigned long semaphore_offset, pid_t pid)
{
	struct uprobe_multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)&offset,
		.ref_ctr_offsets = semaphore_offset ? (uintptr_t)&semaphore_offset : 0,
		.cnt = 1,
		.pid = pid > 0 ? (uint32_t)pid : 0,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}
