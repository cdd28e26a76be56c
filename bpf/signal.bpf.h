/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Signals, as numbers (those of x86 and arm64) and by what they do: vmlinux.h has no macros. */
#ifndef NCCLSCOPE_SIGNAL_BPF_H
#define NCCLSCOPE_SIGNAL_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#define SIGHUP	 1
#define SIGINT	 2
#define SIGQUIT	 3
#define SIGILL	 4
#define SIGABRT	 6
#define SIGBUS	 7
#define SIGFPE	 8
#define SIGKILL	 9
#define SIGSEGV	 11
#define SIGTERM	 15
#define SIGCHLD	 17
#define SIGCONT	 18
#define SIGSTOP	 19
#define SIGTSTP	 20
#define SIGTTIN	 21
#define SIGTTOU	 22
#define SIGURG	 23
#define SIGWINCH 28

#define SIGNALS_STOP	 (1u << SIGSTOP | 1u << SIGTSTP | 1u << SIGTTIN | 1u << SIGTTOU | 1u << SIGCONT)
#define SIGNALS_HARMLESS (1u << SIGCHLD | 1u << SIGURG | 1u << SIGWINCH)
#define SIGNALS_FAULT	 (1u << SIGILL | 1u << SIGBUS | 1u << SIGFPE | 1u << SIGSEGV)
/* Of these it matters that they were sent, whatever the process makes of them. */
#define SIGNALS_END (1u << SIGHUP | 1u << SIGINT | 1u << SIGQUIT | 1u << SIGABRT | 1u << SIGTERM)

/* A real-time signal (32 and above) is of none. */
static __always_inline bool signal_is_of(__u32 sig, __u32 set)
{
	return sig < 32 && 1u << sig & set;
}

#endif
