# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Shared by the tests of kernel context, which source it: CPUs to share and not to share, programs that make
# load and look into /proc.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for file in e2e/sched_proc e2e/sched_load; do
	[ -e "$build/$file" ] || {
		echo "not ok $self: Failed to find '$build/$file': build it first (make tests)"
		exit 1
	}
	cp "$build/$file" "$tmp/bin/"
done
sched_proc=$tmp/bin/sched_proc
sched_load=$tmp/bin/sched_load

mapfile -t cpus < <(taskset -pc $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
[ ${#cpus[@]} -gt 1 ] || skip_all "takes two CPUs"

# The CPU that is least busy with other things is for the threads that matter ($two), another for the rest ($one).
idle_ticks() {
	awk -v of="${cpus[*]}" 'BEGIN { n = split(of, cpus) } /^cpu[0-9]/ { idle[substr($1, 4)] = $5 }
		END { for (i = 1; i <= n; i++) print cpus[i], idle[cpus[i]] }' /proc/stat
}
idle_ticks >"$tmp/idle"
sleep 0.3
mapfile -t cpus < <(idle_ticks | paste -d " " "$tmp/idle" - | awk '{ print $4 - $2, $1 }' | sort -n | cut -d" " -f2)
one=${cpus[0]}
two=${cpus[-1]}

# on CPU COMMAND...: what it starts in the background runs there.
on() {
	local rc
	taskset -pc "$1" $$ >/dev/null
	"${@:2}"
	rc=$?
	taskset -pc "$(IFS=, && echo "${cpus[*]}")" $$ >/dev/null
	return $rc
}

# in_trace NAME TEXT: it is in a file by now.
in_trace() {
	cat "$tmp/$1"/*.jsonl | grep -q "$2"
} 2>/dev/null

# below A B: A is a number, and no more than B.
below() {
	jq -ne --argjson a "$1" --argjson b "$2" '($a | type) == "number" and $a <= $b' >/dev/null && return
	echo "$1 is more than $2"
	return 1
}
above() { below "$2" "$1"; }

# between X LEAST MOST
between() { below "$1" "$3" && below "$2" "$1"; }

# Packets for CPU $two, each of which has a long way through a filter, in a network of their own, and until it is killed: the
# sender, on CPU $one, has little to do. Masks of CPUs are written in groups of 32. It takes nft, and packets that can be steered (RPS).
flood() {
	local mask
	mask=$(printf '%x' $((1 << (two % 32))))$(printf ',00000000%.0s' $(seq $((two / 32))))
	[ $((two / 32)) -gt 0 ] || mask=${mask%%,*}
	{
		echo "table ip flood { chain input { type filter hook input priority 0"
		seq -f 'udp dport %.0f counter' 20000 20999
		echo "}"
		echo "}"
	} >"$tmp/filter"
	exec unshare -n -m sh -c "ip link set lo up && mount -t sysfs sysfs /sys && nft -f $tmp/filter &&
		echo $mask >/sys/class/net/lo/queues/rx-0/rps_cpus && exec taskset -c $one nice -n -10 $sched_load flood 70"
}

# quota_set DIR VERSION: a new cgroup with 30% of a CPU.
quota_set() {
	mkdir "$1" || return
	case $2 in
	cgroup2) echo "30000 100000" >"$1/cpu.max" ;;
	*) echo 100000 >"$1/cpu.cfs_period_us" && echo 30000 >"$1/cpu.cfs_quota_us" ;;
	esac || ! rmdir "$1"
}
# In the hierarchy that has the controller; as $cgroup.
cgroup_new() {
	local dir kind
	while read -r _ dir kind _; do
		case $kind in
		cgroup2) grep -qw cpu "$dir/cgroup.subtree_control" ;;
		cgroup) [ -e "$dir/cpu.cfs_quota_us" ] ;;
		*) false ;;
		esac && quota_set "$dir/scope-test-$$" "$kind" && cgroup=$dir/scope-test-$$ && return
	done < <(sort -r -k3,3 /proc/mounts)
	return 1
} 2>/dev/null

# freezer_new KIND: as $freezer a new cgroup that can be frozen, in a hierarchy of that kind (cgroup2, or v1: cgroup).
freezer_new() {
	local dir kind
	while read -r _ dir kind _; do
		[ "$kind" = "$1" ] && mkdir "$dir/scope-freeze-$$" || continue
		freezer=$dir/scope-freeze-$$
		[ -e "$freezer/cgroup.freeze" ] || [ -e "$freezer/freezer.state" ] && return
		rmdir "$freezer"
		freezer=
	done </proc/mounts
	return 1
} 2>/dev/null
# freezer_is STATE: 1 or 0, and all of it has come to that.
freezer_is() {
	if [ -e "$freezer/cgroup.freeze" ]; then
		grep -qx "frozen $1" "$freezer/cgroup.events"
	else
		grep -qx "$([ "$1" = 1 ] && echo FROZEN || echo THAWED)" "$freezer/freezer.state"
	fi
}
freezer_set() {
	if [ -e "$freezer/cgroup.freeze" ]; then
		echo "$1" >"$freezer/cgroup.freeze"
	else
		echo "$([ "$1" = 1 ] && echo FROZEN || echo THAWED)" >"$freezer/freezer.state"
	fi
	until_true 5 freezer_is "$1"
}
# freezer_put PID: it is frozen for half a second; us for which it was at least, and at most, as two numbers.
freezer_put() {
	local sent frozen thaw

	echo "$1" >"$freezer/cgroup.procs" || return
	sent=${EPOCHREALTIME/./}
	freezer_set 1
	frozen=${EPOCHREALTIME/./}
	sleep 0.5
	thaw=${EPOCHREALTIME/./}
	freezer_set 0
	echo $((thaw - frozen)) $((${EPOCHREALTIME/./} - sent))
}
# Its processes have been killed.
freezer_end() {
	[ -z "$freezer" ] && return
	freezer_set 0
	until_true 5 rmdir "$freezer"
	freezer=
} 2>/dev/null

# slow_disk RANK...: $tmp/disk, of a millisecond for each page whatever this machine has, with a file for the fault cold-file
# of each of these ranks (STANDIN_COLD_FILE=$tmp/disk/cold).
slow_disk() {
	local rank
	mkdir -p "$tmp/disk" "$tmp/disk.files"
	for rank in "$@"; do
		head -c 4194304 /dev/zero | tr '\0' x >"$tmp/disk.files/cold.$rank"
	done
	"$build/e2e/slow_fs" "$tmp/disk.files" 1 "$tmp/disk" &
	until_true 5 mountpoint -q "$tmp/disk"
}
