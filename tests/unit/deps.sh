#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# packaging/deps.sh with a package manager of our own making: what it asks for, when, and what it says.
. "$(dirname "$0")/../lib.sh"
deps=$top/packaging/deps.sh
"$deps" build >/dev/null 2>&1 || skip_all "this machine lacks what the build needs itself"
own_tmp
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

# build STATUS REGEX VAR=VALUE...: what `deps.sh build` comes to with these; REGEX is of all that it says.
build()
{
	local status=$1 regex=$2 said
	shift 2
	said=$(env PATH="$tmp/bin:$PATH" CC="$real_cc" CLANG="$real_clang" "$@" "$deps" build 2>&1 </dev/null)
	same $? "$status" "exit status" && [[ $said =~ ^($regex)$ ]] && return
	echo "$said"
	return 1
}

stub apt-get <<END
#!/bin/sh
echo "\$@" >>$tmp/asked
case "\$*" in *install*) [ -e $tmp/refuse ] && { echo "E: no such thing"; exit 100; }
	ln -sf $real_clang $tmp/bin/clang-new ;; esac
END
echo 'echo 0' | stub id
t "all is there" build 0 ''
t "all is there: nothing is asked for" [ ! -e "$tmp/asked" ]

t "installs" build 0 'Installing clang' CLANG=clang-new
is "what it asks for" "$(sed 's/-o [^ ]* -y //' "$tmp/asked")" $'update\ninstall --no-install-recommends clang'

rm -f "$tmp/bin/clang-new"
touch "$tmp/refuse"
t "refused" build 1 $'Installing clang\nE: no such thing\nFailed to install clang' CLANG=clang-new

echo 'echo 1000' | stub id
t "not root" build 3 $'Missing: clang-new. Install with:\n  sudo apt-get install --no-install-recommends clang' \
	CLANG=clang-new

stub clang-old <<'END'
#!/bin/sh
echo 13.0.1
END
t "an old clang" build 1 'clang-old is version 13, at least 14 is needed.*' CLANG=clang-old

stub old-libbpf-cc <<END
#!/bin/sh
case "\$*" in *-P*) cat >/dev/null; echo 0 ;; *) exec $real_cc "\$@" ;; esac
END
t "an old libbpf" build 1 'libbpf-dev is version 0.x, at least 1.0 is needed .*22.04.*' CC=old-libbpf-cc

"$deps" nonsense >/dev/null 2>&1
is "usage" $? 2
finish
