#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Manual pages against the program: every command has a page, every option of `ncclscope COMMAND --help`
# is in it and nothing else is, and mandoc finds no error.
#
# Usage: man.sh [NCCLSCOPE]
. "$(dirname "$0")/../lib.sh"
scope=$(realpath "${1:-$top/build/ncclscope}")

commands()
{
	"$scope" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'
}

# Options in the left column of a help text: "  -p, --pid=PID   text", "      --json   text".
help_options()
{
	"$scope" "$1" --help 2>/dev/null | grep -oE '^ {2,6}-[^ ,=]+(, --[^ =]+)?' |
		grep -oE -- '-[^ ,]+' | sort -u
}

# Options that a page explains: ".It Fl p Ar pid , Fl -pid Ns = Ns Ar pid".
page_options()
{
	sed -n 's/^\.It Fl /Fl /p' "$1" | grep -oE '\bFl [^ ]+' | sed 's/^Fl /-/; s/\\&//' | sort -u
}

pages=$(for c in $(commands); do realpath "$top/man/ncclscope-$c.1" 2>/dev/null; done | sort -u)
few=''
[ "$(commands | wc -l)" -ge 7 ] || few="too few commands in '$scope --help': $(commands)"
verdict man-commands "$few"

short=$(for c in $(commands); do
	[ "$("$scope" "$c" -h 2>&1)" = "$("$scope" "$c" --help)" ] || echo "$c: -h is another help than --help, or none"
done)
verdict help-short "$short"

# A text that is as wide as its column makes argp put a line of blanks behind it.
blank=$(for c in $(commands); do
	"$scope" "$c" --help | grep -nE '^ +$' | sed "s/^/$c: a line of blanks, /"
done)
verdict help-blank "$blank"

for c in $(commands); do
	page=$top/man/ncclscope-$c.1
	if [ -e "$page" ]; then
		missing=$(comm -23 <(help_options "$c") <(page_options "$page"))
		verdict "man-$c" "${missing:+not in man/ncclscope-$c.1: ${missing//$'\n'/ }}"
	else
		verdict "man-$c" "no man/ncclscope-$c.1"
	fi
done

# A page may serve several commands, so what it has too much is told by all of them together.
for page in $pages; do
	all=$(for c in $(commands); do
		[ "$(realpath "$top/man/ncclscope-$c.1" 2>/dev/null)" = "$page" ] && help_options "$c"
	done | sort -u)
	extra=$(comm -13 <(echo "$all") <(page_options "$page"))
	verdict "man-page-$(basename "$page" .1)" "${extra:+in no help text: ${extra//$'\n'/ }}"
done

index=$(for c in $(commands); do
	grep -qE "^\.It Cm (.*, )?$c( ,.*)?\$" "$top/man/ncclscope.1" || echo "$c: not in man/ncclscope.1"
done)
verdict man-index "$index"

if command -v mandoc >/dev/null; then
	verdict man-lint "$(mandoc -T lint -W error "$top"/man/*.1 2>&1)"
else
	echo "skip man-lint: no mandoc"
fi
exit $failed
