#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The picture of the page in README and docs: of what `make demo` has left, as a click on the first verdict shows it.
#
# Usage: picture.sh [BUILD DIR [PAGE [PNG]]]
. "$(dirname "$0")/lib.sh"
page=${2:-$top/ncclscope-demo/timeline.html} png=${3:-$top/docs/view.png}
[ -f "$page" ] || {
	echo "picture: '$page' is not there: run 'make demo', which makes it" >&2
	exit 1
}
need_browser
node "$here/picture.mjs" "$out" "$browser" "$(realpath "$page")" "$(realpath -m "$png")"
