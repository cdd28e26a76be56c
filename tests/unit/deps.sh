#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# packaging/deps.sh with a package manager of our own making: what it asks for, when, and what it says.
set -u
deps=$(realpath "$(dirname "$0")/../../packaging/deps.sh")
failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

if ! "$deps" build >/dev/null 2>&1; then
	echo "skip deps: this machine lacks what the build needs itself"
	exit 77
fi
real_cc=$(command -v "${CC:-gcc}")
real_clang=$(command -v "${CLANG:-clang}")
unset CC CLANG

# stub NAME: a program that is found first, from standard input.
stub()
{
	mkdir -p "$tmp/bin"
	cat >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}

# expect NAME STATUS REGEX VAR=VALUE...: runs `deps.sh build`; REGEX is of all that it says.
expect()
{
	local name=$1 status=$2 regex=$3 said rc
	shift 3
	said=$(env PATH="$tmp/bin:$PATH" CC="$real_cc" CLANG="$real_clang" "$@" "$deps" build 2>&1 </dev/null)
	rc=$?
	if [ $rc = "$status" ] && [[ $said =~ ^($regex)$ ]]; then
		echo "ok $name"
	else
		echo "not ok $name"
		echo "# exit status $rc, not $status, or not what it should say:"
		echo "# ${said//$'\n'/$'\n'# }"
		failed=1
	fi
}

stub apt-get <<END
#!/bin/sh
echo "\$@" >>$tmp/asked
case "\$*" in *install*) [ -e $tmp/refuse ] && { echo "E: no such thing"; exit 100; }
	ln -sf $real_clang $tmp/bin/clang-new ;; esac
END
echo 'echo 0' | stub id
expect deps-all-there 0 ''
[ ! -e "$tmp/asked" ] && echo "ok deps-asks-nothing" || { echo "not ok deps-asks-nothing"; failed=1; }

expect deps-installs 0 'Installing clang' CLANG=clang-new
asked=$(sed 's/-o [^ ]* -y //' "$tmp/asked" | tr '\n' ';')
if [ "$asked" = 'update;install --no-install-recommends clang;' ]; then
	echo "ok deps-asks"
else
	echo "not ok deps-asks"
	echo "# $asked"
	failed=1
fi

rm -f "$tmp/bin/clang-new"
touch "$tmp/refuse"
expect deps-refused 1 $'Installing clang\nE: no such thing\nFailed to install clang' CLANG=clang-new

echo 'echo 1000' | stub id
expect deps-not-root 3 $'Missing: clang-new. Install with:\n  sudo apt-get install --no-install-recommends clang' \
	CLANG=clang-new

stub clang-old <<'END'
#!/bin/sh
echo 13.0.1
END
expect deps-old-clang 1 'clang-old is version 13, at least 14 is needed.*' CLANG=clang-old

stub old-libbpf-cc <<END
#!/bin/sh
case "\$*" in *-P*) cat >/dev/null; echo 0 ;; *) exec $real_cc "\$@" ;; esac
END
expect deps-old-libbpf 1 'libbpf-dev is version 0.x, at least 1.0 is needed .*22.04.*' CC=old-libbpf-cc

"$deps" nonsense >/dev/null 2>&1
[ $? = 2 ] && echo "ok deps-usage" || { echo "not ok deps-usage"; failed=1; }
exit $failed
