#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# packaging/deps.sh with a package manager of our own making: what it asks for, when, and what it says.
. "$(dirname "$0")/../lib.sh"
deps=$top/packaging/deps.sh
"$deps" build >/dev/null 2>&1 || skip_all "this machine lacks what the build needs itself"
own_tmp
CC=${CC:-gcc} CLANG=${CLANG:-clang}
real_cc=$(command -v "${CC%% *}")
real_clang=$(command -v "${CLANG%% *}")
unset CC CLANG

# stub NAME: a program that is found first, from standard input.
stub()
{
	mkdir -p "$tmp/bin"
	cat >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}

# needs WHAT STATUS REGEX VAR=VALUE...: what `deps.sh WHAT` comes to with these; REGEX is of all that it says.
needs()
{
	local what=$1 status=$2 regex=$3 said
	shift 3
	said=$(env PATH="$tmp/bin:$PATH" CC="$real_cc" CLANG="$real_clang" "$@" "$deps" "$what" 2>&1 </dev/null)
	same $? "$status" "exit status" && [[ $said =~ ^($regex)$ ]] && return
	echo "$said"
	return 1
}

build()
{
	needs build "$@"
}

stub apt-get <<END
#!/bin/sh
echo "\$@" >>$tmp/asked
case "\$*" in *install*) [ -e $tmp/refuse ] && { echo "E: no such thing"; exit 100; }
	ln -sf $real_clang $tmp/bin/clang-new ;; esac
END
echo 'echo 0' | stub id
t "all is there" build 0 ''
t "all is there: compilers with options" build 0 '' CC="$real_cc -pipe" CLANG="$real_clang -pipe"
needs check 0 '' >/dev/null &&
	t "all is there: for tests, a clang with an option" needs check 0 '' CLANG="$real_clang -pipe"
t "all is there: nothing is asked for" [ ! -e "$tmp/asked" ]

t "installs" build 0 'Installing clang' CLANG=clang-new
is "what it asks for" "$(sed 's/-o [^ ]* -y //' "$tmp/asked")" $'update\ninstall --no-install-recommends clang'

rm -f "$tmp/bin/clang-new"
touch "$tmp/refuse"
t "refused" build 1 $'Installing clang\nE: no such thing\nFailed to install clang' CLANG=clang-new

echo 'echo 1000' | stub id
t "not root" build 3 $'Missing: clang-new. Install with:\n  sudo apt-get install --no-install-recommends clang' \
	CLANG=clang-new

t "no compiler: headers by their place" build 3 $'Missing: no-such-cc. Install with:\n  sudo apt-get install --no-install-recommends gcc' \
	CC=no-such-cc

# ccache, say, is there, and what it is to call is not.
echo 'exec "$@"' | stub wrapper
t "a wrapper of no compiler" build 3 $'Missing: wrapper no-such-cc. Install with:\n  sudo apt-get install --no-install-recommends gcc' \
	CC='wrapper no-such-cc'
t "a wrapper of no clang" build 3 $'Missing: wrapper no-such-clang. Install with:\n  sudo apt-get install --no-install-recommends clang' \
	CLANG='wrapper no-such-clang'
echo 'exit 0' | stub clang-mute
t "a clang without a version" build 1 'clang-mute does not say what version it is: .*' CLANG=clang-mute

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

# Tests take one that deps.sh finds good enough.
echo 'exit 2' | stub bpftool
t "bpftool: without /usr/sbin in PATH" eval "[ -n '$(PATH=/usr/bin:/bin BPFTOOL='' bash -c '. "$1" && a_bpftool' "$0" "$top/tests/lib.sh")' ]"
is "bpftool: not one that does not run" "$(BPFTOOL=$tmp/bin/bpftool PATH=$tmp/bin:$PATH a_bpftool | grep "^$tmp\|^bpftool")" ''
ln -sf /bin/true "$tmp/bin/bpftool"
is "bpftool: what BPFTOOL says" "$(BPFTOOL=$tmp/bin/bpftool a_bpftool)" "$tmp/bin/bpftool"
rm "$tmp/bin/bpftool"

# A tool that tests want in one version: a release that has another one does without.
mkdir "$tmp/others"
ln -s /usr/bin/* "$tmp/others/"
rm -f "$tmp/others/clang-format-14"
without=:$PATH:
without=${without//:\/usr\/bin:/:$tmp/others:}
without=${without//:\/bin:/:}
# lists PACKAGE...: the package lists that this machine has got.
lists()
{
	stub apt-cache <<END
#!/bin/sh
case " $* " in *" \$2 "*) echo "Filename: pool/\$2.deb" ;; *) exit 100 ;; esac
END
}
lists
t "a pinned tool, before there are lists" needs check 3 $'Missing:.* clang-format-14.*. Install with:\n.* clang-format-14.*' PATH="$tmp/bin:${without#:}"
lists libc6-dev clang-format-14
t "a pinned tool that the release has" needs check 3 $'Missing:.* clang-format-14.*. Install with:\n.* clang-format-14.*' PATH="$tmp/bin:${without#:}"
lists libc6-dev clang-format-19
t "a pinned tool that the release has not" needs check 0 '' PATH="$tmp/bin:${without#:}"

"$deps" nonsense >/dev/null 2>&1
is "usage" $? 2
finish
