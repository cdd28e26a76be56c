/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs at the return of kernel functions (fexit), and where they may not be. */
#ifndef NCCLSCOPE_FEXIT_H
#define NCCLSCOPE_FEXIT_H

#include <stdbool.h>

struct btf;

/*
 * Whether a program at the return of a function that sleeps may be taken off: tcp_recvmsg does, in any process of the node. Before 5.12 and what has
 * that change as well ("bpf: Fix fexit trampoline"), the kernel frees the code that who sleeps in there will return to, and
 * falls over it then. `btf`: its types; NULL: it has none, so nothing can be attached.
 */
bool fexit_may_sleep(const struct btf *btf);

#define FEXIT_HARMS "this kernel frees what a function that sleeps returns to"

#endif
