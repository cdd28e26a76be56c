#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One call of malloc, open, read, write, mmap, bpf or perf_event_open fails, by turns (inject.c), over the whole run of
# each command: none crashes, hangs or keeps silent, the job is right, and what was made is written or counted.
# POINTS is how many calls of each kind fail, one in a run; KINDS which.
E2E_TIMEOUT=${E2E_TIMEOUT:-600}
. "$(dirname "$0")/lib.sh"

points=${POINTS:-8}
read -ra kinds <<<"${KINDS:-malloc open read write mmap bpf perf}"
shim=$build/e2e/inject.so
run=(--dry --ranks 2 --iters 4 --bytes 64K --json)
export NCCL_PROFILE_EVENT_MASK=0x10

# with DIR SPEC COMMAND...: in DIR, with the fault; leaves out, err, rc and n there.
with() {
	local dir=$1 spec=$2
	shift 2
	mkdir -p "$dir"
	(
		cd "$dir" || exit
		NCCLSCOPE_STATUS_DIR=$dir/status timeout -k 5 90 env INJECT="$spec" INJECT_OUT="$dir/n" LD_PRELOAD="$shim" \
			"$@" >out 2>err </dev/null
		echo $? >rc
	)
}

# calls DIR KIND: how many there were. hit DIR: how many have failed.
calls() {
	local i
	for i in 0 1 2 3 4 5 6; do
		[ "$(cut -d' ' -f$((i + 1)) <<<"malloc open read write mmap bpf perf")" = "$2" ] && break
	done
	od -An -v -tu8 -j$((8 * i)) -N8 "$1/n" | tr -d ' '
}
hit() {
	od -An -v -tu8 -j56 -N8 "$1/n" | tr -d ' '
}

# sample N: points of 1 to N, the first, the last, and those between at equal distances.
sample() {
	awk -v n="$1" -v p="$points" 'BEGIN {
		if (n <= p) for (i = 1; i <= n; i++) print i
		else for (i = 0; i < p; i++) print int(i * (n - 1) / (p - 1)) + 1 }'
}

# ---- What must hold

# lives DIR: no signal and no hang, a documented status, and a word about a failure.
lives() {
	rc=$(<"$1/rc")
	case $rc in
	0 | 5) return 0 ;;
	1 | 2 | 3 | 4 | 126) grep -qE 'error: .|[a-z]: .' "$1/err" && return 0 ;;
	esac
	echo "exit status $rc, and it said: $(head -n 3 "$1/err")"
	return 1
}

# Of commands that judge: what they find is their output.
told() {
	lives "$1" >/dev/null && return
	rc=$(<"$1/rc")
	[ "$rc" -le 4 ] && [ -s "$1/out" ] && return
	echo "exit status $rc, and it said nothing"
	return 1
}

# What the job made, what the traces have, and what the summary counts as lost.
accounted() {
	local made written lost
	made=$(sed 1d "$1/out" | jq -L "$here" 'include "overload"; made | map(.records) | add')
	written=$(for file in "$1"/o/*.jsonl; do
		[ -s "$file" ] && jq -L "$here" -s 'include "overload"; account.records' "$file"
	done | jq -s 'add // 0')
	# a line that could not be written is two records or one
	lost=$(sed -n 's/^Loss: [0-9]*//p' "$1/err" | tr -d '(),' | awk '{
		for (i = 1; i < NF; i += 2) if ($i == "write-error") n += 2 * $(i + 1); else if ($i != "orphan") n += $(i + 1) }
		END { print n + 0 }')
	[ "$written" = "$made" ] || { [ "$rc" = 5 ] && [ "$written" -lt "$made" ] && [ $((written + lost)) -ge "$made" ]; } && return 0
	echo "exit status $rc, made $made, written $written, lost at most $lost: $(grep Loss: "$1/err")"
	return 1
}

job_ended() {
	[ -n "$(sed 1d "$1/out" | jq .ok)" ]
}

recorded() {
	lives "$1" || return 1
	if grep -q started "$1/out"; then # whatever became of the recorder
		until_true 20 job_ended "$1"
		same "$(sed 1d "$1/out" | jq .ok)" true "the job is right" || return 1
	fi
	[ "$rc" = 0 ] || [ "$rc" = 5 ] || return 0
	"$scope" check -q "$1"/o/*.jsonl >"$1/check" 2>&1 || { "$scope" check "$1"/o/*.jsonl 2>&1 | grep 'error: ' | head -n 5; return 1; }
	accounted "$1"
}

# Where nothing is said of a failure, the answer is the one that is given without.
answered() {
	lives "$1" || return 1
	[ "$rc" != 0 ] || [ -s "$1/err" ] || cmp "$1/out" "${1%/*}/0/out"
}

# ---- Runs

record_one() {
	local dir=$tmp/record/$2/$3
	mkdir -p "$dir"
	cp "$plugin" "$dir/plugin.so" # its own, so that it sees no other's job
	# shellcheck disable=SC2016
	with "$dir" "$2:$3" "$scope" record --strict --plugin "$dir/plugin.so" --mask proxystep -o o -- \
		sh -c 'echo started; exec "$0" "$@"' "$job" "${run[@]}"
}
check_one() {
	with "$tmp/check/$2/$3" "$2:$3" "$scope" check "$tmp/good/1.jsonl" "$tmp/good/2.jsonl"
}
doctor_one() {
	with "$tmp/doctor/$2/$3" "$2:$3" "$scope" doctor --json
}
status_one() {
	with "$tmp/status/$2/$3" "$2:$3" "$scope" status --json
}

# each COMMAND VERDICT: the run without a fault tells how many calls there are of each kind; three at a time.
each() {
	local cmd=$1 verdict=$2 kind n hits
	for kind in "${kinds[@]}"; do
		"${cmd}_one" - "$kind" 0
		t "$cmd: $kind: without a fault" "$verdict" "$tmp/$cmd/$kind/0"
		for n in $(sample "$(calls "$tmp/$cmd/$kind/0" "$kind")"); do
			while [ "$(jobs -rp | grep -vcx "$watchdog")" -ge 3 ]; do sleep 0.02; done
			"${cmd}_one" - "$kind" "$n" &
		done
		while jobs -rp | grep -vqx "$watchdog"; do sleep 0.02; done
		hits=0
		for n in $(sample "$(calls "$tmp/$cmd/$kind/0" "$kind")"); do
			hits=$((hits + $(hit "$tmp/$cmd/$kind/$n")))
			t "$cmd: $kind $n fails" "$verdict" "$tmp/$cmd/$kind/$n"
		done
		n=$(sample "$(calls "$tmp/$cmd/$kind/0" "$kind")" | wc -l)
		t "$cmd: $kind: of $n calls, $hits have failed" [ $((2 * hits)) -ge "$n" ]
	done
}

each record recorded
record good -- "$job" "${run[@]}"
for file in "$tmp"/good/*.jsonl; do mv "$file" "$tmp/good/$((n = ${n:-0} + 1)).jsonl"; done
each check answered
each status told
points=$(((points + 1) / 2)) each doctor told # it takes longest
finish
