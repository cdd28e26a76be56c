#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The systemd unit: what systemd says of it; and, since a test has no systemd to start it, the recorder in a sandbox made by hand from
# the unit's own lines (capabilities, no_new_privs, read-only mounts), its system calls held against the unit's filter, and
# what it tells the service manager.
. "$(dirname "$0")/lib.sh"

unit=$top/packaging/ncclscope.service
user=65533
# of KEY: the values of all its lines.
of() {
	sed -n "s/^$1=//p" "$unit" | xargs
}

# ---- By systemd

if command -v systemd-analyze >/dev/null; then
	mkdir "$tmp/unit"
	sed "s|^ExecStart=[^ ]*|ExecStart=$scope|; /^Documentation/d" "$unit" >"$tmp/unit/ncclscope.service"
	is "systemd finds nothing wrong with it" "$(systemd-analyze verify "$tmp/unit/ncclscope.service" 2>&1)" ""
	t "systemd: exposure of at most 4.0" systemd-analyze security --offline=true --threshold=40 "$tmp/unit/ncclscope.service"
else
	skip "systemd-analyze" "not installed"
fi
# Not PREFIX: that is in the program, which would be made again, and which other tests run.
make -s -C "$top" BUILD="$build" DESTDIR="$tmp/inst" BINDIR=/opt/n/bin UNITDIR=/opt/n/units install >"$tmp/make" 2>&1
is "installed, for the program that is installed" "$(grep -o '^ExecStart=[^ ]*' "$tmp/inst/opt/n/units/ncclscope.service")" \
	"ExecStart=/opt/n/bin/ncclscope"
is "installed, not enabled" "$(find "$tmp/inst" -name '*.wants')" ""

# ---- A wrong option

"$scope" record --plugin "$plugin" --keep 1G 2>"$tmp/wrong.err"
is "an option that is wrong: it ends, and is not started again" "$? $(of RestartPreventExitStatus)" "2 2"

# ---- In a sandbox like the unit's

caps=$(of CapabilityBoundingSet)
multi=$("$scope" doctor --json --plugin "$plugin" | jq -r '.features[] | select(.name == "uprobe-multi") | .status')
[ "$multi" = works ] || caps="$caps CAP_SYS_ADMIN" # as the unit says
set=-all$(tr 'A-Z' 'a-z' <<<"$caps" | sed 's/ *cap_/,+/g')
run=$(of RuntimeDirectory)
mkdir -p "$tmp/logs" "$tmp/run/${run:-none}"
cat >"$tmp/listen.py" <<-'EOT'
	import socket, sys
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.bind(sys.argv[1])
	while True:
	    print(s.recv(4096).decode(), flush=True)
EOT
python3 "$tmp/listen.py" "$tmp/notify" >"$tmp/told" 2>"$tmp/listen.err" &
listener=$!
until_true 10 test -S "$tmp/notify"
cat >"$tmp/sandbox" <<-'EOT'
	mount --make-rprivate / && mount --bind "$tmp/logs" "$tmp/logs" && mount --bind "$tmp/run/$run" "$tmp/run/$run" || exit 1
	awk '{ print $5 }' /proc/self/mountinfo | while read -r at; do
		case $at in /proc | "$tmp/logs" | "$tmp/run/$run") ;; *) mount -o remount,bind,ro "$at" 2>/dev/null ;; esac
	done
	if touch "$tmp/ro" 2>/dev/null; then echo "$tmp is not read-only" >&2; exit 1; fi
	cd "$tmp/logs" || exit 1
	exec setpriv "--bounding-set=$set" --no-new-privs "$@"
EOT
tracer=()
command -v strace >/dev/null && tracer=(strace -D -f -qq -o "$tmp/logs/.calls")
umask "$(of UMask)"
env tmp="$tmp" set="$set" run="${run:-none}" NCCLSCOPE_STATUS_DIR="$tmp/run/ncclscope" NOTIFY_SOCKET="$tmp/notify" WATCHDOG_USEC=400000 unshare -m --propagation unchanged bash "$tmp/sandbox" \
	"${tracer[@]}" env --default-signal=INT "$scope" record --plugin "$plugin" 2>"$tmp/box.err" &
recorder=$!
begins() {
	until_true 30 grep -q '^READY=1' "$tmp/told" && grep -q '^ncclscope: Recording' "$tmp/box.err" && return
	cat "$tmp/box.err" "$tmp/listen.err"
	return 1
}
t "sandbox: it begins" begins
pid=$(pgrep -f "^$scope record" | head -n 1)
users() {
	(cd / && NCCL_PROFILER_PLUGIN=$plugin SLURM_JOB_ID=7 setpriv --reuid $user --regid $user --clear-groups "$job" --json --ranks 2 --bytes 64K \
		--iters 4 --linger-ms 300)
}
t "sandbox: 'status' sees it" until_true 5 test -s "$tmp/run/ncclscope/recorder-$pid.json"
users >"$tmp/box.out"
until_true 5 eval '[ "$(cat "$tmp"/logs/*/*.jsonl | grep -c "\"footer\"")" = 2 ]'
t "sandbox: the watchdog is fed" until_true 5 grep -q '^WATCHDOG=1' "$tmp/told"
kill -TERM "${pid:-$recorder}"
wait $recorder
rc=$?
mkdir "$tmp/box"
cp "$tmp"/logs/*/*.jsonl "$tmp/box/"
t "sandbox: another user's job is complete" good box
is "sandbox: its files" "$(stat -c '%u %a' "$tmp"/logs/*/*.jsonl | sort -u) $(find "$tmp/logs" -mindepth 1 -maxdepth 1 -type d -printf '%f %m')" \
	"$user 640 ncclscope_dump-7 755"
t "sandbox: the job's user can read them" setpriv --reuid $user --regid $user --clear-groups sh -c "cat $tmp/logs/*/*.jsonl"
# To stop takes a while, and the watchdog is fed meanwhile.
told=$(uniq "$tmp/told" | xargs)
is "sandbox: what systemd was told, in order" "${told/%STOPPING=1 WATCHDOG=1/STOPPING=1}" "READY=1 WATCHDOG=1 STOPPING=1"
kill $listener

# ---- With --delay

# A start that takes as long as that would be ended, and begun again, for good.
python3 "$tmp/listen.py" "$tmp/notify2" >"$tmp/told2" 2>"$tmp/listen2.err" &
listener=$!
until_true 10 test -S "$tmp/notify2"
NOTIFY_SOCKET=$tmp/notify2 WATCHDOG_USEC=400000 env --default-signal=INT "$scope" record --plugin "$plugin" -o "$tmp/delayed" --delay 1h 2>"$tmp/delayed.err" &
recorder=$!
t "--delay: it is started when it waits" until_true 5 grep -q '^READY=1' "$tmp/told2"
t "--delay: the watchdog is fed meanwhile" until_true 5 grep -q '^WATCHDOG=1' "$tmp/told2"
stop_recorder TERM
is "--delay: and it had not recorded" "$rc $(grep -c 'Stopped before the recording began' "$tmp/delayed.err")" "1 1"
kill $listener

# ---- What it calls

if command -v strace >/dev/null && command -v systemd-analyze >/dev/null; then
	# every group that the unit names, with the groups in it
	calls_of() {
		local word
		for word; do
			case $word in
			@*)
				# shellcheck disable=SC2046
				calls_of $(systemd-analyze syscall-filter "$word" | sed '1d; /^ *#/d')
				;;
			*) echo "$word" ;;
			esac
		done
	}
	sed -n 's/^SystemCallFilter=//p' "$unit" | while read -r line; do
		# shellcheck disable=SC2046,SC2086
		case $line in
		~*) calls_of ${line#\~} | sed 's/^/- /' ;;
		*) calls_of $line | sed 's/^/+ /' ;;
		esac
	done | awk '{ a[$2] = $1 } END { for (c in a) if (a[c] == "+") print c }' | sort >"$tmp/allowed"
	sed -n 's/^[0-9]* *\([a-z0-9_]*\)(.*/\1/p' "$tmp/logs/.calls" | sort -u >"$tmp/used"
	t "the filter was read, and calls seen" eval '[ $(wc -l <"$tmp/allowed") -gt 200 ] && grep -qx bpf "$tmp/used"'
	is "no system call that the unit forbids" "$(comm -23 "$tmp/used" "$tmp/allowed" | xargs)" ""
else
	skip "system calls" "needs strace and systemd-analyze"
fi

finish
