# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# A cgroup in which memory runs out; sourced by tests that want a job to be ended so.
cgroup=

# memory_set DIR VERSION: a new cgroup of 96 MiB without swap.
memory_set() {
	mkdir "$1" 2>/dev/null || return
	case $2 in
	cgroup2) echo 96M >"$1/memory.max" && echo 0 >"$1/memory.swap.max" || [ ! -e "$1/memory.swap.max" ] ;;
	cgroup) echo 96M >"$1/memory.limit_in_bytes" && echo 96M >"$1/memory.memsw.limit_in_bytes" || [ ! -e "$1/memory.memsw.limit_in_bytes" ] ;;
	esac 2>/dev/null && return
	rmdir "$1"
	return 1
}

# cgroup_new: in the hierarchy that has the controller; as $cgroup, which is the caller's to remove.
cgroup_new() {
	local dir kind
	while read -r dir kind; do
		case $kind in
		cgroup2) grep -qw memory "$dir/cgroup.subtree_control" ;;
		cgroup) [ -e "$dir/memory.limit_in_bytes" ] ;;
		*) false ;;
		esac && memory_set "$dir/scope-memory-$$" "$kind" && cgroup=$dir/scope-memory-$$ && return
	done < <(awk '$3 ~ /^cgroup/ { print $2, $3 }' /proc/mounts)
	return 1
}
