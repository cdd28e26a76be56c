/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bpf/probe.bpf.c and loader/doctor/feat_bpf.c tell each other while one feature is tried. Not part
 * of the ABI between plugin and loader: both sides are always of one build.
 */
#ifndef NCCLSCOPE_SCOPE_PROBE_IO_H
#define NCCLSCOPE_SCOPE_PROBE_IO_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

#define SCOPE_PROBE_COPY_BYTES 4096

/* One process uses one program at a time, so only `hits` can be written by two CPUs at once. */
struct scope_probe_io {
	/* written by the loader before it attaches */
	__u64 comm[2];	 /* command name of the process whose events count */
	__u64 nonce;	 /* first argument of the calls that count */
	__u64 user_addr; /* a word in the memory of that process */
	__u64 ns_dev;	 /* its pid namespace, as stat() shows it */
	__u64 ns_ino;
	__u64 syscall; /* in which that process sleeps */
	/* written by the program */
	__u64 hits;
	__u64 value;
	__s64 err;
};

/* A record of the ring. */
struct scope_probe_rec {
	__u64 nonce;
	__u64 ts_ns;
	__u8 data[SCOPE_PROBE_COPY_BYTES];
};

#endif
