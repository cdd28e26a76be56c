/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for addresses in the kernel, from /proc/kallsyms: where a packet was dropped, on kernels that do not tell a single
 * one. Read at the first question, since it is 10 MB of text, tens of milliseconds of a CPU.
 */
#ifndef NCCLSCOPE_KSYMS_H
#define NCCLSCOPE_KSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ksym {
	uint64_t addr;
	size_t name; /* where in names */
};

/* Zero at first. */
struct ksyms {
	const char *path;  /* NULL: /proc/kallsyms */
	bool loaded;	   /* or tried */
	struct ksym *syms; /* functions, by address */
	size_t n, cap;
	char *names;
	size_t len, size;
};

/* The function that the address is in; NULL: unknown, or the kernel hides its addresses from us. */
const char *ksyms__name(struct ksyms *k, uint64_t addr);
void ksyms__free(struct ksyms *k);

#endif
