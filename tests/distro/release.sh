#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The README's two commands on a new machine of another release, with its compilers and libraries, which warn of nothing:
# release.sh NAME... (trixie). Of `make check`, what it says of itself is said at the end: all of it is in build/distro/NAME.check.
. "$(dirname "$0")/lib.sh"

own_tmp

silent() {
	! grep -nE '(warning|error): ' "$1" | head -n 20 | grep .
}

for release; do
	log=$distros/$release
	t "$release: is there" distro "$release"
	t "$release: the sources" sources "$release"
	t "$release: git and make" inside "$release" sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends git make'
	[ $failed = 0 ] || finish
	inside "$release" sh -c 'cd /src && WERROR=1 make demo' >"$log.demo" 2>&1 </dev/null
	is "$release: make demo" $? 0
	t "$release: make demo: nothing to complain of" silent "$log.demo"
	inside "$release" sh -c 'cd /src && WERROR=1 make check' >"$log.check" 2>&1 </dev/null
	is "$release: make check" "$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log.check" | tail -n 1 | grep -o ' 0 failed')" ' 0 failed'
	grep -E '^(not ok|skip) |passed, [0-9]+ failed' "$log.check" | sed 's/^/# /'
done
finish
