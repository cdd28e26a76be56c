#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What `make coverage` says: how many lines of each file of plugin/ and loader/ ran, which did not, and of all. Exits 1
# below the minimum: coverage.sh BUILD-DIRECTORY PERCENT
build=$1 min=$2
command -v gcovr >/dev/null || {
	echo "coverage: needs gcovr: packaging/deps.sh check" >&2
	exit 1
}
# A file is compiled more than once (for programs, for unit tests): a line that ran in one of them ran.
gcovr --root . --filter 'plugin/' --filter 'loader/' --gcov-ignore-parse-errors \
	--txt "$build/coverage.txt" --json "$build/coverage.json" \
	--exclude-throw-branches --fail-under-line "$min" "$build/loader" "$build/plugin" "$build/tests/unit" \
	"$build/tests/fuzz/plain"
rc=$?
cat "$build/coverage.txt"
[ $rc = 0 ] || echo "coverage: fewer than $min % of the lines ran" >&2
exit $rc
