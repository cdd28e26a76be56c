#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whose the traces are and how they are called, also when the job's environment, arguments and names were
# made to do harm.
. "$(dirname "$0")/lib.sh"

uid=65534 gid=65534
# They live until they are looked at: who a process is, is read while it is there.
small=("$job" --ranks 2 --bytes 64K --iters 2 --linger-ms 400 --json)
owner() {
	stat -c '%u:%g %a' "$@" | sort -u | xargs
}
# at DIR COMMAND...: record in that directory, without -o.
at() {
	local dir=$1
	shift
	mkdir -p "$dir"
	(cd "$dir" && timeout 60 "$scope" record --plugin "$plugin" -- "$@" >"$dir.out" 2>"$dir.err")
	rc=$?
}

# ---- Under sudo: the job is the user's, and so are directory and files

mkdir "$tmp/sudo"
chmod 777 "$tmp/sudo"
export SUDO_UID=$uid SUDO_GID=$gid SUDO_USER=nobody
record sudo/x -- "${small[@]}"
is "sudo: the job runs" "$rc $(jq .ok "$tmp/sudo/x.out")" "0 true"
is "sudo: directory" "$(owner "$tmp/sudo/x")" "$uid:$gid 755"
is "sudo: files" "$(owner "$tmp"/sudo/x/*)" "$uid:$gid 640"
is "sudo: uid of the processes" "$(q sudo/x '[records("header")[].uid] | unique | tojson')" "[$uid]"
t "sudo: trace" eval 'clean sudo/x && lossless sudo/x && counted sudo/x'
record sudo/id -- sh -c 'echo $(id -u) $(id -G) $HOME $USER; umask; grep -E "^Cap(Eff|Prm|Amb)" /proc/self/status | tr -d "\n"'
is "sudo: ids and home of the job" "$(head -n 1 "$tmp/sudo/id.out")" \
	"$uid $(id -G nobody) $(getent passwd nobody | cut -d: -f6) nobody"
is "sudo: no capabilities left" "$(tail -n 1 "$tmp/sudo/id.out" | tr -dc 0-9)" "$(printf '%048d' 0)"
record sudo/back -- setpriv --reuid 0 true
t "sudo: the job cannot go back" [ "$rc" != 0 ]
(umask 077 && record sudo/mask -- "${small[@]}")
is "sudo: files, whatever the umask" "$(owner "$tmp"/sudo/mask/*)" "$uid:$gid 640"
at "$tmp/sudo/default" "${small[@]}"
is "sudo: default directory" "$(owner "$tmp"/sudo/default/ncclscope_dump-*)" "$uid:$gid 755"
for bad in abc -1 4294967295 99999999999999999999 "0x10" " 1"; do
	SUDO_UID=$bad record "sudo/bad" -- id -u
	is "sudo: SUDO_UID '$bad' is none" "$(cat "$tmp/sudo/bad.out")" 0
done
unset SUDO_UID SUDO_GID SUDO_USER

# ---- Somebody else's job, recorded by root

install -d -m 777 "$tmp/nobody"
record_bg other
(cd "$tmp/nobody" && NCCL_PROFILER_PLUGIN=$plugin setpriv --reuid $uid --regid $gid --clear-groups "${small[@]}" >"$tmp/other.out")
stop_recorder INT
is "another user's job: directory is the recorder's" "$(owner "$tmp/other")" "0:0 755"
is "another user's job: files are its own" "$(owner "$tmp"/other/*)" "$uid:$gid 640"
t "another user's job: trace" good other
SUDO_UID=$uid SUDO_GID=$gid record_bg mine -o "$tmp/mine"
NCCL_PROFILER_PLUGIN=$plugin "${small[@]}" >"$tmp/mine.out"
stop_recorder INT
is "root's job, recorded through sudo: files stay root's" "$(owner "$tmp/mine") $(owner "$tmp"/mine/*)" "$uid:$gid 755 0:0 640"

# ---- Names

at "$tmp/plain" "${small[@]}"
is "no job id: names" "$(cd "$tmp/plain" && find . -name '*.jsonl' | sed -E 's/[0-9]{8}-[0-9]{6}/DAY-TIME/; s/[0-9]{10}/UNIX/; s/pid[0-9]+/pid/' |
	sort -u)" "./ncclscope_dump-DAY-TIME/trace_UNIX_pid.jsonl"
SLURM_JOB_ID=4711 SLURM_STEP_ID=2 SLURM_PROCID=7 SLURM_NODEID=x at "$tmp/slurm" "${small[@]}"
is "SLURM_JOB_ID: names" "$(cd "$tmp/slurm" && find . -name '*.jsonl' | sed -E 's/pid[0-9]+/pid/' | sort -u)" \
	"./ncclscope_dump-4711/trace_4711_pid.jsonl"
is "SLURM variables in the header" "$(cat "$tmp"/slurm/*/*.jsonl | jq -c 'select(.recordType == "header") | .slurm' | sort -u)" \
	'{"jobId":"4711","stepId":"2","procId":7}'
is "pid in the name is the process'" "$(for f in "$tmp"/slurm/*/*.jsonl; do
	[ "${f##*_pid}" = "$(head -n 1 "$f" | jq .pid).jsonl" ] || echo "$f"
done)" ""
RANK=3 LOCAL_RANK=$'a"\n\\' WORLD_SIZE=8 at "$tmp/ranks" "${small[@]}"
is "launcher's variables in the header" "$(cat "$tmp"/ranks/*/*.jsonl | jq -c 'select(.recordType == "header") | .launcher
	| [.RANK, .LOCAL_RANK, .WORLD_SIZE]' | sort -u)" '["3","a\"\n\\","8"]'

# ---- Hostile job ids: never part of a path

n=0
for id in ../../etc/x / . .. "a/b" $'4\n5' "" " " "4 5" $'\377\376' '$(touch x)' "$(printf 'A%.0s' {1..10000})" "-rf" ".hidden"; do
	n=$((n + 1))
	dir=$tmp/evil/$n
	SLURM_JOB_ID=$id at "$dir" "${small[@]}"
	name=$(printf %.12q "$id")
	case $id in
	-rf) want="ncclscope_dump--rf" ;;
	*) want="ncclscope_dump-DAY-TIME" ;;
	esac
	is "job id $name: made there, and nothing else" \
		"$rc $(cd "$dir" && find . -mindepth 1 -type d | sed -E 's/[0-9]{8}-[0-9]{6}/DAY-TIME/') $(find "$dir" -type f | wc -l)" \
		"0 ./$want 2"
	t "job id $name: trace" "$scope" check "$dir"/*/*.jsonl
done
is "hostile job ids: nothing beside" "$(find "$tmp/evil" -mindepth 1 -maxdepth 1 -type d | wc -l)" $n

# ---- Hostile names

weird=$'a"b\\c\n\t\001\177\r\303\251</script><!--\377\300\200'
mkdir "$tmp/dir"
cp "$tmp"/bin/libnccl.so* "$tmp/dir/"
evil=$tmp/dir/$'s"\\\n\t<\377\300'
cp "$job" "$evil"
timeout 60 "$scope" record -v --plugin "$plugin" -o "$tmp/weird" -- "$evil" --ranks 2 --bytes 64K --iters 2 --linger-ms 400 --json \
	--name "$weird" --id-file "$tmp/$(printf '%s' "$weird" | tr -d /)" >"$tmp/weird.out" 2>"$tmp/weird.err"
rc=$?
is "hostile names: the job runs" "$rc" 0
t "hostile names: trace" eval 'clean weird && lossless weird && joined weird'
is "hostile names: each line is JSON" "$(cat "$tmp"/weird/*.jsonl | jq -c type | sort | uniq -c | tr -s ' ')" \
	" $(cat "$tmp"/weird/*.jsonl | wc -l) \"object\""
is "hostile names: valid UTF-8" "$(iconv -f UTF-8 -t UTF-8 "$tmp"/weird/*.jsonl >/dev/null && echo yes)" yes
is "hostile names: commName, what is no UTF-8 replaced" "$(q weird '[lifecycle("ProfilerInit")[].details.commName] | unique | tojson')" \
	"$(jq -nc '["a\"b\\c\n\t\u0001\u007f\r\u00e9</script><!--\ufffd\ufffd\ufffd"]')"
is "hostile names: comm" "$(q weird '[records("header")[].comm] | unique | tojson')" "$(jq -nc '["s\"\\\n\t<\ufffd\ufffd"]')"
t "hostile names: command line" holds weird '[records("header")[].cmdline | index("--name") as $i | .[$i + 1]] | unique
	== ["a\"b\\c\n\t\u0001\u007f\r\u00e9</script><!--\ufffd\ufffd\ufffd"]'
t "hostile names: no control characters in messages" eval '! sed -n "/^Events/,\$p" "$tmp/weird.err" | grep "[^[:print:]]"'
t "hostile names: no control characters in messages under -v, no lines of their own" eval \
	'grep -q "Recording process.*s\"" "$tmp/weird.err" && ! sed "/^Events/,\$d" "$tmp/weird.err" | grep -av "^ncclscope: [^[:cntrl:]]*\$\|^\$"'
long=$(printf 'L%.0s' {1..100000})
timeout 60 "$scope" record --plugin "$plugin" -o "$tmp/long" -- env "RANK=$long" "$job" --ranks 2 --bytes 64K --iters 1 \
	--name "$long" >"$tmp/long.out" 2>"$tmp/long.err"
t "very long names: trace" clean long
is "very long names: cut" "$(q long '[lifecycle("ProfilerInit")[].details.commName | length] | unique | tojson')" "[63]"

finish
