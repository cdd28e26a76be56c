// SPDX-License-Identifier: BSD-2-Clause
/* PREEMPT_RT; see realtime.h. */
#include <string.h>
#include <sys/utsname.h>
#include <bpf/btf.h>
#include "realtime.h"

bool realtime_ring_sleeps(const struct btf *btf, const char *version)
{
	int id = btf ? btf__find_by_name_kind(btf, "bpf_ringbuf", BTF_KIND_STRUCT) : -1, i;
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id), *lock;
	const struct btf_member *m = t ? btf_members(t) : NULL;

	if (!strstr(version, "PREEMPT_RT") && !strstr(version, "PREEMPT RT"))
		return false;
	for (i = 0; t && i < btf_vlen(t); i++, m++) {
		if (strcmp(btf__name_by_offset(btf, m->name_off), "spinlock"))
			continue;
		lock = btf__type_by_id(btf, m->type);
		return lock && !strcmp(btf__name_by_offset(btf, lock->name_off), "spinlock_t");
	}
	return false;
}

bool realtime_ring_sleeps_here(const struct btf *btf)
{
	struct utsname uts;

	return !uname(&uts) && realtime_ring_sleeps(btf, uts.version);
}
