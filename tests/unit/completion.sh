#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What bash completion offers, with stand-ins for the functions of bash-completion that it calls.
#
# Usage: completion.sh [NCCLSCOPE]
. "$(dirname "$0")/../lib.sh"
scope=$(realpath "${1:-$top/build/ncclscope}")
own_tmp

# offered WORD...: what there is for the last one, sorted; FILES, DIRS or PIDS where that is for bash-completion to say.
offered()
{
	(
		# shellcheck disable=SC2034 # they are _ncclscope's
		_init_completion() { words=("${line[@]}") cword=$((${#line[@]} - 1)) cur=${line[-1]} prev=${line[-2]}; }
		_filedir() { if [ "${1:-}" = -d ]; then COMPREPLY=(DIRS); else COMPREPLY=(FILES); fi; }
		_pids() { COMPREPLY=(PIDS); }
		compopt() { :; }
		complete() { :; }
		# shellcheck source=../../packaging/ncclscope.bash-completion
		. "$top/packaging/ncclscope.bash-completion"
		line=("$scope" "$@")
		COMPREPLY=()
		_ncclscope
		printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
	)
}
# Options by the usage text, which has them all and nothing else: [-qv?] [-d TIME] [--duration=TIME].
options()
{
	"$scope" "$1" --usage 2>/dev/null | grep -oE '\[--?[a-zA-Z?][a-zA-Z?-]*' | tr -d '[' |
		sed -E '/^--/!{s/^-//;s/./-&\n/g}' | sed '/^$/d' | sort -u | xargs
}

is "commands" "$(offered rec)" record
for command in $("$scope" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
	is "$command: its options, and nothing else that begins with a dash" "$(offered "$command" -)" "$(options "$command")"
done
is "record: some of them" "$(offered record -- | tr ' ' '\n' | grep -cxE -- '--(raw|mask|nvml|rdma-root|duration)')" 5
is "record: of its texts none" "$(offered record - | tr ' ' '\n' | grep -cxE -- '-(T|TIME|vv)')" 0
for command in check convert export merge report view; do
	is "$command: files" "$(offered "$command" '')" FILES
done
for option in --plugin --raw --nvml; do
	is "record $option: files" "$(offered record $option '') $(offered record $option=x)" "FILES FILES"
done
is "record --output: a directory" "$(offered record -o '') $(offered record --output=x)" "DIRS DIRS"
is "record --rdma-root: a directory" "$(offered record --rdma-root '') $(offered record --rdma-root=x)" "DIRS DIRS"
is "record --pid: processes" "$(offered record -p '')" PIDS
is "record --mask: the last of a list" "$(offered record --mask coll,proxys) $(offered record --mask=coll,proxys)" \
	"coll,proxystep coll,proxystep"
is "export --to: formats" "$(offered export --to ch) $(offered export --to=ch)" "chrome chrome"
is "record --duration: nothing" "$(offered record --duration=)" ""

finish
