#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Traces of more processes than files may be open at a time (ulimit -n): all of them are read side by side all the same, so what is
# told of a job, and what is merged, is as without the limit.
#
# Usage: files.sh [NCCLSCOPE]
. "$(dirname "$0")/lib.sh"
needs jq python3 zstd
cd "$tmp" || exit 1

ranks=200

# Of one AllReduce a second, to which the last rank but 7 comes late now and then. No rank's trace is short enough to wait for the others.
python3 - $ranks <<'GEN' || exit 1
import os, sys
n, late = int(sys.argv[1]), int(sys.argv[1]) - 7
iters, real = 260, 1763600000000000

def event(kind, func, rank, start, stop, more):
    pid = 1000 + rank % 8
    return ('{"recordType":"event","type":"%s","func":"%s","gpuUuid":"g%d","commId":5,"commHash":"0xc0ffee","rank":%d,'
            '"start":{"ts":%d.000,"pid":%d,"tid":%d},"stop":{"ts":%d.000,"pid":%d,"tid":%d},"duration":%d.000,"myPid":%d,%s}\n'
            % (kind, func, rank, rank, start, pid, pid, stop, pid, pid, stop - start, pid, more))

def trace(f, rank):
    node, pid, boot = rank // 8, 1000 + rank % 8, 5000000000 + rank // 8 * 1000000
    f.write('{"recordType":"header","schema":1,"tool":"ncclscope","version":"0.1.0","host":"n%d","bootId":"11111111-2222-3333-4444-%012d",'
            '"kernel":"6.18.0","arch":"x86_64","pid":%d,"hostPid":%d,"uid":1000,"comm":"python3","startTime":1000.000,"cmdline":["python3"],'
            '"ncclVersion":"2.28.9","mask":4095,"clock":{"source":"tsc","tscHz":2100000000,"realtimeOffset":%d.000,"realtimeError":1.500},'
            '"features":{"ringbuf":true}}\n' % (node, node, pid, pid, real - boot))
    f.write(event("ProfilerLifecycle", "ProfilerInit", rank, boot, boot, '"ctx":"0x1","details":{"nranks":%d,"nNodes":%d,"commName":"dp"}'
                  % (n, n // 8)))
    for i in range(iters):
        t, slow = boot + 1000000 * (i + 1), 400000 if i > 20 and i % 5 == 0 else 0
        start = t + rank * 3 + (slow if rank == late else 0)
        f.write(event("ncclProfileCollApi", "AllReduce", rank, start - 5, start + 25, '"eventAddr":"0x%x"' % (65536 + i)))
        f.write(event("ncclProfileColl", "AllReduce", rank, start, start + 20, '"parentObj":"0x%x","eventAddr":"0x%x","ctx":"0x1",'
                      '"details":{"func":"AllReduce","seq":%d,"algo":"RING","proto":"SIMPLE","channels":1,"warps":4,"count":1048576,"root":0,'
                      '"dtype":"ncclFloat32"},"exec":{"stop":%d.000,"duration":%d.000,"source":"kernel"}'
                      % (65536 + i, 4096 + i, i, t + slow + 20000, t + slow + 20000 - start)))

os.mkdir("job")
for rank in range(n):
    with open("job/trace_1_pid%04d.jsonl" % rank, "w") as f:
        trace(f, rank)
GEN

# told OUT TRACE...: all that report has to say.
told()
{
	local out=$1
	shift
	"$tool" report --json "$@" 2>err | jq -S 'del(.inputs[].file)' >"$out" && same "$(cat err)" ""
}

told want.json job || { cat err; exit 1; }
is "no limit: the operations and the verdict" "$(jq -c '[.comms[0].ranksSeen, .comms[0].ops[0].n, [.verdicts[] | [.code, .rank]]]' want.json)" '[200,260,[["late-rank",193]]]'
is "no limit: of slow operations whose doing it is" "$(jq -c '[.slow[] | [.rank, .host, .pid]] | unique' want.json)" '[[193,"n24",1001]]'
"$tool" merge -o want.jsonl job 2>want.err || { cat want.err; exit 1; }

# with_limit FILES [TRACE...]: so many may be open.
with_limit()
{
	local limit=$1
	shift
	(ulimit -n "$limit" && told got.json "$@") && diff want.json got.json
}
for limit in 160 64 16; do
	t "report: $limit files may be open" with_limit $limit job
done
t "report: files that others have open as well" with_limit 32 job 10<job 11<job 12<job 13<job 14<job 15<job 16<job 17<job 18<job 19<job

merge_with_limit()
{
	(ulimit -n "$1" && "$tool" merge -o got.jsonl job 2>err) || { cat err; return 1; }
	diff want.err err && cmp want.jsonl got.jsonl
}
for limit in 160 64 16; do
	t "merge: $limit files may be open" merge_with_limit $limit
done

# A directory of recordings has no traces itself: each command that reads some says which have.
above()
{
	local command rc said
	mkdir -p above/n0 above/n1 above/.git empty/n0 && cp job/trace_1_pid0000.jsonl above/n0 && touch above/trace.txt || return 1
	for command in report check merge "export --to csv" view; do
		# shellcheck disable=SC2086
		"$tool" $command "$1" >out 2>err
		rc=$?
		said=$(sed -n "s/^ncclscope: error: Failed to read '[^']*': //p" err)
		same "$rc $said" "1 no trace_*.jsonl in it, nor any .zst$2" "$command" || return 1
	done
}
t "directories below have the traces: said, and how they are named" above above/ ", but directories in it have some: give these, as above/*/"
t "nor have those: no such advice" above empty ""

# newer COMMAND...: of traces of a later schema one is named.
newer()
{
	"$tool" "$@" later job/trace_1_pid0002.jsonl >out 2>err && same "$(grep -c ' is of schema ' err)" 1 &&
		grep -q "^ncclscope: warning: 'later/trace_1_pid0000.jsonl' is of schema 3, this ncclscope knows 1" err || { cat err; return 1; }
}
mkdir later
for i in 0 1; do sed '1s/"schema":1/"schema":3/' job/trace_1_pid000$i.jsonl >later/trace_1_pid000$i.jsonl; done
for command in report "export --to csv -o x.csv" "view -o x.html"; do
	# shellcheck disable=SC2086
	t "$command: a later schema is told once" newer $command
done

compressed()
{
	mkdir zst && zstd -q --output-dir-flat zst job/*.jsonl && with_limit 64 zst
}
t "report: compressed ones" compressed

# Pieces of a file have places of their own in it.
by_cat()
{
	local i
	mkdir cat
	for ((i = 0; i < 10; i++)); do
		cat job/trace_1_pid0"$(printf %02d $((2 * i)))"?.jsonl job/trace_1_pid0"$(printf %02d $((2 * i + 1)))"?.jsonl >cat/trace_1_pid$i.jsonl
	done
	with_limit 16 cat
}
t "report: what cat made of them" by_cat

# The first breaks off within a line, and cat has put the next one there. Only what is a file is looked through for headers first.
torn()
{
	local part
	{ head -n -1 job/trace_1_pid0000.jsonl && tail -n 1 job/trace_1_pid0000.jsonl | head -c 40 && cat job/trace_1_pid0001.jsonl; } >torn.jsonl
	part='[.tornLines, (.comms[] | .ranksSeen, [.ops[].n])]'
	"$tool" report --json torn.jsonl 2>err | jq -c "$part" >want && "$tool" report --json - <torn.jsonl 2>>err | jq -c "$part" >got &&
		same "$(cat want)" '[1,2,[260]]' && same "$(cat got)" "$(cat want)" && same "$(cat err)" ""
}
t "report: a record that cat tore, from standard input as well" torn

# while_read LIMIT: files that have not been read to their end yet get another one of their name, or none. Standard input keeps report from
# going on: all have been looked through for headers by then, and a piece of each has been read.
while_read()
{
	local all i rc
	rm -rf going && cp -r job going && mkfifo go || return 1
	all=$(($(cat going/* | wc -c) + ranks * 60000))
	(ulimit -n "$1" && exec "$tool" report going - <go >out 2>err) &
	exec 9>go
	for ((i = 0; i < 300 && $(awk '/^rchar/ { print $2 }' /proc/$!/io) < all; i++)); do
		sleep 0.1
	done
	cp going/trace_1_pid0150.jsonl other && mv other going/trace_1_pid0150.jsonl
	rm going/trace_1_pid0151.jsonl
	head -c 30000 going/trace_1_pid0152.jsonl >short && cat short >going/trace_1_pid0152.jsonl
	exec 9>&-
	wait $!
	rc=$?
	rm go
	return $rc
}

replaced()
{
	local how='it had to be opened again, .* raise .ulimit -n'
	while_read 64 && { echo "no error"; return 1; }
	same "$(wc -l <err)" 3 && grep -q "pid0150.jsonl' further: it is another file now, or has been cut; $how" err &&
		grep -q "pid0151.jsonl' further: No such file or directory; $how" err && grep -q "pid0152.jsonl' further: it is another" err &&
		grep -q 'late' out || { cat err; return 1; }
}
t "report: what another file has replaced, what is gone, what was cut" replaced
stays_open()
{
	while_read 512 && same "$(cat err)" "" || { cat err; return 1; }
}
t "report: all stay open where they may" stays_open

# ---- Of more recordings than are read side by side

# Of 64 ranks 68 windows each, five minutes apart, in each three AllReduces.
python3 - <<'GEN' || exit 1
import os
ranks, windows, real = 64, 68, 1763600000000000

def event(kind, rank, start, stop, more):
    where = '{"ts":%d.000,"pid":%d,"tid":%d}'
    return ('{"recordType":"event","type":"%s","func":"AllReduce","gpuUuid":"g%d","commId":5,"commHash":"0xc0ffee","rank":%d,"start":%s,"stop":%s,'
            '"duration":%d.000,"myPid":%d,%s}\n' % (kind, rank, rank, where % (start, 1000 + rank, 1000 + rank),
                                                  where % (stop, 1000 + rank, 1000 + rank), stop - start, 1000 + rank, more))

os.mkdir("windows")
for rank in range(ranks):
    node, pid, boot = rank // 8, 1000 + rank, 5000000000 + rank // 8 * 1000000
    for w in range(windows):
        begin = boot + w * 300000000
        with open("windows/trace_1_pid%04d_%02d.jsonl" % (rank, w), "w") as f:
            f.write('{"recordType":"header","schema":1,"tool":"ncclscope","version":"0.1.0","host":"n%d","bootId":"11111111-2222-3333-4444-%012d",'
                    '"kernel":"6.18.0","arch":"x86_64","pid":%d,"hostPid":%d,"uid":1000,"comm":"python3","startTime":1000.000,"cmdline":["python3"],'
                    '"ncclVersion":"2.28.9","mask":4095,"clock":{"source":"tsc","realtimeOffset":%d.000,"realtimeError":1.500},"features":{}}\n'
                    % (node, node, pid, pid, real - boot))
            f.write(event("ProfilerLifecycle", rank, begin, begin, '"ctx":"0x1","details":{"nranks":%d,"nNodes":8,"commName":"dp"}' % ranks)
                    .replace('"func":"AllReduce"', '"func":"ProfilerInit"'))
            for i in range(3):
                t = begin + 1000000 * (i + 1)
                f.write(event("ncclProfileColl", rank, t + rank, t + rank + 20, '"parentObj":"null","eventAddr":"0x%x","ctx":"0x1","details":{"func":'
                              '"AllReduce","seq":%d,"algo":"RING","proto":"SIMPLE","channels":1,"warps":4,"count":1024,"root":0,"dtype":"ncclFloat32"},'
                              '"exec":{"stop":%d.000,"duration":%d.000,"source":"kernel"}'
                              % (4096 + i, 3 * w + i, t + 20000, 20000 - rank)))
GEN
cat windows/*.jsonl >windows.jsonl

# in_windows TRACE...: each operation once, with all ranks.
in_windows()
{
	"$tool" report "$@" >out 2>err || { cat err; return 1; }
	same "$(head -n 1 out | grep -o '[0-9]* operations') $(grep -c 'not in this input' out) $(grep -c 'nobody waited' out)" '204 operations 0 0'
}
t "report: of 4,352 recordings, node after node" in_windows windows
t "report: what cat made of them" in_windows windows.jsonl
compressed_windows()
{
	mkdir windows.zst && zstd -q --output-dir-flat windows.zst windows/*.jsonl && in_windows windows.zst
}
t "report: compressed ones" compressed_windows
merged_windows()
{
	"$tool" merge -q -o merged.jsonl windows 2>err && cmp <(jq 'select(.recordType == "header").hostPid' windows.jsonl) <(jq 'select(.recordType == "header").hostPid' merged.jsonl) &&
		in_windows merged.jsonl
}
t "merge: these, in the order in which they were given" merged_windows
# One stream is read from one end to the other: told, with what to give instead.
one_stream()
{
	"$tool" report "$1" <windows.jsonl >out 2>err && grep -q '^Of [0-9]* operations ranks were read when nobody waited' out &&
		grep -q "(give their directory or files, or that file unpacked)" <(tr '\n' ' ' <out) || { head -n 8 out; return 1; }
}
t "report: from standard input, what ranks came too late for is told" one_stream -
zstd -q windows.jsonl -o windows.one.zst
t "report: from one compressed file of several, likewise" one_stream windows.one.zst

# ---- What cannot be written

# unwritten SAYS COMMAND...: fails so, and what was written of it so far is gone.
unwritten()
{
	local says=$1
	shift
	rm -rf part && mkdir part
	(ulimit -f 4 && "$tool" "$@" -o part/x job >out 2>err)
	same "$? $(ls part) $(grep -c "$says" err)" "1  1" || { cat err; return 1; }
}
# A limit for the size of files, of a shell or a service: no signal kills us.
for command in merge view "export --to chrome"; do
	# shellcheck disable=SC2086
	t "$command: as large as a file may be" unwritten "Failed to write 'part/x': File too large" $command
done
# Who reads the messages has gone, or the terminal: in the midst of writing.
ended_by()
{
	rm -rf part && mkdir part && mkfifo part/go
	env --default-signal="$1" "$tool" export --to csv -o part/x - <part/go >out 2>err &
	exec 9>part/go
	cat job/trace_1_pid0000.jsonl >&9
	for ((i = 0; i < 100 && $(ls part | wc -l) < 2; i++)); do sleep 0.1; done
	same "$(ls part | wc -l)" 2 "while it writes"
	kill "-$1" $!
	exec 9>&-
	wait $!
	rm part/go
	same "$(ls part)" ""
}
for sig in PIPE TERM HUP; do t "export: ended by SIG$sig, nothing is left" ended_by $sig; done

finish
