// SPDX-License-Identifier: BSD-2-Clause
/* Nothing, at the tracepoints that a recorder looks at most: what is left is what it takes to come by. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EMPTY(tracepoint)                                                                          \
	SEC("tp_btf/" #tracepoint) int tracepoint(void *ctx)                                       \
	{                                                                                          \
		(void)ctx;                                                                         \
		return 0;                                                                          \
	}

EMPTY(sched_switch)
EMPTY(sched_wakeup)
EMPTY(softirq_entry)
EMPTY(softirq_exit)
EMPTY(sock_send_length)
EMPTY(sock_recv_length)
