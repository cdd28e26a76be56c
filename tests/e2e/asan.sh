#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# End-to-end tests once more, with a recorder and a job that were built with ASan, LSan and UBSan: asan.sh TEST...
# The plugin is as always; the fuzzers have it with sanitizers. Whatever process reports something, and whether or not
# a test looks at how that one ended, the report is found.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
plain=$(realpath "${BUILD:-$top/build}")
build=$plain/asan
logs=$build/test-logs
failed=0

# The recorder is that of view.sh.
build_all() {
	local make=(make -C "$top" --no-print-directory -s -j"$(nproc)")
	"${make[@]}" BUILD="$plain" "$plain/tests/view/ncclscope" && mkdir -p "$build" && cp "$plain/tests/view/ncclscope" "$build" &&
		"${make[@]}" BUILD="$build" ASAN=1 -o "$build/ncclscope" e2e-progs
}
build_all >"$build.log" 2>&1 || {
	echo "not ok asan.sh: make: $(tail -n 3 "$build.log")"
	exit 1
}
rm -rf "$logs"
mkdir -p "$logs"
# Jobs of other users report as well.
reports=$(mktemp -d -p /tmp scope-asan.XXXXXX)
trap 'rm -rf "$reports"' EXIT
chmod 1777 "$reports"
# What is freed is kept for a while to find those that still use it, by default 256 MiB of it: as much as a test lets the
# recorder have.
export BUILD=$build ASAN_OPTIONS=log_path=$reports/report:quarantine_size_mb=32

tests=("${@/#/$top/tests/e2e/}")
"$top/tests/run.sh" -o "$logs" --beside "${tests[@]/%/.sh}" >"$logs/run.out" 2>&1
for name in "$@"; do
	# A case is one of that test's; said here is which and how many.
	counts=$(grep "^$name\.sh " "$logs/run.out" | tr -s ' ')
	case $counts in
	*' 0 failed '*) echo "ok asan.sh: $counts" ;;
	*)
		echo "not ok asan.sh: $name"
		failed=1
		;;
	esac
done
[ $failed = 0 ] || cat "$logs/run.out"
if found=$(cd "$reports" && ls) && [ -z "$found" ]; then
	echo "ok asan.sh: no report"
else
	echo "not ok asan.sh: $found"
	head -n 40 "$reports"/*
	failed=1
fi
exit $failed
