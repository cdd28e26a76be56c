#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Static analysis: cppcheck 2.10 and clang-tidy 14 (.clang-tidy says which of its checks) find nothing in plugin/ and
# loader/. What bpf/ may do is the verifier's to judge. Usage: analyze.sh [BUILD DIR] [FILE...]
# ANALYZE_NODES (75000): how many states of a function clang's analyzer follows. Its own default, 225000, takes thrice the time: `make analyze`.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$top/build}")
shift
cd "$top" || exit 1
[ $# -gt 0 ] || set -- plugin/*.c loader/*.c loader/*/*.c
tidy=$(command -v clang-tidy-14)
read -r -a loader < <(printf -- "-I%s " loader loader/*/)
failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

verdict()
{
	if [ "$2" = 0 ]; then
		echo "ok $1"
	else
		echo "not ok $1"
		{
			grep -E ' (error|warning): ' "$tmp/$1"
			head -n 60 "$tmp/$1"
		} | sed 's/^/# /'
		failed=1
	fi
}

# What cppcheck 2.10 takes wrongly: `a ?: b` (check.c, netdev.c), accept4() without an address (feat_net.c).
check()
{
	cppcheck --quiet --error-exitcode=1 -j "$(nproc)" --std=c11 --library=gnu \
		--enable=warning,performance,portability --inline-suppr \
		--suppress=selfAssignment:loader/check/check.c --suppress=memleak:loader/node/netdev.c \
		--suppress=nullPointer:loader/doctor/feat_net.c \
		-Itests/lint -Iinclude "${loader[@]}" -Iplugin -D_GNU_SOURCE -D__x86_64__ \
		'-DLIBBPF_OPTS(type, name, ...)=struct type name = {0}' "$@" >"$tmp/cppcheck" 2>&1
}

# tests/lint has a uthash that the analyser understands. attach, feat_bpf: bpftool's skeletons are not ours to mend.
tidy()
{
	printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 sh -c 'case $1 in
		*/feat_bpf.c | */attach/attach*.c) set -- --checks=-clang-analyzer-unix.Malloc "$1" ;; esac
		out=$("$0" --quiet "$@" -- -std=gnu11 -D_GNU_SOURCE \
		-Itests/lint -Iinclude $LOADER_INC -Iplugin -isystem "$BUILD_DIR" \
		-DNCCLSCOPE_VERSION=\"0\" -DNCCLSCOPE_LIBDIR=\"/lib\" \
		-Xclang -analyzer-config -Xclang max-nodes="$ANALYZE_NODES" 2>&1) || { echo "$out"; exit 1; }' \
		"$tidy" >"$tmp/clang-tidy" 2>&1
}

case $(cppcheck --version 2>/dev/null) in
*' 2.10'*)
	check "$@"
	verdict cppcheck $?
	;;
*) echo "skip cppcheck: no cppcheck 2.10, and other versions take other things wrongly" ;;
esac
if [ -n "$tidy" ]; then
	export BUILD_DIR=$build LOADER_INC="${loader[*]}" ANALYZE_NODES=${ANALYZE_NODES:-75000}
	tidy "$@"
	verdict clang-tidy $?
else
	echo "skip clang-tidy: no clang-tidy-14, and other versions know other checks"
fi
exit $failed
