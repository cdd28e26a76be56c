/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets: their addresses, and files that are one. */
#ifndef NCCLSCOPE_TUPLE_BPF_H
#define NCCLSCOPE_TUPLE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "scope_abi.h"

#define AF_INET	 2 /* <linux/socket.h> */
#define AF_INET6 10
#define S_IFMT	 0170000 /* <linux/stat.h> */
#define S_IFSOCK 0140000

static __always_inline void tuple_fill(struct scope_tuple *t, struct sock *sk)
{
	__builtin_memset(t, 0, sizeof(*t));
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6) {
		BPF_CORE_READ_INTO(&t->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&t->remote, sk, __sk_common.skc_v6_daddr);
	} else {
		t->local[10] = t->local[11] = t->remote[10] = t->remote[11] = 0xff;
		bpf_core_read(t->local + 12, 4, &sk->__sk_common.skc_rcv_saddr);
		bpf_core_read(t->remote + 12, 4, &sk->__sk_common.skc_daddr);
	}
	t->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	t->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

#endif
