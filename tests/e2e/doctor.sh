#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ncclscope doctor, as root, as nobody, with too few capabilities, without BTF, with good, bad and no
# plugin. What it says is held against what the node says by other means where there are any.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
scope=$(realpath "${NCCLSCOPE:-$top/build/ncclscope}")
plugin=$(realpath "${NCCLSCOPE_PLUGIN:-$top/build/libnccl-profiler-ncclscope.so}")
unset NCCLSCOPE_PLUGIN NO_COLOR

if [ "$(id -u)" != 0 ]; then
	echo "SKIP: doctor.sh takes root, to become other users"
	exit 77
fi
for tool in jq setpriv readelf script taskset unshare; do
	if ! command -v $tool >/dev/null; then
		echo "SKIP: doctor.sh needs $tool"
		exit 77
	fi
done

umask 022 # other users run it
tmp=$(mktemp -d -p /tmp)
quota_v1=/sys/fs/cgroup/cpu/ncclscope-doctor-$$
quota_v2=/sys/fs/cgroup/ncclscope-doctor-$$
cleanup() {
	rm -rf "$tmp"
	rmdir $quota_v1/below $quota_v1 $quota_v2/below $quota_v2 2>/dev/null
}
trap cleanup EXIT
chmod 755 "$tmp"
mkdir "$tmp/bin" "$tmp/lib"
install -m 755 "$scope" "$tmp/bin/ncclscope" # where nobody can reach it
failed=0

# ok WHAT COMMAND...: runs the command, which must succeed.
ok() {
	local what=$1
	shift
	if "$@"; then
		echo "ok: $what"
	else
		echo "FAILED: $what ($*)"
		failed=$((failed + 1))
	fi
}

# doctor STATUS ARGS...: runs it, expects that exit status, leaves $tmp/out and $tmp/err.
doctor() {
	local want=$1 rc
	shift
	"${as[@]}" "$tmp/bin/ncclscope" doctor "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	ok "${as[*]:+${as[*]} }doctor${*:+$(printf ' %q' "$@")}: exit status $want" [ $rc = "$want" ]
	[ $rc = "$want" ] || sed 's/^/  | /' "$tmp/out" "$tmp/err"
}

# status NAME: of that feature in the JSON of the last run; detail and advice alike.
field() { jq -r --arg n "$1" ".features[] | select(.name == \$n) | .$2" "$tmp/out"; }
status() { field "$1" status; }
has() { grep -q -- "$1" "$tmp/out"; }
hasnt() { ! has "$1"; }
json() { jq -e "$1" "$tmp/out" >/dev/null; }

as=()

# ---- As root, everything there

doctor 0 --json --plugin "$plugin"
ok "JSON: head" json '.schema == 1 and .tool == "ncclscope" and .ready == true and .exit == 0'
ok "JSON: kernel and machine" [ "$(jq -r '.kernel + " " + .arch' "$tmp/out")" = "$(uname -r) $(uname -m)" ]
ok "JSON: every row is whole" json '.features | length > 40 and all(
	(.name | length > 0) and (.group | length > 0) and (.neededFor | length > 0) and
	(.required | type == "boolean") and (.detail | length > 0) and
	(.status | IN("works", "missing", "denied", "optional-missing")) and
	((.status == "works") == (.advice == "")))'
ok "JSON: no name twice" json '[.features[].name] | length == (unique | length)'
ok "JSON: ready means that all required rows work" \
	json '[.features[] | select(.required and .status != "works")] == []'
ok "it takes no more than 5 s (2 s meant)" json '.seconds < 5'
ok "nothing on stderr" [ ! -s "$tmp/err" ]
case $(field usdt-semaphore detail) in
*"semaphore 0-1-0"*) ok "the semaphore was seen to move" true ;;
*) ok "the semaphore was seen to move: $(field usdt-semaphore detail)" false ;;
esac

multi=$(status uprobe-multi)
ok "attach-path: as the kernel can" grep -q "^$([ "$multi" = works ] && echo uprobe_multi || echo perf)" \
	<<<"$(field attach-path detail)"
[ "$multi" != works ] || ok "uprobe_multi: the semaphore was seen to move" grep -q 'semaphore 0-1$' \
	<<<"$(field uprobe-multi detail)"

# ---- Kernel context

for name in wakeup wakeup_new migrate_task process_fork; do
	ok "tp_btf-sched_$name fires" grep -q '^attached' <<<"$(field "tp_btf-sched_$name" detail)"
done
for name in irq_handler_entry irq_handler_exit softirq_entry softirq_exit; do
	ok "tp_btf-$name is attached" grep -q '^attached' <<<"$(field "tp_btf-$name" detail)"
done
ok "the system call in progress, if any, is the right one" \
	grep -qE '^(clock_nanosleep of|load:)' <<<"$(field syscall-in-progress detail)"
ok "schedstat as /proc has it" [ "$(status schedstat)" = \
	"$([ -e /proc/self/schedstat ] && echo works || echo optional-missing)" ]
ok "none of this is required" json '[.features[] | select(.required) | .name | select(test(
	"wakeup|migrate|fork|irq|syscall|run-queue|throttling|cpu-stat|schedstat"))] == []'
as=(taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')")
doctor 0 --json --plugin "$plugin"
ok "one CPU: no move to be seen" [ "$(field tp_btf-sched_migrate_task detail)" = \
	"attached, there is no second CPU to move to" ]
as=()

# ---- Network context

net_rows='select(.group == "network context")'
ok "network: none of it is required" json "[.features[] | $net_rows | .required] | length >= 15 and any == false"
for name in tp_btf-inet_sock_set_state tp_btf-tcp_send_reset; do
	ok "network: $name fires" [ "$(field $name detail)" = "attached, fired" ]
done
for name in tcp_destroy_sock tcp_retransmit_skb tcp_receive_reset kfree_skb; do
	ok "network: tp_btf-$name is attached" grep -q '^attached' <<<"$(field "tp_btf-$name" detail)"
done
ok "network: a connection's figures are the right ones" [ "$(field core-tcp_sock detail)" = \
	"1000 bytes sent, as it was" ]
ok "network: all open files are walked" [ "$(field iter-task_file detail | tr -dc 0-9)" -ge 10 ]
ok "network: a program is run by its number" [ "$(field prog-run detail)" = "ran" ]
# One word with a dash is a row's name there.
mapfile -t rows < <(sed -n 's/^\.Cm \([a-z]*-[a-z_-]*\).*/\1/p' "$top/man/ncclscope-doctor.1")
ok "the man page names rows that there are (${#rows[@]})" json \
	"[.features[].name] as \$there | [$(printf '"%s",' "${rows[@]}")empty] | length > 5 and all(IN(\$there[]))"
ok "network: senders and receivers, by tracepoint or by function" json '[.features[] |
	select(.status == "works") | .name] | (contains(["tp_btf-sock_send_length"]) and
	contains(["tp_btf-sock_recv_length"])) or (contains(["tp_btf-rcv_space_adjust"]) and
	(contains(["fexit-tcp_sendmsg"]) or contains(["kprobe-tcp_sendmsg"])))'
ok "network: why a packet was dropped, if the kernel says" \
	grep -qE '^(a refused connection: [A-Z_]+|attached, none came|load: this kernel does not say)' \
	<<<"$(field drop-reasons detail)"
as=(unshare -n)
doctor 0 --json --plugin "$plugin"
ok "network: no loopback device: said" [ "$(field tp_btf-sock_send_length detail)" = \
	"attached, no connection can be made to 127.0.0.1" ]
as=()
doctor 0 --json --plugin "$plugin"

# A cgroup with a quota, held back by it; and no cgroups at all.
make_quota() {
	if mkdir $quota_v1 2>/dev/null && echo 50000 >$quota_v1/cpu.cfs_quota_us; then
		quota=$quota_v1
	elif mkdir $quota_v2 2>/dev/null && echo "50000 100000" >$quota_v2/cpu.max; then
		quota=$quota_v2
	fi 2>/dev/null
}
throttled() { awk '$1 ~ /^throttled_/ { print $2 }' "$quota/cpu.stat"; }
held_back() {
	local burner i
	(echo "$BASHPID" >$quota/cgroup.procs && while :; do :; done) &
	burner=$!
	for ((i = 0; i < 200 && $(throttled) == 0; i++)); do sleep 0.1; done
	kill $burner
	wait $burner 2>/dev/null
	[ "$(throttled)" != 0 ]
}
quota=
make_quota
if [ -n "$quota" ]; then
	mkdir $quota/below
	ok "quota: it holds back" held_back
	as=(sh -c "echo \$\$ >$quota/cgroup.procs; exec \"\$@\"" sh)
	doctor 0 --json --plugin "$plugin"
	ok "quota: seen, as cpu.stat has it" \
		grep -qE '^[1-9][0-9]* us throttled, as in cpu.stat$' <<<"$(field cfs-throttling detail)"
	ok "quota: found" grep -qE 'a quota, [1-9][0-9]* of' <<<"$(field cgroup-cpu-stat detail)"
	as=(sh -c "echo \$\$ >$quota/below/cgroup.procs; exec \"\$@\"" sh)
	doctor 0 --json --plugin "$plugin"
	ok "quota: found from a cgroup below" grep -qE 'a quota, [1-9][0-9]* of' \
		<<<"$(field cgroup-cpu-stat detail)"
	as=()
	ok "quota: nothing left in it" rmdir $quota/below $quota
else
	echo "not checked: quotas, no cgroup with one can be made here"
fi
as=(unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"' sh)
doctor 0 --json --plugin "$plugin"
ok "no cgroups: said" [ "$(status cgroup-cpu-stat)" = optional-missing ]
ok "no cgroups: quotas are read all the same" [ "$(status cfs-throttling)" = works ]
as=()

# ---- What else can be held against the node
doctor 0 --json --plugin "$plugin"
pmu=/sys/bus/event_source/devices
if [ -e $pmu/kprobe ] || [ -d /sys/kernel/tracing/events ] || [ -d /sys/kernel/debug/tracing/events ]; then
	echo "not checked: kprobe and tracepoint without their kernel parts, which are here"
else
	ok "no kprobe events, no kprobe" [ "$(status kprobe)" = optional-missing ]
	ok "no tracefs, no tracepoint" [ "$(status tracepoint)" = optional-missing ]
fi
ok "clock source" grep -q "^$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" \
	<<<"$(field clocksource detail)"
if grep -qw nonstop_tsc /proc/cpuinfo; then
	ok "invariant TSC as in /proc/cpuinfo" [ "$(status cpu-counter)" = works ]
fi
ok "plugin: build id as readelf has it" [ "$(field plugin-build-id detail)" = \
	"$(readelf -n "$plugin" | sed -n 's/.*Build ID: //p')" ]
ok "plugin: path" [ "$(field plugin-path detail)" = "$plugin" ]
if command -v bpftool >/dev/null; then
	ok "no program left behind" [ -z "$(bpftool prog show | grep scope_p_)" ]
	ok "no map left behind" [ -z "$(bpftool map show | grep scope_p_)" ]
fi

# ---- The table

doctor 0 --plugin "$plugin"
ok "table: fits 100 columns" [ -z "$(awk 'length > 100' "$tmp/out")" ]
ok "table: no colour into a pipe" hasnt $'\033'
ok "table: verdict" has '^Ready: '
doctor 0 -v --plugin "$plugin"
ok "table: -v says what for" has 'for: '
in_terminal() { script -qec "$1 $tmp/bin/ncclscope doctor --plugin $plugin" /dev/null >"$tmp/out"; }
in_terminal "env TERM=xterm"
ok "table: colour on a terminal" has $'\033\[32mworks'
in_terminal "env TERM=xterm NO_COLOR=1"
ok "table: no colour under NO_COLOR" hasnt $'\033'

# ---- Two at a time: the semaphore is one and the same for both

"$tmp/bin/ncclscope" doctor --json --plugin "$plugin" >"$tmp/other" &
doctor 0 --plugin "$plugin"
wait $!
ok "another doctor at the same time" [ $? = 0 ]

# ---- Where the plugin is looked for

doctor 1 --json --plugin "$tmp/none.so"
ok "no such plugin" [ "$(status plugin-path)" = missing ]
ok "no such plugin: advice" grep -q -- --plugin <<<"$(field plugin-path advice)"
doctor 1 --json --plugin "$tmp"
ok "a directory is no plugin" [ "$(status plugin-path)" = missing ]
install -m 644 "$plugin" "$tmp/lib/"
doctor 0 --json
ok "found in ../lib of the program" [ "$(field plugin-path detail)" = \
	"$tmp/lib/libnccl-profiler-ncclscope.so" ]
install -m 644 "$plugin" "$tmp/env.so"
as=(env "NCCLSCOPE_PLUGIN=$tmp/env.so")
doctor 0 --json
ok "the environment beats the program's place" [ "$(field plugin-path detail)" = "$tmp/env.so" ]
doctor 0 --json --plugin "$plugin"
ok "the option beats the environment" [ "$(field plugin-path detail)" = "$plugin" ]
as=(env "NCCLSCOPE_PLUGIN=$tmp/none.so")
doctor 1
ok "a wrong environment is not passed over" has "$tmp/none.so"
as=()

# ---- Plugins that are none

echo "no library" >"$tmp/bad.so"
doctor 1 --json --plugin "$tmp/bad.so"
ok "a text file has no probes" [ "$(status plugin-probes)" = missing ]
libc=$(ldd "$scope" | awk '/libc\.so/ { print $3 }')
doctor 1 --json --plugin "$libc"
ok "libc: build id" [ "$(status plugin-build-id)" = works ]
ok "libc: no probes of ours" grep -q flush <<<"$(field plugin-probes detail)"
ok "libc: no NCCL interface" [ "$(status plugin-nccl-versions)" = missing ]
for len in 0 63 64 1000 $(($(stat -c %s "$plugin") / 2)); do
	head -c "$len" "$plugin" >"$tmp/bad.so"
	doctor 1 --plugin "$tmp/bad.so"
done
printf -v name 'bad\n\033[31m\377.so'
cp "$tmp/env.so" "$tmp/$name"
doctor 0 --plugin "$tmp/$name"
ok "a hostile name brings no escape code" hasnt $'\033'
doctor 0 --json --plugin "$tmp/$name"
ok "a hostile name leaves JSON whole" json .

# ---- Less than root

as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
doctor 3
ok "nobody: told what to do" has 'Run ncclscope as root'
ok "nobody: told so once, not for each row" [ "$(grep -c 'Run ncclscope as root' "$tmp/out")" -le 3 ]
ok "nobody: BTF can be read all the same" has '^  btf  *works'
doctor 3 --json
ok "nobody: denied, not missing" [ "$(status ring-buffer)" = denied ]
ok "nobody: context is denied as well" [ "$(status tp_btf-sched_wakeup)" = denied ]
ok "nobody: the network is denied as well" [ "$(status tp_btf-inet_sock_set_state)" = denied ]
ok "nobody: cpu.stat is there for all" json '.features[] | select(.name == "cgroup-cpu-stat") |
	.status != "denied"'
ok "nobody: plugin is looked at" [ "$(status plugin-probes)" = works ]
as=(setpriv "--bounding-set=-bpf,-perfmon,-sys_admin")
doctor 3 --json
ok "root without capabilities: denied" [ "$(status uprobe)" = denied ]
if unshare -Ur true 2>/dev/null; then
	as=(unshare -Ur)
	doctor 3 --json
	ok "user namespace: said" [ "$(status init-user-namespace)" = denied ]
	ok "user namespace: advice" grep -q 'Run outside' <<<"$(field usdt-semaphore advice)"
fi
# What the advice asks for must be enough.
caps=-all,+sys_admin,+sys_ptrace
as=(setpriv --reuid 65534 --regid 65534 --clear-groups "--inh-caps=$caps" "--ambient-caps=$caps"
	"--bounding-set=$caps")
doctor 0
# And what a recorder keeps, where uprobe_multi links work.
if [ "$multi" = works ]; then
	caps=-all,+bpf,+perfmon,+sys_ptrace,+dac_override,+checkpoint_restore,+chown,+syslog
	as=(setpriv --reuid 65534 --regid 65534 --clear-groups "--inh-caps=$caps" "--ambient-caps=$caps"
		"--bounding-set=$caps")
	doctor 0 --json
	ok "without CAP_SYS_ADMIN: by the link" grep -q '^uprobe_multi' <<<"$(field attach-path detail)"
	ok "without CAP_SYS_ADMIN: said that it is not needed" grep -q 'not needed' <<<"$(field CAP_SYS_ADMIN detail)"
	ok "without CAP_SYS_ADMIN: all seven are held" json '[.features[] | select(.name | startswith("CAP_")) | .status] |
		length == 8 and all(. == "works")'
	as=(setpriv "--bounding-set=-checkpoint_restore,-sys_admin")
	doctor 0 --json
	ok "a capability that is not held: said" [ "$(status CAP_CHECKPOINT_RESTORE)" != works ]
fi
as=(unshare -pf --mount-proc)
doctor 0 --json
ok "pid namespace: pids are its own" [ "$(status core-task_struct)" = works ]
as=()

# ---- A kernel without BTF

doctor 4 --json --btf "$tmp/none"
ok "no BTF: said" grep -q '^no BTF in ' <<<"$(field btf detail)"
ok "no BTF: advice" grep -q CONFIG_DEBUG_INFO_BTF <<<"$(field btf advice)"
ok "no BTF: what needs it is missing" [ "$(status tp_btf-sched_process_exit)" = missing ]
ok "no BTF: context is gone" [ "$(status tp_btf-softirq_entry)" = optional-missing ]
ok "no BTF: the network is gone" [ "$(status tp_btf-inet_sock_set_state)" = optional-missing ]
ok "no BTF: what does not need it works" [ "$(status ring-memory)" = works ]
doctor 4 --btf /dev/null
doctor 4 --btf "$plugin"

# ---- Usage

doctor 0 --help
ok "help: on stdout" has '^Usage: ncclscope doctor'
doctor 2 --unknown
ok "usage: nothing on stdout" [ ! -s "$tmp/out" ]
ok "usage: said on stderr" grep -q unknown "$tmp/err"
doctor 2 argument
"$scope" doctor >/dev/full 2>"$tmp/err"
ok "full disk: exit status 1" [ $? = 1 ]
ok "full disk: said" grep -q 'No space left' "$tmp/err"

[ $failed = 0 ] && echo "doctor.sh: all passed" && exit 0
echo "doctor.sh: $failed failed"
exit 1
