#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What privileges the recorder keeps, and that these are enough: for other users' jobs that run already and that start later.
# caps.sh each: what is lost without one of them, for the table of docs/privileges.md; not part of the tests.
. "$(dirname "$0")/lib.sh"

uid=65534 user=65533
kept="bpf perfmon sys_ptrace dac_override checkpoint_restore chown syslog"
"$scope" doctor --json --plugin "$plugin" >"$tmp/doctor"
multi=$(jq -r '.features[] | select(.name == "uprobe-multi") | .status' "$tmp/doctor")
[ "$multi" = works ] || kept="$kept sys_admin"

# set CAP...: as setpriv has it.
set_of() {
	printf -- -all
	printf ',+%s' "$@"
}
# users_job NAME OPTION...: of another user than the recorder.
users_job() {
	local name=$1
	shift
	(cd / && NCCL_PROFILER_PLUGIN=$plugin exec setpriv --reuid $user --regid $user --clear-groups \
		"$job" --json "$@" >"$tmp/$name.out" 2>"$tmp/$name.job-err")
}
# try NAME COMMAND...: a recorder run by COMMAND records a job that runs already, and one that starts then.
try() {
	local name=$1 starter
	shift
	users_job "$name-early" --ranks 2 --bytes 64K --iters 100000 --sleep-us 2000 --no-check &
	starter=$!
	install -d -m 755 -o $uid -g $uid "$tmp/$name.d"
	"$@" env --default-signal=INT "$scope" record --plugin "$plugin" -o "$tmp/$name.d/x" >"$tmp/$name.say" 2>"$tmp/$name.err" &
	recorder=$!
	if until_true 20 grep -q '^ncclscope: Recording' "$tmp/$name.err"; then
		users_job "$name" --ranks 2 --bytes 64K --iters 4 --linger-ms 500 # who it is, is read while it lives
		until_true 5 eval '[ "$(cat "$tmp/'"$name"'.d/x"/*.jsonl | grep -c "\"type\":\"ncclProfileColl\"")" -gt 30 ]'
	fi
	stop_recorder
	pkill -INT -P $starter
	wait $starter 2>/dev/null
	split "$name"
}
# The late job's traces in $tmp/NAME, the early one's in $tmp/NAME-early.
split() {
	local f pid
	mkdir -p "$tmp/$1" "$tmp/$1-early"
	for f in "$tmp/$1.d"/x/*.jsonl; do
		pid=${f##*_pid}
		if jq -e --argjson p "${pid%.jsonl}" '.rank | any(.pid == $p)' "$tmp/$1.out" >/dev/null 2>&1; then
			cp "$f" "$tmp/$1/"
		elif [ -e "$f" ]; then
			cp "$f" "$tmp/$1-early/"
		fi
	done
}
# complete NAME: both jobs' traces are whole, known and their user's.
complete() {
	same "$(stat -c '%u %a' "$tmp/$1.d"/x/*.jsonl | sort -u | xargs)" "$user 640" "owner and mode" && good "$1" && clean "$1-early" &&
		holds "$1-early" '(events | of("Coll") | length > 20) and (records("header") | length == 2)' &&
		holds "$1" 'records("header") | all(.ncclBuildId and (.cmdline | length > 3))' && return
	grep -v '^$' "$tmp/$1.err" | head -n 8
	return 1
}
ambient() {
	local set
	set=$(set_of "$@")
	echo setpriv --reuid $uid --regid $uid --clear-groups "--inh-caps=$set" "--ambient-caps=$set" "--bounding-set=$set"
}

if [ "${1:-}" = each ]; then
	for cap in $kept; do
		# shellcheck disable=SC2046,SC2086
		try "no-$cap" $(ambient ${kept/$cap/})
		echo "without CAP_${cap^^}: recorded late $(q "no-$cap" 'records("header") | length'), early $(q "no-$cap-early" \
			'records("header") | length') of 2, late complete: $(good "no-$cap" >/dev/null 2>&1 && echo yes || echo no)," \
			"libnccl known: $(q "no-$cap" 'records("header") | all(.ncclBuildId)'); $(grep -m 1 -i failed "$tmp/no-$cap.err")"
	done
	exit
fi

# ---- Started as root: what is left of it

record_bg left
[ "$(prlimit -p $recorder --nice --raw --noheadings -o SOFT)" -ge 20 ] || kept="$kept sys_nice" # no CAP_SYS_RESOURCE to raise it
is "recorder of root: what it may" "$(status_of $recorder CapPrm) $(status_of $recorder CapEff)" \
	"$(bits $kept) $(bits $kept)"
is "recorder of root: nothing to gain" "$(status_of $recorder CapInh) $(status_of $recorder CapBnd) $(status_of $recorder CapAmb) $(
	status_of $recorder NoNewPrivs)" "$(bits) $(bits) $(bits) 1"
stop_recorder
is "documented: the same" "$(sed -n 's/^| CAP_\([A-Z_]*\) | kept |.*/\L\1/p' "$top/docs/privileges.md" | sort | xargs)" \
	"$(tr ' ' '\n' <<<"$kept" | sort | sed '/sys_admin/d; /sys_nice/d' | xargs)"
try root env
t "recorder of root: other users' jobs, running and new" complete root

# ---- The job that it starts has what whoever called had

NOTIFY_SOCKET=$tmp/none WATCHDOG_USEC=1000000 record cmd -- sh -c \
	'sleep 0.3; grep -E "^(Cap|NoNewPrivs)" /proc/self/status; env | grep -cE "NOTIFY|WATCHDOG"'
is "the job keeps capabilities, bounding set and setuid programs" "$(grep -v '^[0-9]' "$tmp/cmd.out")" \
	"$(grep -E "^(Cap|NoNewPrivs)" /proc/self/status)"
is "the job is not told of systemd" "$(tail -n 1 "$tmp/cmd.out")" 0

# ---- Started with just that

# shellcheck disable=SC2046,SC2086
try nobody $(ambient $kept)
t "recorder of another user with just that: other users' jobs, running and new" complete nobody
# shellcheck disable=SC2086
try bound setpriv "--bounding-set=$(set_of $kept)"
t "recorder of root with just that: other users' jobs, running and new" complete bound

# ---- With what it starts with, and no more: other users' jobs that run already are hidden from it

users_job hidden --ranks 2 --bytes 64K --iters 100000 --sleep-us 2000 --no-check &
starter=$!
until_true 10 pgrep -P $starter scope-job >/dev/null
sleep 1
# shellcheck disable=SC2046
$(ambient sys_admin sys_ptrace) timeout 30 "$scope" record --plugin "$plugin" -o "$tmp/nobody.d/hidden" -d 500ms >"$tmp/hidden.say" 2>"$tmp/hidden.err"
is "recorder without CAP_DAC_OVERRIDE: does not say that nobody has the plugin" "$? $(grep -c 'No process has the plugin' "$tmp/hidden.err") $(
	grep -c 'No process that may be looked into has the plugin yet' "$tmp/hidden.err") $(
	grep -cE '^ncclscope: [0-9]+ processes? may not be looked into, but by root: ' "$tmp/hidden.err")" "0 0 1 2"
pkill -INT -P $starter
wait $starter 2>/dev/null

# ---- With CAP_SYS_ADMIN in place of those that were split off from it: it stays

admin="sys_admin sys_ptrace dac_override chown"
# shellcheck disable=SC2046,SC2086
try admin $(ambient $admin)
t "recorder with CAP_SYS_ADMIN in place of CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE: other users' jobs" complete admin
# shellcheck disable=SC2046,SC2086
$(ambient $admin) timeout 30 "$scope" record --plugin "$plugin" -o "$tmp/admin.d/w" --every 2s --for 300ms -d 3s >"$tmp/windows.out" 2>"$tmp/windows.err"
is "the same: further windows" "$? $(($(grep -c ': Recording' "$tmp/windows.err") > 1)) $(grep -c Failed "$tmp/windows.err")" "0 1 0"

finish
