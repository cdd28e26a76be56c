#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A job that hangs, or rests, when its recording begins: what its ranks are in is told although they hand in nothing.
. "$(dirname "$0")/lib.sh"

# still NAME FILTER: of what the report says of those that do nothing.
still() {
	"$scope" report --json "$tmp/$1" | jq -c "$2"
}

files_of() {
	find "$tmp/$1" -name '*.jsonl' | wc -l
}

# ---- Hung: rank 1 waits for its data loader, which has the plugin and no communicator

job_bg hung --ranks 3 --bytes 64K --iters 1000 --no-check --fault late:rank=1:every=4:ms=100000:loader=1
ranks_of 3
sleep 2
record hung --raw "$tmp/hung.raw" -d 4s
mkdir "$tmp/again"
"$scope" convert -o "$tmp/again" "$tmp/hung.raw" >/dev/null 2>&1
is "hung: a file of each rank, and none of others" "$(files_of hung)" 3
t "hung: clean, lossless" eval 'clean hung && lossless hung'
is "hung: whose they are" "$(q hung 'lifecycle("ProfilerInit") | map(.rank) | sort | tojson')" '[0,1,2]'
is "hung: each first thread, from when it was found to the end" \
	"$(q hung '(records("header") | map(.pid)) as $pids | [records("thread")[] | select(.stop and ([.tid] | inside($pids))) | [.state, .stop - .since > 1e6, .stateSince == .since]] | unique | tojson')" \
	'[["blocked",true,true]]'
if [ "$(q hung 'records("header")[0].features.blockedIn')" = true ]; then
	for run in hung again; do
		is "$run: what each is in, first who is apart" "$(still $run '[.still[] | [.rank, .apart, .in, .file // "", (.stack | test("^[a-z_]+ < ")), .asleep > 1]]')" \
			'[[1,true,"read","pipe",true,true],[0,false,"futex","",true,true],[2,false,"futex","",true,true]]'
	done
	t "hung: the recorder's end says so" grep -qE '^1 +scope-job.* > [0-9.]+ s ! read on pipe \(' "$tmp/hung.err"
fi
record one -p "${ranks[1]}" -d 4s
is "hung, by its number: that one" "$(still one '[.still[] | [.rank, .asleep > 1]]')" '[[1,true]]'
kill -STOP "${ranks[2]}"
record stopped -d 4s
is "hung, and one stopped: that is what it is in" "$(still stopped '[.still[] | select(.rank == 2) | .in, .file]')" '["stopped",null]'
kill_job

# ---- Hung beside another job that goes on: of each what there is to be told

job_bg healthy --ranks 2 --bytes 64K --iters 100000 --period-us 50000 --no-check
ranks_of 2
healthy=("${ranks[@]}" "$starter")
job_bg beside --ranks 3 --bytes 64K --iters 1000 --no-check --fault late:rank=1:every=4:ms=100000:loader=1
ranks_of 3
sleep 2
record beside -d 4s
t "beside another job: that one's operations" holds beside 'events | of("Coll") | length > 10'
is "beside another job: those that do nothing" "$(still beside '[.still[].pid] | sort')" "$(printf '%s\n' "${ranks[@]}" | jq -cs sort)"
t "beside another job: the recorder's end says so" grep -q '^No operation began or ended in another job: what' "$tmp/beside.err"
t "beside another job: behind the verdicts" eval '"$scope" report "$tmp/beside" | grep -oE "^(Why it was slow|No operation began)" | tr "\n" , | grep -qx "Why it was slow,No operation began,"'
kill_job
starter=${healthy[2]} ranks=("${healthy[@]:0:2}")
kill_job

# ---- Hung, and killed while it is recorded: by whom, and what each was in before

job_bg killed --ranks 3 --bytes 64K --iters 1000 --no-check --fault late:rank=1:every=4:ms=100000:loader=1
ranks_of 3
sleep 2
record_bg killed
sleep 4
kill -KILL "${ranks[@]}"
until_true 20 ended "$starter"
sleep 0.5
stop_recorder INT
t "killed: clean" clean killed
is "killed: by whom" "$(still killed "[.still[] | [.rank, .end, (.how | startswith(\"SIGKILL was sent by still.sh[$$]\"))]] | sort")" '[[0,"signal 9",true],[1,"signal 9",true],[2,"signal 9",true]]'
if [ "$(q killed 'records("header")[0].features.blockedIn')" = true ]; then
	is "killed: what each had been in, first who is apart" "$(still killed '[.still[] | [.rank, .apart, .in, .file // "", .asleep > 1]]')" \
		'[[1,true,"read","pipe",true],[0,false,"futex","",true],[2,false,"futex","",true]]'
fi
is "killed: no verdict" "$(still killed '.verdicts')" '[]'

# ---- Resting: what comes then is recorded as of any job

job_bg resting --ranks 2 --bytes 64K --iters 8 --json --fault late:rank=1:every=4:ms=8000
ranks_of 2
sleep 1.5
record_bg resting
until_true 5 eval '[ "$(files_of resting)" = 2 ]'
is "resting: found" "$(files_of resting)" 2
is "resting: before it did anything" "$(q resting 'events | map(select(.type | test("Coll|Proxy"))) | length')" 0
until_true 30 ended "$starter"
sleep 0.5
stop_recorder INT
is "resting: the job's results" "$(jq -r .ok "$tmp/resting.out")" true
t "resting: clean, as one that was joined" eval 'clean resting && began_amid resting'
t "resting: its operations" holds resting 'events | of("Coll") | length >= 6'
is "resting: nothing is still" "$(still resting '.still')" '[]'
is "resting: the threads' roles" "$(q resting '[records("thread")[] | select(.stop) | .role] | contains(["app", "proxy"]) | tojson')" true

# ---- Without the scheduler's context

job_bg none --ranks 2 --bytes 64K --iters 1000 --no-check --fault late:rank=1:every=4:ms=100000
ranks_of 2
sleep 1
record off --sched=off --net=off -d 3s
is "--sched=off: a file of each rank" "$(files_of off)" 2
t "--sched=off: clean, lossless" eval 'clean off && lossless off'
is "--sched=off: of no thread what it is in" "$(q off '[records("thread")[] | has("state")] | unique | tojson')" '[false]'
kill_job

# ---- Recorded for less than a second: nothing is known of it, but that it is there

job_bg brief --ranks 2 --bytes 64K --iters 1000 --no-check --fault late:rank=1:every=4:ms=100000
ranks_of 2
sleep 1
# short NAME OPTION...: too short to ask those that hand in nothing. They have the plugin all the same.
short() {
	record "$@" -d 700ms
	is "hung, for less than a second, $1: none has no plugin" "$rc $(
		grep -c "Start jobs with\|made a communicator" "$tmp/$1.err") $(
		grep -cE '^ncclscope: [0-9]+ process(es have| has) the plugin, and nothing happened in (them|it): of a job that hangs or idles record 3 s or longer' "$tmp/$1.err")" "0 0 1"
}
short brief
short brief-pid -p "${ranks[1]}"
recorder_bg brief-raw --raw "$tmp/brief.raw" -d 700ms
until_true 20 ended "$recorder"
is "hung, for less than a second, captured: none has no plugin" "$(grep -c "Start jobs with\|made a communicator" "$tmp/brief-raw.err")" 0
kill_job

finish
