#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `record --raw` without -o decodes nothing, and yet the capture has all that a trace needs: a job from its start with all
# its context, one that runs before and after, what hangs, what is lost. How many of the plugin's records are lost the recorder
# says as the conversion does.
. "$(dirname "$0")/lib.sh"

# capture NAME [OPTION...] [-- CMD...]: as record, into $tmp/NAME.raw alone.
capture() {
	local name=$1
	shift
	(cd "$tmp" && timeout 60 "$scope" record --plugin "$plugin" --raw "$tmp/$name.raw" "$@") >"$tmp/$name.out" 2>"$tmp/$name.err"
	rc=$?
	return 0
}

# convert NAME: into $tmp/NAME, messages in $tmp/NAME.say
convert() {
	"$scope" convert "$tmp/$1.raw" -o "$tmp/$1" >"$tmp/$1.say" 2>&1
}

# losses FILE [CAUSE...]: what it says after "Loss:"; of causes, all together.
losses() {
	local file=$1 causes
	shift
	causes=$(tr ' ' '|' <<<"$*")
	sed -n 's/^Loss: //p' "$file" |
		if [ -z "$causes" ]; then cat; else grep -oE "[( ]($causes) [0-9]+" | awk '{ n += $2 } END { print n + 0 }'; fi
}

# ---- From its start

capture job --strict --sched=slices --net=flows -- "$job" --json --ranks 3 --op mix --bytes 1M --iters 30
t "a job: all that it made, by its own count" eval 'convert job && good job'
t "the kernel's context of all steps" eval 'steps_have_states job && holds job "events | of(\"ProxyStep\") | all(.net)"'
t "slices, flows, their ends" holds job '(records("slice") | length > 100) and
	(records("flow") | map(select(.end)) | length >= 6)'
is "nothing but the capture" "$(cd "$tmp" && ls -d ncclscope_dump-* 2>/dev/null)" ""
is "the recorder says what it is" "$(grep -cE '^Records: [1-9][0-9]* of 3 processes, not decoded$' "$tmp/job.err")" 1
is "no losses, by either" "$(losses "$tmp/job.err") $(losses "$tmp/job.say")" "0 0"

capture dies --sched=off --net=off -- "$job" --json --ranks 2 --op allreduce --bytes 1M --iters 30 --fault kill:rank=1:iter=20
t "a process that is killed" eval 'convert dies && clean dies && holds dies "records(\"footer\") | map(.end) | any(. == \"signal 9\")"'

# ---- A part of a job

job_bg part --ranks 2 --op allreduce --bytes 1M --iters 1000000 --sleep-us 1000 --no-check
ranks_of 2
sleep 0.5
capture part -d 1s
t "picked up while it runs, left while it runs" eval 'same $rc 0 && convert part && clean part && began_amid part'
t "what it did between is whole" holds part '(events | of("Coll") | length > 100) and (events | map(select(.unfinished)) == [])'
# What progress threads do besides goes on.
t "and it ends soon after" holds part 'events | (of("ProxyCtrl") | map(.start.ts) | max) - (of("Coll") | map(.start.ts) | max) | . > 0 and . < 1.2e6'
capture few --collectives 7
t "--collectives" eval 'same $rc 0 && convert few && clean few && began_amid few'
is "--collectives: of each process" "$(q few '[events | of("Coll") | group_by(.myPid)[] | length] | tojson')" "[7,7]"

kill_job

# ---- What hangs

job_bg hangs --ranks 2 --op allreduce --bytes 1M --iters 1000000 --no-check
ranks_of 2

recorder_bg hangs --raw "$tmp/hangs.raw"
knows() {
	"$scope" status --json | jq -e '.recorders[0] | .updatedUs as $now | .processes | length == 2 and
		all(.communicators == 1 and .records > 1000 and $now - .lastRecordUs < 1e6)'
}
t "status knows processes, communicators, and that records come" until_true 5 knows
is "status names the capture" "$("$scope" status --json | jq -c '.recorders | map(.options.capture)') $("$scope" status | grep -c "hangs.raw$")" "[\"$tmp/hangs.raw\"] 1"
is "top says why it has no operations" "$("$scope" top -b -n 1 | grep -c '^1 recorder, .* (--raw: no operations)$')" 1
capturing=$recorder
record_bg beside
t "top beside one that traces, too" until_true 5 eval '"$scope" top -b -n 1 | grep -q "^2 recorders, .* (some --raw: no operations of theirs)$"'
stop_recorder
recorder=$capturing
kill -STOP "${ranks[1]}"
sleep 3
kill -CONT "${ranks[1]}"
sleep 0.3
stop_recorder
kill_job
t "a rank that is stopped: its peer's steps are open" eval 'convert hangs && clean hangs && holds hangs "records(\"open\") |
	map(select(.myPid == '"${ranks[0]}"' and .eventType == \"ncclProfileProxyStep\")) | length > 0"'
t "and what its threads do" holds hangs 'records("open") | any(.sched.state == "blocked")'

# ---- What is lost

recorder_bg lost --strict --raw "$tmp/lost.raw" --ring 256K
job_bg lost --ranks 4 --op allreduce --bytes 64K --iters 1000000 --no-check
ranks_of 4
sleep 0.5
kill -STOP "$recorder"
sleep 1
kill -CONT "$recorder"
sleep 0.5
kill_job
stop_recorder
convert lost
is "--strict" $rc 5
t "much is lost: $(losses "$tmp/lost.err")" eval '[ "$(losses "$tmp/lost.err" ring-full rate-limit)" -gt 1000 ] && clean lost'
is "records that are lost: the conversion's number" "$(losses "$tmp/lost.err" ring-full rate-limit)" "$(losses "$tmp/lost.say" ring-full rate-limit)"
# A switch of two recorded threads is one record, and missing in the time of both.
t "the kernel's context: of each lost record one thread or two know" \
	awk -v all="$(losses "$tmp/lost.say" context-ring-full)" -v n="$(losses "$tmp/lost.err" context-ring-full)" 'BEGIN { exit !(n > 0 && all > 0 && all <= 2 * n) }'

finish
