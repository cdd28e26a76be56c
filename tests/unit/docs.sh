#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Documentation against the tree: the files, make targets and functions that it names exist, its links
# lead somewhere, the layouts in docs/probes.md are the compiler's, docs/raw.md is of today's version, and
# a pipeline with awk in docs/export.md adds up.
#
# Usage: docs.sh [NCCLSCOPE]
# shellcheck disable=SC2016,SC2013 # the backticks are Markdown's
. "$(dirname "$0")/../lib.sh"
scope=$(realpath "${1:-$top/build/ncclscope}")
own_tmp
cd "$top" || exit 1
pages=(README.md CONTRIBUTING.md docs/*.md vmlinux/README.md)
code=(include bpf plugin loader tests Makefile)

# `code spans` of a page, and its indented or fenced lines.
code_of()
{
	grep -ohE '`[^`]+`' "$1" | tr -d '`'
	grep -hE '^    ' "$1"
	sed -n '/^```/,/^```/p' "$1"
}

paths()
{
	local page f
	for page in "${pages[@]}"; do
		code_of "$page" | grep -oP '(?<![\w/.-])(include|plugin|bpf|loader|tests|docs|man|packaging|vmlinux)/[][*A-Za-z0-9_./-]*[A-Za-z0-9*]' |
			grep -v '\.\.' | sort -u | while read -r f; do
			# NAME, ARCH and the like stand for something
			[[ $f =~ [A-Z]{3} && ! $f =~ README ]] && continue
			compgen -G "$f" >/dev/null || echo "$page: no $f"
		done
	done
}

links()
{
	local page f
	for page in "${pages[@]}"; do
		grep -ohE '\]\([^)]+\)' "$page" | sed 's/^](//; s/)$//; s/#.*//' | grep -vE '^(https?:|$)' |
			sort -u | while read -r f; do
			[ -e "$(dirname "$page")/$f" ] || echo "$page: link to $f"
		done
	done
}

targets_of()
{
	code_of "$1" | grep -oE '(^|[^a-z])make( [A-Z_]+=[^ ]*)* [a-z][a-z-]*' | awk '{print $NF}' | sort -u
}

targets()
{
	local page t all
	mapfile -t all < <(for page in "${pages[@]}"; do targets_of "$page"; done | sort -u)
	# All at once: to read the Makefile takes a while.
	[ ${#all[@]} -gt 0 ] && make -n "${all[@]}" >/dev/null 2>&1 && return
	for page in "${pages[@]}"; do
		for t in $(targets_of "$page"); do
			make -n "$t" >/dev/null 2>&1 || echo "$page: make $t"
		done
	done
}

# A line of a recipe that has $(MAKE) in it is run by make -n as well, all of it. VM_DIR's userland.sh fetches a Debian.
dry()
{
	mkdir "$tmp/vm"
	printf '#!/bin/sh\ntouch %s\n' "$tmp/fetched" >"$tmp/vm/userland.sh"
	chmod +x "$tmp/vm/userland.sh"
	make -n BUILD="$tmp/build" VM_DIR="$tmp/vm" vm-build-arm64 vm-unit-arm64 >"$tmp/dry" 2>&1 || tail -n 5 "$tmp/dry"
	grep -q "^$tmp/vm/userland.sh" "$tmp/dry" || echo "make -n vm-build-arm64: fetches nothing"
	[ ! -e "$tmp/fetched" ] || echo "make -n vm-build-arm64: runs userland.sh"
}

# not_in_code PATTERN: the words of the pages that are like that, each with its page, and not among those in the code.
not_in_code()
{
	grep -rIohP "$1" "${code[@]}" | sort -u >"$tmp/in-code"
	[ -s "$tmp/in-code" ] || echo "nothing in the code is like $1"
	grep -oP "\`\K$1(?=[()]*\`)" "${pages[@]}" | sort -u | awk -F: -v code="$tmp/in-code" '
		BEGIN { while ((getline < code) > 0) seen[$0] = 1 }
		!($2 in seen) { print $1 ": no " $2 " in the code" }'
}

# But for the two that stand for a form.
functions()
{
	not_in_code '\b(?!thing__verb|verb_noun)[a-z_]+(?=\()'
}

# Names in capitals with an underscore are ours or NCCL's.
constants()
{
	not_in_code '\b(SCOPE|MAX|CHILD|STUCK|PARENT|GONE|STATE|OUTSIDE|ID)_[A-Z_]+\b'
}

# Commands and long options of ncclscope.
usage()
{
	local page c o
	for page in README.md CONTRIBUTING.md docs/probes.md docs/limits.md docs/cluster.md; do
		code_of "$page" | grep -oE '(^|[ /])ncclscope [a-z]+( .*)?' | sed 's/^[ /]*//; s/ -- .*//' |
			sort -u | while read -r _ c o; do
			"$scope" --help | grep -qE "^  $c " || echo "$page: ncclscope $c"
			for o in $(grep -oE -- '--[a-z-]+' <<<"$o"); do
				"$scope" "$c" --help | grep -qE -- "(^| )$o\\b" || echo "$page: ncclscope $c $o"
			done
		done
	done
}

# Rows | `struct` | `field` | offset | size | of docs/probes.md, as assertions.
offsets()
{
	{
		echo '#include <stddef.h>'
		echo '#include "scope_abi.h"'
		sed -nE 's/^\| `([a-z_0-9]+)` \| `([a-z_0-9.]+)` \| ([0-9]+) \| ([0-9]+) \|.*/\1 \2 \3 \4/p' \
			docs/probes.md | while read -r st field off size; do
			echo "_Static_assert(offsetof(struct $st, $field) == $off, \"$st.$field\");"
			echo "_Static_assert(sizeof(((struct $st *)0)->$field) == $size, \"size $st.$field\");"
		done
	} >"$tmp/offsets.c"
	[ "$(grep -c _Static_assert "$tmp/offsets.c")" -ge 100 ] || echo 'docs/probes.md: rows not found'
	# shellcheck disable=SC2086 # a command and its options
	${CC:-gcc} -Iinclude -fsyntax-only "$tmp/offsets.c" 2>&1 | grep -oE 'error: .*'
}

# Every field of every record that a type of docs/probes.md has is in it.
fields()
{
	local st f
	for st in $(grep -oE '`scope_rec_[a-z0-9_]+` \|' docs/probes.md | tr -d '`| ' | sort -u); do
		sed -n "/^struct $st {/,/^};/p" include/scope_abi.h | sed 's,/\*.*,,' |
			sed -nE 's/^\t(__[us][0-9]+) ([a-z0-9_]+)(\[[0-9]+\])?;.*/\2/p' | grep -vx pad |
			while read -r f; do
				grep -q "^| \`$st\` | \`$f\` |" docs/probes.md || echo "no $st.$f in docs/probes.md"
			done
	done
}

# docs/raw.md is of the version that is written.
raw_version()
{
	local v
	v=$(sed -nE 's/^#define RAW_VERSION +([0-9]+)u.*/\1/p' loader/decode/raw.h)
	sed -n 1p docs/raw.md | grep -q "(version $v)\$" || echo "docs/raw.md: the title is not of version ${v:-unknown}"
	grep -q "^| 4 | version of this format, $v; " docs/raw.md || echo "docs/raw.md: the table is not of version ${v:-unknown}"
}

# The pipeline of docs/export.md that sums up paths, also of nanoseconds beyond 2^31: mawk, which many have as awk, prints those as 8.6e+10.
summed()
{
	local line
	line=$(sed -n 's/^    \$ ncclscope export --to collapsed [^|]*| //p' docs/export.md | grep awk) || { echo 'docs/export.md: no pipeline with awk'; return; }
	command -v mawk >/dev/null && mkdir "$tmp/bin" && ln -s "$(command -v mawk)" "$tmp/bin/awk"
	printf '%s\n' 'a;ProxyStep;x 86000000000' 'b;ProxyStep;x 1' 'a;ProxyStep;y 9000000000' 'a;Coll 5' |
		PATH=$tmp/bin:$PATH sh -c "$line" >"$tmp/summed" 2>&1
	printf '%s\n' '86000000001 ;ProxyStep;x' '9000000000 ;ProxyStep;y' | diff - "$tmp/summed"
}

verdict docs-paths "$(paths)"
verdict docs-links "$(links)"
verdict docs-make-targets "$(targets)"
verdict docs-dry-run "$(dry)"
verdict docs-functions "$(functions)"
verdict docs-constants "$(constants)"
verdict docs-usage "$(usage)"
verdict docs-probe-offsets "$(offsets)"
verdict docs-probe-fields "$(fields)"
verdict docs-raw-version "$(raw_version)"
verdict docs-awk "$(summed)"
exit $failed
