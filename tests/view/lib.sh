# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Shared by the tests of `view`, which source it: a browser with what drives it.
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
self=view # one name for all of them
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath "${1:-$top/build}")
scope=$build/ncclscope # what is installed
out=$build/tests/view
mkdir -p "$out"
own_tmp

# In $browser, and true. Ubuntu's chromium-browser is a script that wants snapd.
find_browser()
{
	local name
	for name in chromium chromium-browser; do
		browser=$(command -v $name) || continue
		"$browser" --version >"$tmp/version" 2>&1 && grep -q '^Chromium [0-9]' "$tmp/version" && return 0
	done
	return 1
}

# What drives the browser, by the versions of package-lock.json; once.
install_driver()
{
	cmp -s "$here/package-lock.json" "$out/node_modules/.package-lock" && return 0
	rm -rf "$out/node_modules"
	cp "$here/package.json" "$here/package-lock.json" "$out/" &&
		npm ci --prefix "$out" --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null &&
		cp "$here/package-lock.json" "$out/node_modules/.package-lock"
}

# The browser's part of a test, or why there is none. Only where a distribution has no browser to install it may be skipped.
need_browser()
{
	if ! find_browser; then
		if grep -qs '^ID=ubuntu' /etc/os-release; then
			skip_all "Ubuntu's chromium is a snap, and there is none here"
		fi
		echo "not ok view: no chromium that runs: packaging/deps.sh check"
		exit 1
	fi
	if ! install_driver >"$tmp/npm" 2>&1; then
		echo "not ok view: npm ci"
		tail -n 10 "$tmp/npm" | sed 's/^/# /'
		exit 1
	fi
}
