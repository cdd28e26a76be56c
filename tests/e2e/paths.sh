#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Where traces may go when other users own parts of the way, or were there first: links, directories, FIFOs and
# files of theirs, swapped meanwhile; and who can read what is there then.
. "$(dirname "$0")/lib.sh"

uid=65534 other=65533
# It stays for a while: a directory named by the job needs its environment, which goes with it.
small=("$job" --ranks 2 --bytes 64K --iters 2 --linger-ms 300 --json)
# as UID COMMAND...
as() {
	local id=$1
	shift
	setpriv --reuid "$id" --regid "$id" --clear-groups "$@"
}
not_as() {
	! as "$@" 2>/dev/null
}
# to NAME DIR [COMMAND...]: record to that directory; without a command, one that puts something there, as it goes with the recorder if it is empty.
to() {
	local name=$1 dir=$2
	shift 2
	# shellcheck disable=SC2016 # the inner shell expands it
	[ $# -gt 0 ] || set -- sh -c ': >"$1/mark"' sh "$dir"
	timeout 60 "$scope" record --plugin "$plugin" --sched=off --net=off -o "$dir" -- "$@" >"$tmp/$name.out" 2>"$tmp/$name.err"
	rc=$?
}
# refused NAME TEXT: and said why, and nothing was made in what is not theirs.
refused() {
	same "$rc" 1 "exit status" && same "$(ls -A "$tmp/secret")" "" "made in it" && grep -qF "$2" "$tmp/$1.err" && return
	cat "$tmp/$1.err"
	return 1
}
mkdir "$tmp/secret" "$tmp/safe"
mkdir -m 1777 "$tmp/shared"
mkdir -m 777 "$tmp/wild"
install -d -o $uid -g $uid "$tmp/user"
fits() {
	same "$rc" 0 "exit status" && rm "$1/mark" && rmdir "$1"
}

# ---- Links on the way

ln -s ../secret "$tmp/safe/rel"
ln -s "$tmp/secret" "$tmp/safe/abs"
ln -s "$tmp/secret" "$tmp/shared/root"
for link in safe/rel safe/abs shared/root; do
	to ours "$tmp/$link/x"
	t "a link that only root can change, $link: followed" fits "$tmp/secret/x"
done
(cd "$tmp/safe" && ln -s rel/ again && to ours ./again/../secret//x/)
t "a relative way with dots and links" fits "$tmp/secret/x"
as $uid ln -s "$tmp/secret" "$tmp/shared/theirs"
as $uid ln -s "$tmp/secret" "$tmp/user/theirs"
ln -s "$tmp/secret" "$tmp/wild/ours"
ln -s "$tmp/secret" "$tmp/user/ours"
ln -s "$tmp/user/theirs" "$tmp/safe/chain"
for link in shared/theirs user/theirs wild/ours user/ours safe/chain; do
	for below in "" /x; do
		to link "$tmp/$link$below"
		t "a link that others can change, $link$below: refused" refused link "symbolic link"
	done
done
ln -s "$tmp/secret/none" "$tmp/safe/dangling"
to dangling "$tmp/safe/dangling"
t "a link to nothing: nothing is made behind it" refused dangling "No such file"

# ---- Directories of others

install -d -o $uid -g $uid "$tmp/shared/planted"
for below in "" /x; do
	to planted "$tmp/shared/planted$below"
	t "a directory that a user has made where anybody may$below: refused" refused planted "another user"
done
SUDO_UID=$uid SUDO_GID=$uid to sudo "$tmp/shared/planted/x"
t "the same user by sudo: taken" fits "$tmp/shared/planted/x"
to user "$tmp/user/x"
t "a user's directory that root has named: taken" fits "$tmp/user/x"
ln -s "$tmp/secret" "$tmp/safe/ncclscope_dump-4711"
(cd "$tmp/safe" && SLURM_JOB_ID=4711 timeout 60 "$scope" record --plugin "$plugin" -- "${small[@]}" >"$tmp/job.out" 2>"$tmp/job.err"
	echo $? >"$tmp/job.rc")
is "a link where a job's directory should be: the job runs, and is not recorded" "$(cat "$tmp/job.rc") $(said job .ok)" "1 true"
t "a link where a job's directory should be: refused, whoever made it" eval 'rc=1; refused job "symbolic link"'

# ---- Swapped while we look: a thousand times a second a directory, and a link to another's

# renameat2(AT_FDCWD, ..., RENAME_EXCHANGE), which no command does
case $(uname -m) in
x86_64) call=316 ;;
*) call=276 ;;
esac
as $uid mkdir "$tmp/user/a"
as $uid ln -s "$tmp/secret" "$tmp/user/b"
setpriv --reuid $uid --regid $uid --clear-groups perl -e '($n, $a, $b) = @ARGV; syscall($n + 0, -100, $a, -100, $b, 2) == 0 or die $! while 1' \
	$call "$tmp/user/a" "$tmp/user/b" &
swapper=$!
t "swapped meanwhile: it is" until_true 10 test -L "$tmp/user/a"
was=0
# shellcheck disable=SC2016
mark='for fd in /proc/$PPID/fd/*; do case $(readlink "$fd") in */"$1") : >"$fd/mark" ;; esac; done' # in what the recorder has made, wherever that is by now
for i in {1..12}; do
	to swap "$tmp/user/a/$i" sh -c "$mark" sh "$i"
	was=$((was + (rc == 0)))
done
kill $swapper
wait $swapper 2>/dev/null
is "swapped meanwhile: nothing was made behind the link" "$(ls -A "$tmp/secret")" ""
is "swapped meanwhile: what was made is in the directory" \
	"$(find "$tmp/user/a/" "$tmp/user/b/" -mindepth 1 -maxdepth 1 -type d | wc -l)" $was

# ---- The directory is renamed while traces go to it, and a link put in its place

record_bg move -o "$tmp/user/t"
two() {
	NCCL_PROFILER_PLUGIN=$plugin "${small[@]}" >>"$tmp/move.out"
	until_true 10 eval '[ $(cat '"$tmp/user/$1"'/*.jsonl | grep -c "\"footer\"") = '"$2"' ]'
}
t "renamed: the first job's traces" two t 2
as $uid mv "$tmp/user/t" "$tmp/user/u"
as $uid ln -s "$tmp/secret" "$tmp/user/t"
t "renamed: the second job's are beside them" two u 4
stop_recorder
is "renamed: nothing behind the link" "$(ls -A "$tmp/secret")" ""

# ---- The trace's name is taken: by a FIFO, a link, a hard link, a directory, a link to nothing

echo victim >"$tmp/victim"
mkdir -m 1777 "$tmp/names"
for pid in {2..9}; do # those of the job: some of them are threads'
	f=$tmp/names/trace_4711_pid$pid
	as $uid mkfifo "$f.jsonl"
	as $uid ln -s "$tmp/victim" "${f}_2.jsonl"
	ln "$tmp/victim" "${f}_3.jsonl"
	as $uid mkdir "${f}_4.jsonl"
	as $uid ln -s "$tmp/secret/none" "${f}_5.jsonl"
done
SLURM_JOB_ID=4711 to names "$tmp/names" unshare -pf --mount-proc "${small[@]}"
is "names taken: the job runs" "$rc $(said names .ok)" "0 true"
is "names taken: the next free ones" "$(find "$tmp/names" -type f -links 1 -printf '%f\n' | sed 's/pid[2-9]/pid/' | xargs)" \
	"trace_4711_pid_6.jsonl trace_4711_pid_6.jsonl"
t "names taken: traces are whole" "$scope" check "$tmp"/names/*_6.jsonl
is "names taken: what is theirs was left" "$(cat "$tmp/victim") $(ls -A "$tmp/secret")" "victim "

# ---- A directory for each job

install -d -m 755 "$tmp/weeks"
cd "$tmp/weeks" || exit 1
recorder_bg weeks
for id in $(seq 24); do
	NCCL_PROFILER_PLUGIN=$plugin SLURM_JOB_ID=$id "${small[@]}" >"$tmp/weeks.out"
done
until_true 10 eval '[ "$(cat "$tmp"/weeks/*/*.jsonl | grep -c "\"footer\"")" = 48 ]'
held=$(find "/proc/$recorder/fd" -lname '*/ncclscope_dump-*' | wc -l)
stop_recorder
is "24 jobs: each in its directory" "$(find "$tmp/weeks" -name '*.jsonl' -printf '%h\n' | sort | uniq -c | awk '{ print $1 }' | sort | uniq -c | xargs)" "24 2"
t "24 jobs: not each directory is kept open ($held)" [ "$held" -le 16 ]
cd / || exit 1

# ---- Who can read

install -d -m 755 "$tmp/read"
record_bg read
(cd / && NCCL_PROFILER_PLUGIN=$plugin as $uid "${small[@]}" >"$tmp/read.out")
stop_recorder
trace=$(find "$tmp/read" -name '*.jsonl' | head -n 1)
t "the job's user reads the trace" as $uid test -r "$trace"
t "another user does not" not_as $other test -r "$trace"
t "another user cannot remove it" not_as $other rm -f "$trace"
t "the job's user cannot add files beside it" not_as $uid touch "$tmp/read/trace_1_pid1.jsonl"

finish
