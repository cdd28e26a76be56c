// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Names of the kernel's functions. */
#include "scope.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * The function at an address, by the kernel itself: reading its names from outside takes a CPU for tens of milliseconds. The
 * loader sets the one, has this run, and reads the other.
 */
__u64 scope_symbol_at;
char scope_symbol_name[SCOPE_SYMBOL_LEN];

SEC("?raw_tp/sched_switch") /* of a type that can be run; it is never attached */
int scope_symbol(void *ctx)
{
	__u64 at = scope_symbol_at;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_snprintf))
		return 0;
	return BPF_SNPRINTF(scope_symbol_name, sizeof(scope_symbol_name), "%ps", at);
}
