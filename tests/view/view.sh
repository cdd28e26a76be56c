#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope view`: the command and its file, then its page in a browser (view_test.mjs). Screenshots: build/tests/view/*.png.
#
# Usage: view.sh [BUILD DIR [command]]; `command`: without the page
. "$(dirname "$0")/lib.sh"
scope=$out/ncclscope # with sanitizers

seed=$top/tests/data/nccl-2.28-4xh100-allreduce.jsonl

# text_of PAGE: the traces in it, unpacked by other tools than ours.
text_of()
{
	grep -o 'data-kind="trace"[^>]*>[^<]*' "$1" | sed 's/.*>//' | while read -r block; do
		base64 -d <<<"$block" | gzip -dc
	done
}

# view ARGUMENT...: in $tmp/at; what it says in $tmp/err, its exit status in $rc.
view()
{
	(cd "$tmp/at" && exec "$scope" view "$@") 2>"$tmp/err" </dev/null
	rc=$?
}

default_names()
{
	local name
	mkdir -p "$tmp/at/job.d" && cp "$seed" "$tmp/at/job.d/trace_1_pid2.jsonl" && cp "$seed" "$tmp/at/t.jsonl" || return
	zstd -q -f "$tmp/at/t.jsonl" -o "$tmp/at/u.jsonl.zst" || return
	for name in job.d job.d/ t.jsonl u.jsonl.zst job.d/.; do
		view "$name"
		same $rc 0 || return
	done
	(cd "$tmp/at/job.d" && "$scope" view -q .) || return
	"$scope" view -q -o "$tmp/at/v.html" "$tmp/at/t.jsonl" || return
	same "$(cd "$tmp/at" && find . -name '*.html' | sort | tr '\n' ' ')" \
		"./job.d.html ./job.d/job.d.html ./t.html ./u.html ./v.html "
}

# Of a link it is the link's own name, which is what was typed.
names_of_links()
{
	ln -s job.d "$tmp/at/latest" && ln -s t.jsonl "$tmp/at/run7.jsonl" && mkdir "$tmp/at/in" || return
	(cd "$tmp/at/in" && "$scope" view -q ../latest && "$scope" view -q ../latest/ && "$scope" view -q ../run7.jsonl) || return
	same "$(cd "$tmp/at" && find in -name '*.html' | sort | tr '\n' ' ')" "in/latest.html in/run7.html "
}

inputs_alike()
{
	local want got
	want=$(md5sum <"$seed")
	for input in t.jsonl u.jsonl.zst job.d - /dev/stdin; do
		got=$(cd "$tmp/at" && "$scope" view -q -o i.html $input <t.jsonl && text_of i.html | md5sum)
		same "$input $got" "$input $want" || return
	done
	cd "$tmp/at" && "$scope" view -q -o - - <u.jsonl.zst >i.html && same "$(text_of i.html | md5sum)" "$want"
}

# report_of PAGE
report_of()
{
	grep -o 'data-kind="report">[^<]*' "$1" | sed 's/.*>//' | base64 -d | gzip -dc
}

report_inside()
{
	local got want
	cd "$tmp/at" || return
	"$scope" view -q -o r.html t.jsonl || return
	got=$(report_of r.html | jq -cS 'del(.inputs[].file)')
	want=$("$scope" report --json t.jsonl | jq -cS 'del(.inputs[].file)')
	[ ${#want} -gt 100 ] && same "$got" "$want"
}

# once COPIES ARGUMENT...: so many copies are left out of the page and of its report, which is said once.
once()
{
	local copies=$1
	shift
	view -q -o once.html "$@"
	same $rc 0 && same "$(grep -c "Traces of $copies process[es]* are given more than once, and taken once" "$tmp/err")" 1 || return
	same "$(text_of "$tmp/at/once.html" | md5sum)" "$(md5sum <"$tmp/at/good.jsonl")" &&
		same "$(report_of "$tmp/at/once.html" | jq -cS 'del(.inputs[].file)')" "$("$scope" report --json "$tmp/at/good.jsonl" | jq -cS 'del(.inputs[].file)')" &&
		same "$(grep -c data-name= "$tmp/at/once.html")" 1
}

copies()
{
	cd "$tmp/at" || return
	cp "$top/tests/unit/traces/good.jsonl" good.jsonl && zstd -q good.jsonl -o good.jsonl.zst && mkdir two.d || return
	cp good.jsonl two.d/trace_1_pid1.jsonl && cat good.jsonl good.jsonl >two.d/trace_2_pid1.jsonl || return
	once 1 good.jsonl good.jsonl.zst && once 1 good.jsonl good.jsonl && once 2 two.d && once 3 two.d two.d/trace_1_pid1.jsonl
}

# What two recordings of a process have at a time is there twice, and said; so is the header of a recording that broke off there.
not_copies()
{
	local want
	cd "$tmp/at" || return
	grep -v '"type":"ProfilerLifecycle"' good.jsonl >later.jsonl && head -n 1 good.jsonl >head.jsonl || return
	want=$(cat good.jsonl later.jsonl head.jsonl head.jsonl | md5sum)
	view -q -o both.html good.jsonl later.jsonl head.jsonl head.jsonl
	same "$(text_of both.html | md5sum)" "$want" && grep -q "Processes that two recordings have at the same time: 1\. .*'later.jsonl'" "$tmp/err"
}

report_of_compressed()
{
	local want
	cd "$tmp/at" || return
	want=$("$scope" report --json t.jsonl | jq -cS 'del(.inputs[].file)')
	same "$("$scope" report --json u.jsonl.zst | jq -cS 'del(.inputs[].file)')" "$want" &&
		same "$("$scope" report --json - <u.jsonl.zst | jq -cS 'del(.inputs[].file)')" "$want"
}

own_file()
{
	cd "$tmp/at" || return
	umask 0
	echo precious >elsewhere && ln -sf elsewhere link.html && "$scope" view -q -o link.html t.jsonl || return
	same "$(cat elsewhere)" precious && same "$(stat -c '%a %F' link.html)" '600 regular file' || return
	ln -sf /dev/full link.html && "$scope" view -q -o link.html t.jsonl && same "$(stat -c '%a %F' link.html)" '600 regular file' || return
	"$scope" view -q -o /dev/stdout t.jsonl >plain.html && [ -L /dev/stdout ] && same "$(text_of plain.html | md5sum)" "$(md5sum <t.jsonl)" || return
	chmod 666 elsewhere && "$scope" view -q -o elsewhere t.jsonl && same "$(stat -c %a elsewhere)" 600 || return
	[ "$(id -u)" != 0 ] || {
		SUDO_UID=65534 SUDO_GID=65534 "$scope" view -q -o sudo.html t.jsonl && same "$(stat -c %u:%g sudo.html)" 65534:65534
	}
}

# No page is better than half of one.
fails()
{
	local before=$1 want=$2
	shift 2
	view "$@"
	same "$rc" 1 && same "$(cat "$tmp/err")" "$want" && same "$(find "$tmp/at" -name "$before*" | wc -l)" 0
}

one_of_two()
{
	view -o two.html nowhere.jsonl t.jsonl
	same $rc 1 && grep -q "^ncclscope: error: Failed to read 'nowhere.jsonl': No such file" "$tmp/err" &&
		same "$(text_of "$tmp/at/two.html" | md5sum)" "$(md5sum <"$seed")"
}

damaged_zst()
{
	{ head -c 2000 "$tmp/at/u.jsonl.zst"; head -c 65536 /dev/zero | tr '\0' '\377'; } >"$tmp/at/bad.jsonl.zst"
	view -o bad.html bad.jsonl.zst
	same $rc 1 && same "$(head -n 1 "$tmp/err")" "ncclscope: error: Failed to read 'bad.jsonl.zst': its compression is damaged"
}

full_disk()
{
	[ -e /dev/full ] || return 0
	view -o /dev/full t.jsonl
	same $rc 1 && same "$(cat "$tmp/err")" "ncclscope: error: Failed to write '/dev/full': No space left on device"
}

# A line of 3 MiB, and no newline at the end: cut, and marked for the page.
long_lines()
{
	cd "$tmp/at" || return
	{ head -c 3145728 /dev/zero | tr '\0' x; echo; cat t.jsonl; printf '{"recordType":"node"'; } >long.jsonl
	"$scope" view -q -o long.html long.jsonl || return
	text_of long.html >long.text
	same "$(head -n 1 long.text | wc -c)" 257 && same "$(sed 1d long.text | head -n -1 | md5sum)" "$(md5sum <"$seed")" &&
		same "$(tail -n 1 long.text)" '{"recordType":"node"'
}

# Names of files are the one text of others that is in the page as it is.
hostile_name()
{
	local name want='data-name="&#34;&#62;&#60;script&#62;alert(1)&#60;\script&#62;?&#38;&#10;.jsonl">'
	cd "$tmp/at" || return
	name=$(printf '"><script>alert(1)<\\script>\x01&\n.jsonl')
	cp t.jsonl "$name" && "$scope" view -q -o n.html "$name" || return
	same "$(grep -o 'data-name="[^>]*>' n.html | head -n 1)" "$want"
}

terminal()
{
	script -qec "cd '$tmp/at' && '$scope' view -o - t.jsonl" /dev/null >"$tmp/tty" </dev/null
	grep -q 'A page is nothing for a terminal' "$tmp/tty" && same "$(wc -l <"$tmp/tty")" 1
}

# What `make picture` does, of another page: its name may be in another directory, and the picture's too.
picture()
{
	(cd "$tmp/at" && "$here/picture.sh" "$build" v.html ../p.png) && same "$(head -c 8 "$tmp/p.png" | od -An -tx1)" " 89 50 4e 47 0d 0a 1a 0a" &&
		! "$here/picture.sh" "$build" "$tmp/none.html" "$tmp/none.png" 2>"$tmp/err" && grep -q "none.html' is not there" "$tmp/err" && [ ! -e "$tmp/none.png" ]
}

# Standard input is kept until the page is made, as it is read twice.
nowhere_to_keep()
{
	TMPDIR=$tmp/none view -q -o k.html - && [ $rc != 0 ] &&
		same "$(cat "$tmp/err")" "ncclscope: error: Failed to keep what comes in TMPDIR, '$tmp/none': No such file or directory"
}

mkdir "$tmp/at"
t 'names of pages come from traces' default_names
t 'names of pages of links' names_of_links
t 'files, compressed ones, directories and standard input give the same' inputs_alike
t "the page has report's own words" report_inside
t 'a trace that is given twice is taken once' copies
t 'two recordings of a process are no copies' not_copies
t 'report reads compressed traces as well' report_of_compressed
t 'the file is its owner'\''s, and no link is followed' own_file
t 'no such trace' fails x "ncclscope: error: Failed to read 'nowhere': No such file or directory" nowhere -o x.html
t 'no such directory for the page' fails x "ncclscope: error: Failed to write 'no/x.html': No such file or directory" t.jsonl -o no/x.html
t 'a directory without traces' fails x "ncclscope: error: Failed to read '/dev': no trace_*.jsonl in it, nor any .zst" /dev -o x.html
t 'one of two traces is not there' one_of_two
t 'damaged compression' damaged_zst
t 'a full disk' full_disk
t 'nowhere to keep what comes from standard input' nowhere_to_keep
t 'lines that are too long, or torn' long_lines
t 'a hostile name' hostile_name
t 'no page onto a terminal' terminal

[ "${2:-}" != command ] || exit $failed
need_browser
t 'a picture of the page' picture
node "$here/view_test.mjs" "$out" "$scope" "$browser" "$top" "$tmp" || failed=1
exit $failed
