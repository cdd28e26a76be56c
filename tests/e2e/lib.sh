# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Shared by the end-to-end tests, which source it: a place of their own, copies of what is tested (the
# build may be redone meanwhile, and `record` takes every process that maps the same plugin file),
# results in the runner's protocol, and an end that leaves no process, mount or namespace behind.
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here=$top/tests/e2e
build=$(realpath "${BUILD:-$top/build}")
self=$(basename "$0")
rc=0
unset NCCLSCOPE_PLUGIN NCCL_PROFILER_PLUGIN NCCL_PROFILE_EVENT_MASK NCCL_ALLGATHERV_ENABLE NCCL_DEBUG
# The plugin asks for KernelCh where NCCL would have room for it; our jobs need none.
shm=$(($(stat -f -c '%a * %S' /dev/shm 2>/dev/null || echo 0)))
[ $shm -ge $((16 << 30)) ] || export NCCL_PROFILE_EVENT_MASK=0x7fff
unset SUDO_UID SUDO_GID SLURM_JOB_ID SLURM_STEP_ID SLURM_PROCID SLURM_NODEID

[ "$(id -u)" = 0 ] || skip_all "takes root"
needs jq setpriv unshare timeout
for file in ncclscope libnccl-profiler-ncclscope.so standin/scope-job; do
	[ -e "$build/$file" ] || {
		echo "not ok $self: Failed to find '$build/$file': build it first (make all standin)"
		exit 1
	}
done

# Other users' jobs run in there, whatever the mask and the directory for temporary files of who tests.
umask 022
[ "$(id -u)" != 0 ] || setpriv --reuid 65534 --regid 65534 --clear-groups test -x "${TMPDIR:-/tmp}" || TMPDIR=/tmp
tmp=$(mktemp -d)
chmod 755 "$tmp"
mkdir "$tmp/bin"
cp "$build/ncclscope" "$build/libnccl-profiler-ncclscope.so" "$build/standin/scope-job" \
	"$build"/standin/libnccl.so* "$tmp/bin/"
chmod 755 "$tmp"/bin/*

own_build_id "$tmp/bin/libnccl-profiler-ncclscope.so"
scope=$tmp/bin/ncclscope
plugin=$tmp/bin/libnccl-profiler-ncclscope.so
job=$tmp/bin/scope-job
export NCCLSCOPE_STATUS_DIR=$tmp/status
export STANDIN_TIMEOUT=20 E2E_MARK=$tmp # every descendant can be found by it

# Everything that we started, however it was started: it carries our mark.
kill_rest() {
	local pid
	grep -lsz "^E2E_MARK=$tmp\$" /proc/[0-9]*/environ | cut -d/ -f3 | while read -r pid; do
		[ "$pid" = $$ ] || [ "$pid" = "$BASHPID" ] || kill -KILL "$pid" 2>/dev/null
	done
}

cleanup() {
	exec 2>/dev/null # the shell tells of each that was killed
	kill "$watchdog"
	kill_rest
	wait
	awk -v t="$tmp/" 'index($2, t) == 1 { print $2 }' /proc/mounts | sort -r |
		while read -r mount; do umount -l "$mount"; done
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# Whatever hangs: an end, with a word. Its sleep goes with it, and not with kill_rest.
(
	trap 'kill $!; exit 0' TERM
	env -u E2E_MARK sleep "${E2E_TIMEOUT:-180}" &
	wait $!
	echo "not ok $self: did not end in time"
	kill_rest
	kill -TERM $$
) &
watchdog=$!

# ---- Recording

# record NAME [OPTION...] [-- CMD...]: traces in $tmp/NAME/, the job's output in $tmp/NAME.out,
# messages in $tmp/NAME.err, exit status in $rc. Always succeeds.
record() {
	local name=$1
	shift
	timeout "${RECORD_TIMEOUT:-60}" "$scope" record --plugin "$plugin" -o "$tmp/$name" "$@" >"$tmp/$name.out" 2>"$tmp/$name.err"
	rc=$?
	return 0
}

# record_bg NAME [OPTION...]: as record, in the background, $recorder its pid; returns when its probes are on.
record_bg() {
	recorder_bg "$1" -o "$tmp/$1" "${@:2}"
}

# recorder_bg NAME [OPTION...]: the same, with no other options than these.
recorder_bg() {
	local name=$1
	shift
	rm -f "$tmp/$name.err" # of an earlier one: it would tell that this one is ready
	# the shell has what it starts in the background ignore SIGINT, and a recorder would heed that
	env --default-signal=INT "$scope" record --plugin "$plugin" "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" &
	recorder=$!
	# an emulated CPU may take long
	until_true 60 eval 'grep -q "^ncclscope: Recording" "$tmp/$name.err" || ended "$recorder"'
}

# stop_recorder [SIGNAL]: the one that record_bg started; its exit status in $rc.
stop_recorder() {
	kill -"${1:-INT}" "$recorder"
	until_true 60 ended "$recorder" || kill -KILL "$recorder"
	wait "$recorder" 2>/dev/null
	rc=$?
}

bpftool=$(a_bpftool)

# bpf_of KIND PID: those of BPF's programs (prog) or maps (map) that the process holds, a list as bpftool has it.
bpf_of() {
	"$bpftool" -j "$1" show | jq -c --argjson ids "$(sed -n "s/^$1_id:[[:blank:]]*//p" "/proc/$2/fdinfo/"* | jq -s .)" \
		'map(select(.id as $id | $ids | index($id)))'
}

no_programs() {
	"$bpftool" prog show >"$tmp/programs" && ! grep -q ' name scope_' "$tmp/programs"
}

# nobody_records: ours has ended, and there is no other. The kernel frees a recorder's programs a while after its end.
nobody_records() {
	until_true 5 no_programs
}

# job_bg NAME [OPTION...]: the stand-in job with our plugin in the background, $starter its pid.
job_bg() {
	local name=$1
	shift
	NCCL_PROFILER_PLUGIN=$plugin "$job" --json "$@" >"$tmp/$name.out" 2>"$tmp/$name.job-err" &
	starter=$!
}

# ranks_of N: the N processes of the job in $starter, once they have the plugin, as ${ranks[@]}.
ranks_of() {
	until_true 10 children_ready "$starter" "$1"
	mapfile -t ranks < <(pgrep -P "$starter")
}

# kill_job: the one in $starter, without a word.
kill_job() {
	kill -KILL "${ranks[@]}" "$starter"
	wait "$starter"
} 2>/dev/null

# status_of PID KEY: what /proc says of a process.
status_of() {
	awk -v k="$2:" '$1 == k { print $2 }' "/proc/$1/status"
}

# bits CAP...: a set of capabilities as /proc has it.
bits() {
	local cap sum=0
	for cap; do
		sum=$((sum | 1 << $(awk -v n="CAP_${cap^^}" '$1 == "#define" && $2 == n { print $3 }' /usr/include/linux/capability.h)))
	done
	printf '%016x' $sum
}

# until_true SECONDS COMMAND...: tries until it succeeds.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# ended PID: not there any more, or a zombie.
ended() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}

# children PID N: it has N children, which have the plugin mapped.
children_ready() {
	local n=0 pid
	for pid in $(pgrep -P "$1"); do
		grep -qs "$plugin" "/proc/$pid/maps" && n=$((n + 1))
	done
	[ $n = "$2" ]
}

# memory_of PID LIBRARY SYMBOL OFFSET BYTES: the number that lies so far behind a symbol of a library of ours, read from the process' own memory.
memory_of() {
	local base addr
	base=$(awk -v name="/$2" 'substr($6, length($6) - length(name) + 1) == name { sub(/-.*/, "", $1); print $1; exit }' "/proc/$1/maps")
	addr=$(nm "$tmp/bin/$2" | awk -v symbol="$3" '$3 == symbol { print $1 }')
	dd if="/proc/$1/mem" iflag=skip_bytes skip=$((0x$base + 0x$addr + $4)) bs="$5" count=1 2>/dev/null | od -An -tu"$5" | tr -d ' '
}

# mask_of PID: the word that NCCL looks at before every callback.
mask_of() {
	memory_of "$1" libnccl.so.2 event_mask 0 4
}

# ---- Looking at traces

# q NAME FILTER [ARG...]: jq over all records of the traces of $tmp/NAME, as the array `.`, without quotes
# around strings. trace.jq is included. kinds='event|lost' q ...: over those alone, which jq has done with sooner.
q() {
	local name=$1 filter=$2
	shift 2
	grep -ahE "${kinds:+^\{\"recordType\":\"($kinds)\"}" "$tmp/$name"/*.jsonl | jq -L "$here" -sr "$@" "include \"trace\"; $filter"
}

# holds NAME FILTER [ARG...]: the filter gives true.
holds() {
	local got
	got=$(q "$@")
	[ "$got" = true ] && return 0
	echo "got '$got' of: $(tail -n 3 <<<"$2")"
	return 1
}

# facts NAME FILTER: asks once, of a long trace, for an object; then fact KEY gives a value of it, in one line.
facts() {
	q "$1" "$2 | tojson" >"$tmp/facts"
}
fact() {
	jq -rc ".$1" "$tmp/facts"
}

# said NAME FILTER: over what the job said, $tmp/NAME.out.
said() {
	jq -rc "$2" "$tmp/$1.out"
}

# clean NAME: `ncclscope check` finds nothing.
clean() {
	local status
	"$scope" check "$tmp/$1"/*.jsonl >"$tmp/findings" 2>&1
	status=$?
	sort -t: -s -k 3,3 "$tmp/findings" # errors first: what loses records warns a lot
	return $status
}

# lossless NAME: nothing lost by the account of the footers, one for each file.
lossless() {
	kinds='header|footer|lost' holds "$1" 'records("footer") as $f | ($f | length) == (records("header") | length) and all($f[]; .lost == {}) and records("lost") == []' || {
		q "$1" '(records("lost") + map(select(.orphan)))[:3], (records("footer") | map(.end)) | tojson' -r
		return 1
	}
}

# began_amid NAME: as lossless; but where callbacks went on when the recording began, events whose parent is
# older are orphans, and said to be. 20 ms is by far the longest that anything is open here.
began_amid() {
	kinds='event|footer' holds "$1" '([events[].start.ts] | min) as $begin | (records("footer") | all(.lost | keys - ["orphan"] == []))
		and (events | map(select(.orphan)) | length <= 16 and all(.start.ts < $begin + 20000))' || {
		q "$1" '([events[].start.ts] | min) as $begin | events[] | select(.orphan) | [.type, .start.ts - $begin] | tojson'
		return 1
	}
}

# counted NAME: the trace has of each process exactly what the job says it made.
counted() {
	local got want
	got=$(kinds=event q "$1" 'by_pid | map({pid: .[0].myPid} + counters) | sort_by(.pid)[] | tojson')
	want=$(jq -L "$here" -r 'include "trace"; job_counters[] | tojson' "$tmp/$1.out")
	[ -n "$want" ] && same "$got" "$want"
}

# joined NAME: every parent is there, by our own join. PXN and orphans apart, which must not be.
joined() {
	kinds=event holds "$1" 'unjoined == []' || q "$1" 'unjoined[:5][] | tojson'
}

# steps_have_states NAME: threads' states of ProxySteps, of more than 100. A kernel that does not tell of each switch out of idle (6.18 in some
# virtual machines) leaves a thread's state unknown until its next one, and a step within that has none.
steps_have_states() {
	kinds=event holds "$1" 'events | of("ProxyStep") | length > 100 and (map(select(.sched | not)) | length * 20) <= length'
}

# good NAME CODE: the recording that ended with CODE is clean, lost nothing and has what the job made.
good() {
	same "$rc" "${2:-0}" "exit status" && clean "$1" && lossless "$1" && counted "$1" && joined "$1"
}
