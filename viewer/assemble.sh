#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Puts the viewer's page together: assemble.sh PAGE.html PAGE.css SCRIPT.js... The scripts become one function, and the
# page may run nothing but that: its policy has the hashes of script and style.
set -eu
LC_ALL=C
export LC_ALL
page=$1 style=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A line of a licence is enough for all.
body()
{
	grep -vh 'SPDX-License-Identifier' "$@"
}

hash()
{
	sha256sum "$1" | cut -c1-64 | fold -w 2 | while read -r byte; do
		# shellcheck disable=SC2059 # an octal escape is the format
		printf "\\$(printf %03o "0x$byte")"
	done | base64
}

{ echo; body "$style"; } >"$tmp/style"
{ printf "\n'use strict';\n(() => {\n"; body "$@"; echo '})();'; } >"$tmp/script"
if grep -q '</s' "$tmp/style" "$tmp/script"; then
	echo "assemble.sh: '</s' would end the element that it is in" >&2
	exit 1
fi
style_hash=$(hash "$tmp/style") script_hash=$(hash "$tmp/script")
while IFS= read -r line; do
	case $line in
	*@STYLE@*) printf '<style>' && cat "$tmp/style" && echo '</style>' ;;
	*@SCRIPT@*) printf '<script>' && cat "$tmp/script" && echo '</script>' ;;
	*@POLICY@*)
		printf '<meta http-equiv="Content-Security-Policy" content="%s">\n' \
			"default-src 'none'; script-src 'sha256-$script_hash'; style-src 'sha256-$style_hash'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
		;;
	*) printf '%s\n' "$line" ;;
	esac
done <"$page"
