#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ncclscope doctor, as root, as nobody, with too few capabilities, without BTF, with good, bad and no
# plugin. What it says is held against what the node says by other means where there are any.
. "$(dirname "$0")/../lib.sh"
scope=$(realpath "${NCCLSCOPE:-$top/build/ncclscope}")
plugin=$(realpath "${NCCLSCOPE_PLUGIN:-$top/build/libnccl-profiler-ncclscope.so}")
unset NCCLSCOPE_PLUGIN NO_COLOR
[ "$(id -u)" = 0 ] || skip_all "takes root, to become other users"
needs jq setpriv readelf script taskset unshare

umask 022 # other users run it
tmp=$(mktemp -d -p /tmp) || exit 1
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

ended() {
	same "$1" "$2" "exit status" && return
	cat "$tmp/out" "$tmp/err"
	return 1
}

# doctor STATUS ARGS...: runs it, expects that exit status, leaves $tmp/out and $tmp/err.
doctor() {
	local want=$1 rc
	shift
	"${as[@]}" "$tmp/bin/ncclscope" doctor "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	t "${as[*]:+${as[*]} }doctor${*:+$(printf ' %q' "$@")}: exit status $want" ended $rc "$want"
}

# status NAME: of that feature in the JSON of the last run; detail and advice alike.
field() { jq -r --arg n "$1" ".features[] | select(.name == \$n) | .$2" "$tmp/out"; }
status() { field "$1" status; }
has() { grep -q -- "$1" "$tmp/out"; }
hasnt() { ! has "$1"; }
json() {
	jq -e "$1" "$tmp/out" >/dev/null && return
	echo "not so: $1"
	return 1
}

as=()

# ---- As root, everything there

doctor 0 --json --plugin "$plugin"
t "JSON: head" json '.schema == 1 and .tool == "ncclscope" and .ready == true and .exit == 0'
t "JSON: kernel and machine" [ "$(jq -r '.kernel + " " + .arch' "$tmp/out")" = "$(uname -r) $(uname -m)" ]
t "JSON: every row is whole" json '.features | length > 40 and all(
	(.name | length > 0) and (.group | length > 0) and (.neededFor | length > 0) and
	(.required | type == "boolean") and (.detail | length > 0) and
	(.status | IN("works", "missing", "denied", "optional-missing")) and
	((.status == "works") == (.advice == "")))'
t "JSON: no name twice" json '[.features[].name] | length == (unique | length)'
t "JSON: ready means that all required rows work" \
	json '[.features[] | select(.required and .status != "works")] == []'
t "it takes no more than 5 s (2 s meant)" json '.seconds < 5'
t "nothing on stderr" [ ! -s "$tmp/err" ]
t "the semaphore was seen to move" grep 'semaphore 0-1-0' <<<"$(field usdt-semaphore detail)"

multi=$(status uprobe-multi)
t "attach-path: as the kernel can" grep -q "^$([ "$multi" = works ] && echo uprobe_multi || echo perf)" \
	<<<"$(field attach-path detail)"
[ "$multi" != works ] || t "uprobe_multi: the semaphore was seen to move" grep -q 'semaphore 0-1$' \
	<<<"$(field uprobe-multi detail)"

# ---- Kernel context

for name in wakeup wakeup_new migrate_task process_fork; do
	t "tp_btf-sched_$name fires" grep -q '^attached' <<<"$(field "tp_btf-sched_$name" detail)"
done
for name in irq_handler_entry irq_handler_exit softirq_entry softirq_exit; do
	t "tp_btf-$name is attached" grep -q '^attached' <<<"$(field "tp_btf-$name" detail)"
done
t "the system call in progress, if any, is the right one" \
	grep -qE '^(clock_nanosleep of|load:)' <<<"$(field syscall-in-progress detail)"
is "schedstat as /proc has it" "$(status schedstat)" "$([ -e /proc/self/schedstat ] && echo works || echo optional-missing)"
t "none of this is required" json '[.features[] | select(.required) | .name | select(test(
	"wakeup|migrate|fork|irq|syscall|run-queue|throttling|cpu-stat|schedstat"))] == []'
as=(taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')")
doctor 0 --json --plugin "$plugin"
is "one CPU: no move to be seen" "$(field tp_btf-sched_migrate_task detail)" "attached, there is no second CPU to move to"
as=()

# ---- Network context

net_rows='select(.group == "network context")'
t "network: none of it is required" json "[.features[] | $net_rows | .required] | length >= 15 and any == false"
for name in tp_btf-inet_sock_set_state tp_btf-tcp_send_reset; do
	is "network: $name fires" "$(field $name detail)" "attached, fired"
done
for name in tcp_destroy_sock tcp_retransmit_skb tcp_receive_reset kfree_skb; do
	t "network: tp_btf-$name is attached" grep -q '^attached' <<<"$(field "tp_btf-$name" detail)"
done
is "network: a connection's figures are the right ones" "$(field core-tcp_sock detail)" "1000 bytes sent, as it was"
t "network: all open files are walked" [ "$(field iter-task_file detail | tr -dc 0-9)" -ge 10 ]
is "network: a program is run by its number" "$(field prog-run detail)" "ran"
# One word with a dash is a row's name there.
mapfile -t rows < <(sed -n 's/^\.Cm \([a-z]*-[a-z_-]*\).*/\1/p' "$top/man/ncclscope-doctor.1")
t "the man page names rows that there are (${#rows[@]})" json \
	"[.features[].name] as \$there | [$(printf '"%s",' "${rows[@]}")empty] | length > 5 and all(IN(\$there[]))"
t "network: senders and receivers, by tracepoint or by function" json '[.features[] |
	select(.status == "works") | .name] | (contains(["tp_btf-sock_send_length"]) and
	contains(["tp_btf-sock_recv_length"])) or ((contains(["fexit-tcp_recvmsg"]) or contains(["tp_btf-rcv_space_adjust"])) and
	(contains(["fexit-tcp_sendmsg"]) or contains(["kprobe-tcp_sendmsg"])))'
t "network: why a packet was dropped, if the kernel says" \
	grep -qE '^(a refused connection: [A-Z_]+|attached, none came|load: this kernel does not say)' \
	<<<"$(field drop-reasons detail)"
as=(unshare -n)
doctor 0 --json --plugin "$plugin"
is "network: no loopback device: said" "$(field tp_btf-sock_send_length detail)" "attached, no connection can be made to 127.0.0.1"
# Dropped, not refused: nobody answers.
drop='ip link set lo up && nft add table inet t && nft add chain inet t in "{ type filter hook input priority 0; policy drop; }"'
if unshare -n sh -c "$drop" 2>/dev/null; then
	as=(unshare -n sh -c "$drop && exec timeout 20 \"\$@\"" sh)
	doctor 0 --json --plugin "$plugin"
	is "network: packets dropped: said" "$(field tp_btf-sock_send_length detail)" "attached, no connection can be made to 127.0.0.1"
	t "network: packets dropped: it takes no more than 5 s" json '.seconds < 5'
else
	skip "network: packets dropped" "needs ip and nft, and a kernel with nftables"
fi
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
	t "quota: it holds back" held_back
	as=(sh -c "echo \$\$ >$quota/cgroup.procs; exec \"\$@\"" sh)
	doctor 0 --json --plugin "$plugin"
	t "quota: seen, as cpu.stat has it" \
		grep -qE '^[1-9][0-9]* us throttled, as in cpu.stat$' <<<"$(field cfs-throttling detail)"
	t "quota: found" grep -qE 'a quota, [1-9][0-9]* of' <<<"$(field cgroup-cpu-stat detail)"
	as=(sh -c "echo \$\$ >$quota/below/cgroup.procs; exec \"\$@\"" sh)
	doctor 0 --json --plugin "$plugin"
	t "quota: found from a cgroup below" grep -qE 'a quota, [1-9][0-9]* of' \
		<<<"$(field cgroup-cpu-stat detail)"
	as=()
	t "quota: nothing left in it" rmdir $quota/below $quota
else
	skip "quota" "no cgroup with one can be made here"
fi
as=(unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"' sh)
doctor 0 --json --plugin "$plugin"
is "no cgroups: said" "$(status cgroup-cpu-stat)" optional-missing
is "no cgroups: quotas are read all the same" "$(status cfs-throttling)" works
as=()

# ---- What else can be held against the node
doctor 0 --json --plugin "$plugin"
pmu=/sys/bus/event_source/devices
if [ -e $pmu/kprobe ] || [ -d /sys/kernel/tracing/events ] || [ -d /sys/kernel/debug/tracing/events ]; then
	echo "# not checked: kprobe and tracepoint without their kernel parts, which are here"
else
	is "no kprobe events, no kprobe" "$(status kprobe)" optional-missing
	is "no tracefs, no tracepoint" "$(status tracepoint)" optional-missing
fi
t "clock source" grep -q "^$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" \
	<<<"$(field clocksource detail)"
if grep -qw nonstop_tsc /proc/cpuinfo; then
	is "invariant TSC as in /proc/cpuinfo" "$(status cpu-counter)" works
fi
t "plugin: build id as readelf has it" [ "$(field plugin-build-id detail)" = \
	"$(readelf -n "$plugin" | sed -n 's/.*Build ID: //p')" ]
is "plugin: path" "$(field plugin-path detail)" "$plugin"

# gone KIND: the kernel has none of doctor's any more.
gone() {
	"$bpftool" "$1" show >"$tmp/loaded" && ! grep scope_p_ "$tmp/loaded"
}
bpftool=$(a_bpftool)
if [ -n "$bpftool" ]; then
	t "no program left behind" gone prog
	t "no map left behind" gone map
else
	skip "no program left behind" "needs bpftool"
fi

# ---- The table

doctor 0 --plugin "$plugin"
t "table: fits 100 columns" [ -z "$(awk 'length > 100' "$tmp/out")" ]
t "table: no colour into a pipe" hasnt $'\033'
t "table: verdict" has '^Ready: '
doctor 0 -v --plugin "$plugin"
t "table: -v says what for" has 'for: '
in_terminal() { script -qec "$1 $tmp/bin/ncclscope doctor --plugin $plugin" /dev/null >"$tmp/out"; }
in_terminal "env TERM=xterm"
t "table: colour on a terminal" has $'\033\[32mworks'
in_terminal "env TERM=xterm NO_COLOR=1"
t "table: no colour under NO_COLOR" hasnt $'\033'

# ---- Two at a time: the semaphore is one and the same for both

"$tmp/bin/ncclscope" doctor --json --plugin "$plugin" >"$tmp/other" &
doctor 0 --plugin "$plugin"
wait $!
t "another doctor at the same time" [ $? = 0 ]

# ---- Where the plugin is looked for

doctor 1 --json --plugin "$tmp/none.so"
is "no such plugin" "$(status plugin-path)" missing
t "no such plugin: advice" grep -q -- --plugin <<<"$(field plugin-path advice)"
doctor 1 --json --plugin "$tmp"
is "a directory is no plugin" "$(status plugin-path)" missing
install -m 644 "$plugin" "$tmp/lib/"
doctor 0 --json
is "found in ../lib of the program" "$(field plugin-path detail)" "$tmp/lib/libnccl-profiler-ncclscope.so"
install -m 644 "$plugin" "$tmp/env.so"
as=(env "NCCLSCOPE_PLUGIN=$tmp/env.so")
doctor 0 --json
is "the environment beats the program's place" "$(field plugin-path detail)" "$tmp/env.so"
doctor 0 --json --plugin "$plugin"
is "the option beats the environment" "$(field plugin-path detail)" "$plugin"
as=(env "NCCLSCOPE_PLUGIN=$tmp/none.so")
doctor 1
t "a wrong environment is not passed over" has "$tmp/none.so"
as=()

# ---- Plugins that are none

echo "no library" >"$tmp/bad.so"
doctor 1 --json --plugin "$tmp/bad.so"
is "a text file has no probes" "$(status plugin-probes)" missing
libc=$(ldd "$scope" | awk '/libc\.so/ { print $3 }')
doctor 1 --json --plugin "$libc"
is "libc: build id" "$(status plugin-build-id)" works
t "libc: no probes of ours" grep -q flush <<<"$(field plugin-probes detail)"
is "libc: no NCCL interface" "$(status plugin-nccl-versions)" missing
for len in 0 63 64 1000 $(($(stat -c %s "$plugin") / 2)); do
	head -c "$len" "$plugin" >"$tmp/bad.so"
	doctor 1 --plugin "$tmp/bad.so"
done
cp "$plugin" "$tmp/noid.so"
at=$(grep -obUaP '\x03\x00\x00\x00GNU\x00' "$tmp/noid.so" | head -n 1 | cut -d: -f1)
printf '\177' | dd of="$tmp/noid.so" bs=1 seek="$at" conv=notrunc status=none
doctor 0 --json --plugin "$tmp/noid.so"
is "no build id: record does without, as tests/e2e/attach.sh sees" "$(status plugin-build-id)" optional-missing
printf -v name 'bad\n\033[31m\377.so'
cp "$tmp/env.so" "$tmp/$name"
doctor 0 --plugin "$tmp/$name"
t "a hostile name brings no escape code" hasnt $'\033'
doctor 0 --json --plugin "$tmp/$name"
t "a hostile name leaves JSON whole" json .

# ---- Less than root

as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
doctor 3
t "nobody: told what to do" has 'Run ncclscope as root'
t "nobody: told so once, not for each row" [ "$(grep -c 'Run ncclscope as root' "$tmp/out")" -le 3 ]
t "nobody: BTF can be read all the same" has '^  btf  *works'
doctor 3 --json
is "nobody: denied, not missing" "$(status ring-buffer)" denied
is "nobody: context is denied as well" "$(status tp_btf-sched_wakeup)" denied
is "nobody: the network is denied as well" "$(status tp_btf-inet_sock_set_state)" denied
t "nobody: cpu.stat is there for all" json '.features[] | select(.name == "cgroup-cpu-stat") |
	.status != "denied"'
is "nobody: plugin is looked at" "$(status plugin-probes)" works
as=(setpriv "--bounding-set=-bpf,-perfmon,-sys_admin")
doctor 3 --json
is "root without capabilities: denied" "$(status uprobe)" denied
as=(setpriv "--bounding-set=-syslog,-chown" "--inh-caps=-syslog,-chown")
doctor 0 --json
is "root without CAP_SYSLOG: CAP_SYS_ADMIN does not do" "$(status CAP_SYSLOG)" optional-missing
is "root without CAP_CHOWN: what is lost" "$(field CAP_CHOWN advice)" "Run as root, or add CAP_CHOWN; without it other users' jobs are not recorded."
if unshare -Ur true 2>/dev/null; then
	as=(unshare -Ur)
	doctor 3 --json
	is "user namespace: said" "$(status init-user-namespace)" denied
	t "user namespace: advice" grep -q 'Run outside' <<<"$(field usdt-semaphore advice)"
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
	t "without CAP_SYS_ADMIN: by the link" grep -q '^uprobe_multi' <<<"$(field attach-path detail)"
	is "without CAP_SYS_ADMIN: BPF's clock is looked at" "$(status bpf-clock)" works
	t "without CAP_SYS_ADMIN: said that it is not needed" grep -q 'not needed' <<<"$(field CAP_SYS_ADMIN detail)"
	t "without CAP_SYS_ADMIN: all seven are held" json '[.features[] | select(.name | startswith("CAP_")) | .status] |
		length == 8 and all(. == "works")'
	t "attach-path: of -p, where it differs" same "$(field attach-path detail | grep -c 'with -p')" \
		"$([ "$(printf '%s\n' 6.12 "$(uname -r)" | sort -V | head -n 1)" = 6.12 ] && echo 0 || echo 1)"
	if setarch --uname-2.6 true 2>/dev/null; then
		as=(setarch --uname-2.6)
		doctor 0 --json --plugin "$plugin"
		t "attach-path: on a kernel that calls itself older" grep -q 'with -p: from 6.12 on' <<<"$(field attach-path detail)"
	fi
	as=(setpriv "--bounding-set=-checkpoint_restore,-sys_admin")
	doctor 0 --json
	t "a capability that is not held: said" [ "$(status CAP_CHECKPOINT_RESTORE)" != works ]
fi
as=(unshare -pf --mount-proc)
doctor 0 --json
is "pid namespace: said" "$(status init-pid-namespace)" optional-missing
t "pid namespace: advice" grep -q 'hostPID: true' <<<"$(field init-pid-namespace advice)"
is "pid namespace: pids are its own" "$(status core-task_struct)" works
as=()

# ---- A kernel without BTF

doctor 4 --json --btf "$tmp/none"
t "no BTF: said" grep -q '^no BTF in ' <<<"$(field btf detail)"
t "no BTF: advice" grep -q CONFIG_DEBUG_INFO_BTF <<<"$(field btf advice)"
is "no BTF: what needs it is missing" "$(status tp_btf-sched_process_exit)" missing
is "no BTF: context is gone" "$(status tp_btf-softirq_entry)" optional-missing
is "no BTF: the network is gone" "$(status tp_btf-inet_sock_set_state)" optional-missing
is "no BTF: what does not need it works" "$(status ring-memory)" works
doctor 4 --btf /dev/null
doctor 4 --btf "$plugin"

# ---- Usage

doctor 0 --help
t "help: on stdout" has '^Usage: ncclscope doctor'
doctor 2 --unknown
t "usage: nothing on stdout" [ ! -s "$tmp/out" ]
t "usage: said on stderr" grep -q unknown "$tmp/err"
doctor 2 argument
"$scope" doctor >/dev/full 2>"$tmp/err"
t "full disk: exit status 1" [ $? = 1 ]
is "full disk: said, once" "$(cat "$tmp/err")" "ncclscope: error: Failed to write 'standard output': No space left on device"
t "full disk: said" grep -q 'No space left' "$tmp/err"

finish
