#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Captures: what `record --raw` wrote, `convert` makes the same traces of, byte for byte, as recording made at the same
# time: with everything on, with jobs that ran before, in windows, with RDMA ports. A recorder that is killed leaves
# what is converted up to there; a damaged file is refused with its place.
. "$(dirname "$0")/lib.sh"
command -v zstd >/dev/null || skip_all "needs zstd"

# convert NAME [FILE]: into $tmp/NAME.conv, messages in $tmp/NAME.say
convert() {
	"$scope" convert "${2:-$tmp/$1.raw}" -o "$tmp/$1.conv" >"$tmp/$1.say" 2>&1
	rc=$?
	return $rc
}

# twins NAME: the conversion's files have the names of the recording's, and their bytes.
twins() {
	convert "$1" && diff -rq "$tmp/$1" "$tmp/$1.conv" && [ "$(find "$tmp/$1.conv" -name 'trace_*.jsonl' | wc -l)" -ge "$2" ] || {
		tail -n 5 "$tmp/$1.say" "$tmp/$1.err"
		return 1
	}
}

args=(--ranks 2 --op allreduce --bytes 4M --iters 30)

# ---- From its start, with all there is

record all --raw "$tmp/all.raw" --sched=slices --net=flows --strict -- "$job" --json "${args[@]}"
t "recorded" good all
t "the same bytes: slices, flows" twins all 2
t "with kernel context" holds all '(records("slice") | length > 100) and (records("flow") | length > 4) and (events | any(.net)) and (events | any(.sched))'
is "only its owner may read it" "$(stat -c %a "$tmp/all.raw")" 600
"$scope" record --plugin "$plugin" --raw "$tmp/all.raw" -d 1s >"$tmp/over.out" 2>"$tmp/over.err"
is "it is not written over" "$? $(grep -c 'there already' "$tmp/over.err")" "1 1"

record off --raw "$tmp/off.raw" --sched=off --net=off -- "$job" --json "${args[@]}" --fault kill:rank=1:iter=20
t "the same bytes: no context, a process that is killed" twins off 2

# ---- A job that runs before, communicators read from its memory; and in windows

job_bg late --ranks 2 --op allreduce --bytes 1M --no-check --iters 1000000 --sleep-us 1000
until_true 10 children_ready "$starter" 2
sleep 0.5
record late --raw "$tmp/late.raw" -d 1200ms
t "the same bytes: picked up while it ran" twins late 2
t "its communicators are known" holds late 'events | of("Coll") | length > 20 and all(.commId != 0)'
record windows --raw "$tmp/windows.raw" --every 700ms --for 300ms -d 2s
t "the same bytes: windows" twins windows 4

# ---- A capture only; and a recorder that is killed

(cd "$tmp" && "$scope" record --plugin "$plugin" --raw "$tmp/only.raw" -d 1s) >"$tmp/only.out" 2>"$tmp/only.err"
t "a capture only" eval '[ ! -e "$(echo "$tmp"/ncclscope_dump-*)" ] && convert only && "$scope" check "$tmp/only.conv"'

# NCCL stops the last CollApi once more by each call, also when nobody wants anything. From when it is asked for none: 0.3 s of silence, or all of 2 s.
ranks_of 2
recorder_bg quiet --raw "$tmp/quiet.raw" -d 1s
until_true 5 eval '[ "$(mask_of "${ranks[0]}")" != 0 ]' && until_true 10 eval '[ "$(mask_of "${ranks[0]}")" = 0 ]'
asked=${EPOCHREALTIME/[.,]/}
until_true 10 ended "$recorder"
took=$(((${EPOCHREALTIME/[.,]/} - asked) / 1000))
t "a capture only: ends when no operation is under way any more ($took ms)" [ $took -lt 1700 ]
wait "$recorder"

record_bg killed --raw "$tmp/killed.raw"
sleep 1
kill -KILL $recorder
wait $recorder 2>/dev/null
kill -KILL "$starter"
pkill -KILL -P "$starter"
wait "$starter" 2>/dev/null
t "of a recorder that was killed" eval 'convert killed && grep -q "ends before its recording" "$tmp/killed.say" && "$scope" check "$tmp/killed.conv"'
is "it says so in its footers" "$(q killed.conv '[records("footer")[].end] | unique | tojson')" '["loader-stopped"]'
"$scope" convert --strict -q "$tmp/killed.raw" -o "$tmp/killed.strict" 2>/dev/null
is "--strict" $? 5
(cd "$tmp" && "$scope" convert -q killed.raw -o -) 2>"$tmp/dash.err"
is "-o -: no directory of that name" "$? $(grep -c 'is ./-$' "$tmp/dash.err") $(find "$tmp" -name -)" "2 1 "

# ---- Compressed

# unpacked NAME DIR: the files of DIR are those of $tmp/NAME, compressed.
unpacked() {
	local file
	for file in "$tmp/$1"/*.jsonl; do
		zstd -qdc "$2/${file##*/}.zst" | cmp - "$file" || return 1
	done
}
by_threads() {
	local n
	for n in 0 1 3; do
		"$scope" convert -q --threads=$n "$tmp/all.raw" -o "$tmp/all.$n" && diff -rq "$tmp/all" "$tmp/all.$n" &&
			"$scope" convert -q --threads=$n --compress "$tmp/all.raw" -o "$tmp/all.zst$n" && unpacked all "$tmp/all.zst$n" || return 1
	done
}
t "convert --threads: the same, by any number" by_threads
lines_in() {
	cat "$1"/*.jsonl | grep -cvE '^\{"recordType":"(header|lost|footer)"'
}
# on_disk SIZE CAPTURE OPTION...: converts to a disk of that size; what it says is in $tmp/disk.say, what it made in $tmp/disk.
on_disk() {
	rm -rf "$tmp/disk"
	mkdir "$tmp/disk" "$tmp/mnt" 2>/dev/null
	mount -t tmpfs -o size="$1" none "$tmp/mnt" || return 1
	"$scope" convert --strict "$tmp/$2.raw" -o "$tmp/mnt" "${@:3}" >"$tmp/disk.say" 2>&1
	rc=$?
	cp -r "$tmp/mnt/." "$tmp/disk"
	umount "$tmp/mnt"
}
# Lines that are there and lines that are said to be lost are all there were.
adds_up() {
	there=$(lines_in "$tmp/disk") lost=$(sed -n 's/^Loss: .*(write-error \([0-9]*\))$/\1/p' "$tmp/disk.say")
	"$scope" check -q "$tmp/disk" && same $rc 5 "exit status" && [ "$there" -gt 100 ] && [ "${lost:-0}" -gt 100 ] &&
		same $((there + lost)) "$(lines_in "$tmp/all")" "lines" && return
	cat "$tmp/disk.say"
	return 1
}
for n in 0 2; do
	t "convert --threads=$n to a full disk" eval 'on_disk 400k all --threads=$n && adds_up'
done
# A header that is longer than what is written at a time, and than the disk has room for: then there is no trace at all.
record long --sched=off --net=off --raw "$tmp/long.raw" -- "$job" --json --ranks 2 --bytes 64K --iters 50 --name "$(printf '\1%.0s' {1..9000})"
headers_first() {
	local file
	[ "$(head -c 60000 "$tmp/long"/*.jsonl | grep -c '^{"recordType":"header".*u0001')" = 2 ] || return 1
	for file in "$tmp/disk"/*; do
		[ ! -s "$file" ] || [[ $(head -c 22 "$file") = '{"recordType":"header"' ]] || return 1
	done
}
for n in 0 1; do
	t "convert --threads=$n, a header that finds no room" eval 'on_disk 44k long --threads=$n && headers_first && same $rc 5 "exit status"'
done
is "convert --threads: which numbers" "$("$scope" convert --threads=65 "$tmp/all.raw" 2>&1 | head -n 1)" \
	"ncclscope convert: --threads '65': a number up to 64"
t "convert --compress" eval '"$scope" convert -q --compress "$tmp/all.raw" -o "$tmp/all.zst" && unpacked all "$tmp/all.zst"'
record packed --compress --strict -- "$job" --json "${args[@]}"
t "record --compress" eval '[ $rc = 0 ] && "$scope" check --strict "$tmp/packed" && [ -z "$(find "$tmp/packed" -name "*.jsonl")" ]'
per_record=$(($(cat "$tmp/packed"/*.zst | wc -c) / $(zstd -qdc "$tmp/packed"/*.zst | wc -l)))
t "at most 30 bytes a record, with context: $per_record" [ $per_record -le 30 ]

record_bg cut --compress
job_bg cut --ranks 2 --op allreduce --bytes 1M --iters 4000 --sleep-us 1000
until_true 10 eval '[ "$(cat "$tmp"/cut/*.zst | wc -c)" -gt 20000 ]'
stop_recorder KILL
kill -KILL "$starter"
pkill -KILL -P "$starter"
wait "$starter" 2>/dev/null
readable() {
	local file lines
	for file in "$tmp/cut"/*.zst; do
		lines=$(zstd -qdc "$file" 2>/dev/null | wc -l)
		[ "$lines" -gt 500 ] || return 1
	done
	"$scope" check "$tmp/cut"
}
t "of a recorder that was killed: readable up to the last flush" readable
# block_from FILE OFFSET: where the first block at or behind it begins. Our frames have a header of 6 bytes.
block_from() {
	local at=6 a b c
	while [ $at -lt "$2" ]; do
		read -r a b c < <(od -An -tu1 -j $at -N 3 "$1")
		c=$((a | b << 8 | c << 16)) # bit 0: the last one, 1 and 2: its type, then its size, or of type 1 how often a byte repeats
		at=$((at + 3 + ((c >> 1 & 3) == 1 ? 1 : c >> 3)))
	done
	echo $at
}
# Of a type that there is none of: zeros somewhere could be other letters of a string.
packed=$(echo "$tmp"/packed/*.zst | cut -d' ' -f1)
printf '\377\377\377' | dd of="$packed" bs=1 seek="$(block_from "$packed" 9000)" conv=notrunc 2>/dev/null
t "damaged: refused" eval '! "$scope" check "$tmp/packed" >"$tmp/say.zst" 2>&1 && grep -q "compression is damaged" "$tmp/say.zst"'

# ---- Torn anywhere, damaged anywhere

torn() {
	local size n
	size=$(stat -c %s "$tmp/all.raw")
	for n in 100 1000 $((size / 3)) $((size / 2 + 1)) $((size - 1)); do
		head -c "$n" "$tmp/all.raw" >"$tmp/torn.raw"
		rm -rf "$tmp/torn.conv"
		convert torn || return 1
		grep -q "is torn: it ends within the record at byte" "$tmp/torn.say" || [ "$n" -gt 1000 ] || return 1
		[ -z "$(ls "$tmp/torn.conv")" ] || "$scope" check "$tmp/torn.conv" || return 1
	done
}
t "torn at any place" torn
# strictly FILE: says "RC LINES-ABOUT-IT"
strictly() {
	rm -rf "$tmp/strict"
	"$scope" convert --strict "$1" -o "$tmp/strict" >"$tmp/strict.say" 2>&1
	echo "$? $(grep -cE "$2" "$tmp/strict.say")"
}
all_of() { head -c "$1" "$tmp/all.raw"; }
is "the header alone: strictly no recording" "$(strictly <(all_of 64) 'holds no recording') $([ -e "$tmp/strict" ] || echo gone)" "5 1 gone"
is "torn where the first begins: likewise" "$(strictly <(all_of 74) 'holds no recording') $([ -e "$tmp/strict" ] || echo gone)" "5 1 gone"
is "a whole one, and the begin of the next: torn" "$(strictly <(cat "$tmp/all.raw" && all_of 200 | tail -c +65) 'is torn')" "5 1"
{ head -c 200000 "$tmp/all.raw" && head -c 20000 /dev/zero && tail -c +220001 "$tmp/all.raw"; } >"$tmp/bad.raw"
convert bad
is "damaged: refused, with the place" "$rc $(grep -cE 'at byte (19|20|21)[0-9]{4}' "$tmp/bad.say")" "1 1"
convert text "$0"
is "no capture" "$rc $(grep -c 'it is no capture' "$tmp/text.say")" "1 1"
is "from standard input" "$("$scope" convert -q - -o "$tmp/stdin" <"$tmp/all.raw" && diff -rq "$tmp/all" "$tmp/stdin" && echo same)" same
is "by nobody, whose files they are" "$(chmod 755 "$tmp" && cp "$tmp/all.raw" "$tmp/nobody.raw" && chmod 644 "$tmp/nobody.raw" &&
	install -d -o nobody "$tmp/nobody" && setpriv --reuid nobody --clear-groups "$scope" convert -q "$tmp/nobody.raw" -o "$tmp/nobody/t" &&
	diff -rq "$tmp/all" "$tmp/nobody/t" && stat -c %U "$tmp"/nobody/t/* | sort -u)" nobody

# ---- A file system that tells only at close(2) that it is full

full_disk() {
	mkdir "$tmp/nfs" "$tmp/nfs.disk"
	"$build/e2e/slow_fs" "$tmp/nfs.disk" 0 "$tmp/nfs" &
	until_true 10 mountpoint -q "$tmp/nfs"
	touch "$tmp/nfs.disk/full"
}
if [ -w /dev/fuse ]; then
	full_disk
	"$scope" convert --strict "$tmp/all.raw" -o "$tmp/nfs/t" >"$tmp/nfs.say" 2>&1
	rc=$?
	is "traces: said, counted" "$rc $(grep -c 'Failed to write .*No space left.* counted as lost' "$tmp/nfs.say") $(grep -cE '^Loss: .*write-error' "$tmp/nfs.say")" \
		"5 $(find "$tmp/nfs.disk/t" -name '*.jsonl' | wc -l) 1"
	timeout 60 "$scope" record --plugin "$plugin" --strict --raw "$tmp/nfs/full.raw" -d 200ms >"$tmp/nfs.say" 2>&1
	rc=$?
	is "a capture: said" "$rc $(grep -c 'Failed to write .*full.raw.*No space left' "$tmp/nfs.say")" "5 1"
	umount "$tmp/nfs"
else
	skip "full at close" "no /dev/fuse"
fi

# ---- A disk that is full from the beginning

mkdir "$tmp/full"
mount -t tmpfs -o size=256k none "$tmp/full"
head -c 300k /dev/zero >"$tmp/full/fill" 2>/dev/null
recorder_bg nothing --raw "$tmp/full/nothing.raw"
job_bg filler --ranks 2 --iters 100
wait "$starter"
stop_recorder INT
is "a full disk: nothing is kept, which is a failure" "$rc $(stat -c %s "$tmp/full/nothing.raw")" "1 0"
is "a full disk: what there is, and that nobody knows the loss" "$(grep -cE '^ncclscope: Capture: 0 bytes in .*nothing.raw, cut off: No space left on device$|^Loss: not known, as' "$tmp/nothing.err") $(
	grep -c '^Loss: 0' "$tmp/nothing.err")" "2 0"
"$scope" convert "$tmp/all.raw" -o "$tmp/full/t" >"$tmp/nothing.say" 2>&1
is "a full disk: a trace without a line is not said to go on without 0 of them" "$(grep -cE "^ncclscope: warning: Failed to write .*: No space left on device; lost lines are counted$" "$tmp/nothing.say") $(
	grep -c 'without 0' "$tmp/nothing.say")" "2 0"
umount "$tmp/full"

finish
