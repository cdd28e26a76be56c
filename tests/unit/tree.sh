#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The source tree itself: form of its files, headers that stand alone, install and uninstall, make clean.
# Looks at what git would commit, so a file that somebody is about to add counts too.
#
# Usage: tree.sh [BUILD DIR]
. "$(dirname "$0")/../lib.sh"
build=${1:-build}
own_tmp
cd "$top" || exit 1
# What was on the command line of the make that runs this is in the environment, too: the copy below would make clean there.
unset MAKEFLAGS MAKELEVEL BUILD BINDIR LIBDIR MANDIR DOCDIR INCDIR COMPDIR UNITDIR

# without_git: the files of a released archive, or of a checkout where there is no git. A worktree's .git is a file.
without_git()
{
	find . -path ./.git -prune -o -path ./build -prune -o -path './ncclscope*' -prune -o '(' -type f -o -type l ')' -print |
		sed 's,^\./,,'
}

# The checkout may belong to another user than root.
if git -c safe.directory='*' ls-files >/dev/null 2>&1; then
	git -c safe.directory='*' ls-files -co --exclude-standard
else
	without_git
fi | while read -r f; do
	[ -e "$f" ] && echo "$f"
done | sort >"$tmp/files"
grep -vE '^(vmlinux/.*\.h|LICENSE.*|tests/data/.*)$' "$tmp/files" >"$tmp/ours"

# files PATTERN: those of ours that match, without links (their targets are in the list).
files()
{
	grep -E "$1" "$tmp/ours" | while read -r f; do [ -L "$f" ] || echo "$f"; done
}
mapfile -t text < <(files . | xargs grep -Il .)
mapfile -t csrc < <(files '\.[ch]$')
mapfile -t scripts < <(grep -lE '^#!.*/(ba)?sh' "${text[@]}")

whitespace()
{
	grep -nE '[[:blank:]]+$' "${text[@]}" | cut -c1-100
	grep -nP '\r' "${text[@]}" | cut -c1-100
	for f in "${text[@]}"; do
		[[ $f == */traces/* ]] && continue # of processes that still run: cut off on purpose
		[ -z "$(tail -c 1 "$f")" ] || echo "$f: no newline at the end"
	done
}

# What a test or somebody at the keyboard leaves at the top is easily added with the rest.
top_level()
{
	sed 's,/.*,,' "$tmp/files" | sort -u |
		grep -vxE '\.ci|\.clang-(format|tidy)|\.dockerignore|\.editorconfig|\.gitignore|CONTRIBUTING\.md|LICENSE(\.GPL-2\.0)?|Makefile|README\.md|bpf|docs|include|loader|man|packaging|plugin|tests|viewer|vmlinux' |
		sed 's/$/: does not belong there/'
}

spdx()
{
	# the first line that is not for a tool
	files '(\.([ch]|sh|mk|py|1|bash-completion|jq)|/run|Makefile)$' | xargs awk '
		function bad() { print file ": line 1 is no SPDX-License-Identifier" }
		FNR == 1 { if (file && !seen) bad(); file = FILENAME; seen = 0 }
		seen || FNR <= 2 && /^#(!| shellcheck)/ { next }
		{ seen = 1 }
		!/SPDX-License-Identifier: / { bad() }
		END { if (file && !seen) bad() }'
	# bpf/ may be taken under the GPL as well, and the kernel wants that
	files '^bpf/.*\.[ch]$' | xargs awk 'FNR == 1 && !/BSD-2-Clause OR GPL-2.0|GPL-2.0-only OR BSD-2/ { print FILENAME ": not dual-licensed" }'
}

executable()
{
	local f
	for f in "${text[@]}"; do
		if [ "$(head -c 2 "$f")" = '#!' ]; then
			[ -x "$f" ] || echo "$f: begins with #! and is not executable"
		elif [ -x "$f" ]; then
			echo "$f: executable, and no #! says by whom"
		fi
	done
}

# A directory of the machine that somebody works on has no place in the tree.
machine_paths()
{
	files . | grep -v '^tests/unit/tree.sh$' | xargs grep -nE "(^|[^A-Za-z0-9_$\"}])/(home|Users|root)/[a-z]|/tmp/tmp\." |
		cut -c1-120
}

format()
{
	local out
	out=$("$clang_format" --dry-run -Werror "${csrc[@]}" 2>&1) ||
		sed -n 's/^\([^:]*\):.*\[-Wclang-format-violations\]$/\1: make format/p' <<<"$out" | uniq | grep . ||
		echo "clang-format failed: $out"
}

# header FILE COMPILER...: compiles when it is the first thing that a file includes.
header()
{
	local f=$1
	shift
	echo "#include \"$f\"" >"$tmp/header.c"
	"$@" -Wall -Wextra -fsyntax-only "$tmp/header.c" >"$tmp/err" 2>&1 ||
		echo "$f: $(grep -m 1 error "$tmp/err")"
}

headers()
{
	local f
	# shellcheck disable=SC2046,SC2086 # commands and their options
	for f in $(files '^(include|loader|loader/[a-z]+|plugin|tests/[a-z]+)/[^/]*\.h$'); do
		header "$f" ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -Iloader $(printf -- "-I%s " loader/*/) \
			-Iplugin -Itests/standin
	done
	# shellcheck disable=SC2086
	for f in $(files '^bpf/.*\.h$'); do
		header "$f" ${CLANG:-clang} -target bpf -D__TARGET_ARCH_x86 -I. -Ivmlinux/x86 -Iinclude \
			-Ibpf -Wno-unused
	done
}

# Where the document @1 leads to within the tree.
links()
{
	local to
	grep -oE '\]\([^)#]+' "$1" | sed 's/^](//' | grep -v '^https\?:' | while read -r to; do
		[ -e "$(dirname "$1")/$to" ] || echo "${1##*/}: leads to '$to', which is not there"
	done
}

# Into an empty DESTDIR with another PREFIX; then everything must go again, and nothing else. From a copy of the build, as what has
# PREFIX in it is made again, and other tests run the one that is there.
installed()
{
	local f dest=$tmp/dest built=$tmp/built
	mkdir -p "$dest/opt/lib" "$built"
	touch "$dest/opt/lib/somebody-elses"
	cp -a "$build/loader" "$build/plugin" "$built/"
	find "$build" -maxdepth 1 ! -type d -exec cp -a -t "$built" {} +
	make -s install-default BUILD="$built" DESTDIR="$dest" PREFIX=/opt >"$tmp/log" 2>&1 ||
		{ echo "make install failed"; tail -n 5 "$tmp/log"; return; }
	for f in bin/ncclscope lib/libnccl-profiler-ncclscope.so lib/libnccl-profiler.so \
		share/man/man1/ncclscope.1 share/man/man1/ncclscope-disarm.1 share/doc/ncclscope/README.md \
		share/doc/ncclscope/trace.md share/doc/ncclscope/LICENSE include/ncclscope/scope_abi.h \
		share/bash-completion/completions/ncclscope; do
		[ -f "$dest/opt/$f" ] || echo "not installed: $f"
	done
	for f in "$dest"/opt/share/doc/ncclscope/*.md; do
		links "$f"
	done
	"$dest/opt/bin/ncclscope" version >/dev/null || echo "the installed ncclscope does not run"
	grep -q /opt/lib/libnccl-profiler-ncclscope.so "$dest/opt/bin/ncclscope" || echo "the installed ncclscope looks for its plugin elsewhere"
	make -n all BUILD="$built" PREFIX=/opt | grep -q plugin_path.o && echo "the same PREFIX, and built again"
	make -s uninstall BUILD="$built" DESTDIR="$dest" PREFIX=/opt >"$tmp/log" 2>&1 ||
		{ echo "make uninstall failed"; tail -n 5 "$tmp/log"; }
	(cd "$dest" && find . ! -type d ! -name somebody-elses -printf 'left behind: %P\n')
	(cd "$dest" && find . -depth -mindepth 1 -type d -name ncclscope -printf 'left behind: %P\n')
	[ -e "$dest/opt/lib/somebody-elses" ] || echo "took somebody else's file away"
}

# In a copy: what a build with somebody's own flags makes, make clean takes away, and it takes nothing else.
cleaned()
{
	local copy=$tmp/copy
	mkdir "$copy"
	tar -cf - -T "$tmp/files" | tar -xf - -C "$copy"
	(
		cd "$copy" || exit
		find . | sort >"$tmp/before"
		make -s CFLAGS='-O1 -g' plugin standin >"$tmp/log" 2>&1 ||
			{ echo "a fresh copy does not build"; tail -n 5 "$tmp/log"; }
		[ -e build/libnccl-profiler-ncclscope.so ] || echo "nothing built"
		make -s clean || echo "make clean failed"
		find . | sort | diff "$tmp/before" - | sed -n 's/^>/left behind:/p; s/^</taken away:/p'
	)
}

# What was added to CFLAGS in the environment, a make below this one would take for the user's.
flags()
{
	same "$(printf 'include Makefile\nshow:\n\t@echo "$$CFLAGS"\n' | CFLAGS=-O3 make -s -f - show)" -O3 CFLAGS
}

# Of that copy, as a clone and as a worktree.
listed()
{
	(
		cd "$tmp/copy" || { echo "no copy"; exit; }
		mkdir -p .git/objects build && touch .git/config .git/objects/pack build/made
		without_git | sort | diff "$tmp/files" - | sed -n 's/^>/of a clone:/p; s/^</not listed:/p'
		rm -r .git && echo "gitdir: elsewhere" >.git
		without_git | sort | diff "$tmp/files" - | sed -n 's/^>/of a worktree:/p'
	)
}

# A header's change makes what includes it again, in the program, for unit tests, with TSan, and for fuzzers: objects of it @1, which includes @2.
made_again()
{
	local out object
	out=$(realpath --relative-to=. "$build")
	for object in "$out"/{loader,tests/unit/loader,tests/unit/tsan,tests/fuzz/loader}/"$1".o; do
		[ ! -e "$object" ] || make -n BUILD="$out" -W "$2" "$object" 2>/dev/null | grep -q -- "-o $object" || echo "$object: not made again for $2"
	done
}

# roots WHAT: complaints that in the build directory of that copy, which is a user's, things are not this user's.
roots()
{
	[ -n "$(ls -A build)" ] || echo "$1: nothing in build"
	find build ! -user 65534 -printf "$1: %p is of %u\n" | head -n 3
}

# What root leaves in it, by each target, where nothing builds; and where it is interrupted. No package is installed on the way.
given_back()
{
	local t pid
	(
		cd "$tmp/copy" || { echo "no copy"; exit; }
		printf '#!/bin/sh\n' >packaging/deps.sh
		echo '#error' >>loader/main.c
		chown -R 65534:65534 .
		for t in demo check coverage soak bench bench-quick check-gpu check-image check-distro-libc; do
			rm -rf build
			make -s "$t" >"$tmp/log" 2>&1 && echo "make $t: no error"
			roots "make $t"
		done
		rm -rf build
		mkdir -p build/distro/some/root
		env --default-signal=INT setsid packaging/give_back.sh build sh -c 'touch build/begun; sleep 60; touch build/ended' &
		pid=$!
		for t in $(seq 100); do [ -e build/begun ] || sleep 0.1; done
		kill -INT -- -$pid
		wait $pid && echo "interrupted: no error"
		[ ! -e build/ended ] || echo "interrupted: ended"
		[ "$(stat -c %u build/distro/some/root)" = 0 ] || echo "took files of another Debian"
		rm -r build/distro
		roots interrupted
	)
}

verdict tree-whitespace "$(whitespace)"
verdict tree-top "$(top_level)"
verdict tree-spdx "$(spdx)"
verdict tree-executable "$(executable)"
verdict tree-machine-paths "$(machine_paths)"
clang_format=$(command -v clang-format-14)
if [ -n "$clang_format" ]; then
	verdict tree-format "$(format)"
else
	echo "skip tree-format: no clang-format-14, and other versions format a little differently"
fi
if command -v shellcheck >/dev/null; then
	verdict tree-shellcheck "$(shellcheck -x -P SCRIPTDIR -S warning -f gcc "${scripts[@]}" 2>&1)"
else
	echo "skip tree-shellcheck: no shellcheck"
fi
verdict tree-headers "$(headers)"
verdict tree-install "$(installed)"
verdict tree-clean "$(cleaned)"
verdict tree-flags "$(flags)"
verdict tree-made-again "$(made_again report/report_jobs loader/report/report.h; made_again decode/blocks loader/decode/blocks.h)"
verdict tree-without-git "$(listed)"
if [ "$(id -u)" = 0 ]; then
	verdict tree-given-back "$(given_back)"
else
	echo "skip tree-given-back: takes root"
fi
exit $failed
