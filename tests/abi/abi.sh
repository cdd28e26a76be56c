#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Layouts: include/ as gcc, clang, clang for BPF and both for arm64 see it. And the built plugin as others
# see it: what it exports, needs and calls, and that its USDT notes are what include/scope_probes.h says.
#
# Usage: abi.sh [PLUGIN [CC [CLANG [BPFTOOL]]]]
. "$(dirname "$0")/../lib.sh"
plugin=$(realpath "${1:-$top/build/libnccl-profiler-ncclscope.so}")
cc=${2:-gcc} clang=${3:-clang} cross=aarch64-linux-gnu-gcc
bpftool=${4:-$(a_bpftool)}
cd "$top" || exit 1
needs "${clang%% *}" "${bpftool:-bpftool}"
own_tmp

# have COMPILER NAME: or the case is skipped.
have() {
	command -v "${1%% *}" >/dev/null && return
	skip "$2" "no $1"
	return 1
}

# ---- Layouts ---------------------------------------------------------------------------------------

structs() {
	sed -n 's/^\(struct\|union\) \(scope_[a-z0-9_]*\) {.*/\1 \2/p' include/scope_abi.h
}

# One variable of every struct, so that the compiler describes it.
{
	echo '#include "scope_abi.h"'
	structs | sed 's/\(.*\) \(.*\)/\1 \2 a_\2;/'
} >"$tmp/all.c"

# "struct.member offset" and "struct size" of what BTF says, sorted.
layout_of() {
	"$bpftool" btf dump file "$1" | tr -d "'" | awk '
		/^\[/ { on = ($2 == "STRUCT" || $2 == "UNION") && $3 ~ /^scope_/; s = $3
			if (on) { split($4, a, "="); print s, a[2] } next }
		on { split($3, a, "="); print s "." $1, a[2] / 8 }' | sort
}

# C that asserts all of a layout.
asserts_of() {
	echo '#include "scope_abi.h"'
	while read -r what n; do
		case $what in
		*'(anon)') ;; # a union: what is behind it is held in its place
		*.*) echo "_Static_assert(__builtin_offsetof(struct ${what%.*}, ${what#*.}) == $n, \"$what\");" ;;
		*) echo "_Static_assert(sizeof(struct $what) == $n, \"$what\");" ;;
		esac
	done
}

layouts() {
	local n want
	layout_of "$tmp/gcc.o" >"$tmp/gcc" && layout_of "$tmp/bpf.o" >"$tmp/bpf" || return
	diff "$tmp/gcc" "$tmp/bpf" || return
	asserts_of <"$tmp/gcc" >"$tmp/asserts.c"
	n=$(grep -vc '\.' "$tmp/gcc") want=$(structs | wc -l)
	[ "$n" = "$want" ] && [ "$want" -gt 20 ] || {
		echo "$n structs described, $want in the header"
		return 1
	}
}

compiles() {
	local source=$1
	shift
	"$@" -std=gnu11 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$source"
}

gcc_btf() {
	"$cc" -std=gnu11 -gbtf -Iinclude -c "$tmp/all.c" -o "$tmp/gcc.o" &&
		"$clang" -g -O2 -target bpf -D__TARGET_ARCH_x86 -Ivmlinux/x86 -Iinclude \
			-c "$tmp/all.c" -o "$tmp/bpf.o"
}

printf '#include "nccl_profiler.h"\n' >"$tmp/nccl.c"
if "$cc" -gbtf -E - </dev/null >/dev/null 2>&1; then
	t "scope_abi.h as $cc and $clang for BPF" gcc_btf
	t "every struct and member at the same place for both" layouts
else
	skip "scope_abi.h as $cc and $clang for BPF" "$cc writes no BTF"
	: >"$tmp/asserts.c"
fi
for c in "$cc" "$clang" "$cross" "$clang --target=aarch64-linux-gnu"; do
	have "$c" "layouts" || continue
	# shellcheck disable=SC2086 # a command and its options
	t "scope_abi.h has these offsets as $c" compiles "$tmp/asserts.c" $c
	# shellcheck disable=SC2086
	t "scope_abi.h has no padding of the compiler's as $c" compiles "$tmp/all.c" $c -Wpadded
	# shellcheck disable=SC2086
	t "nccl_profiler.h has NCCL's layout as $c" compiles "$tmp/nccl.c" $c
done
t "scope_abi.h has these offsets as $clang for BPF on arm64" compiles "$tmp/asserts.c" \
	"$clang" -target bpf -D__TARGET_ARCH_arm64 -Ivmlinux/arm64 -Wno-unused

# A wrong layout is noticed.
sed 's/^_Static_assert(__builtin_offsetof(\(.*\)) == \([0-9]*\),/_Static_assert(__builtin_offsetof(\1) == 1\2,/' \
	"$tmp/asserts.c" >"$tmp/wrong.c"
# shellcheck disable=SC2016
[ -s "$tmp/asserts.c" ] && t "a moved member would be noticed" \
	sh -c '! "$1" -Iinclude -fsyntax-only "$2"' - "$cc" "$tmp/wrong.c"

# ---- Exports and imports ---------------------------------------------------------------------------

exports() {
	nm -D --defined-only "$plugin" | awk '{ print $NF }' | sort >"$tmp/exports"
	{ printf 'ncclProfiler_v%d\n' 1 2 3 4 5 6 7; echo ncclscope_control; } |
		sort | diff - "$tmp/exports"
}

needed() {
	! readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|libdl\.so\.2|libpthread\.so\.0)$'
}

# A job's container may have an older libc than the machine that the plugin was built on (plugin/libc_versions.h). RHEL 7 has 2.17.
old_libc() {
	local newest
	newest=$(nm -D --undefined-only "$plugin" | sed -n 's/.*@GLIBC_//p' | sort -uV | tail -n 1)
	[ -n "$newest" ] && [ "$(printf '%s\n' 2.17 "$newest" | sort -V | tail -n 1)" = 2.17 ] && return
	nm -D --undefined-only "$plugin" | grep "@GLIBC_$newest"
	return 1
}

# What may be called. When it is loaded: getenv. At init only, as they take locks: dlopen, dlclose, dlsym, dladdr1, fopen, fgets,
# fclose; statvfs, of /dev/shm. At init or at the first callback of a thread: the pthread_ functions, mmap, sched_yield.
allowed="__errno_location clock_gettime dladdr1 dlclose dlopen dlsym fclose fgets fopen getenv getpid madvise mmap munmap
pthread_key_create pthread_once pthread_setspecific sched_yield statvfs strncpy strnlen strtoul syscall
memcpy memmove memset __memcpy_chk __memmove_chk __memset_chk __strncpy_chk __fgets_chk strchr strcspn strlen strrchr strcmp strncmp __stack_chk_fail __cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable
_ITM_registerTMCloneTable"

imports() {
	nm -D --undefined-only "$plugin" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort >"$tmp/imports"
	echo "$allowed" | tr -s ' \n' '\n\n' | sort >"$tmp/allowed"
	[ -z "$(comm -23 "$tmp/imports" "$tmp/allowed")" ] || {
		comm -23 "$tmp/imports" "$tmp/allowed"
		return 1
	}
}

# A label of readelf's output must be there.
says() {
	local what=$1
	shift
	readelf "$@" "$plugin" | grep -E "$what"
}

t "exports seven tables and the control block, nothing else" exports
t "needs libc only" needed
t "and runs with an old one" old_libc
t "calls nothing that allocates, locks or blocks on the event path" imports
t "no executable stack" says 'GNU_STACK.* RW +0x' -Wl
t "RELRO" says 'GNU_RELRO' -Wl
t "bound at load" says 'BIND_NOW|FLAGS_1.*NOW' -d
t "never unmapped" says 'FLAGS_1.*NODELETE' -d
t "build id" says 'Build ID: [0-9a-f]{40}' -n
t "no relocation in its text" sh -c '! readelf -d "$1" | grep TEXTREL' - "$plugin"

# ---- USDT ------------------------------------------------------------------------------------------

# "provider probe nargs" from the table in the header, by the columns of its dashed line.
documented() {
	awk '/^ \*   ---/ { for (i = 1; i <= length($0); i++)
				if (substr($0, i, 1) == "-" && substr($0, i - 1, 1) != "-") at[++n] = i
			    at[n + 1] = 200; on = 1; next }
	     !on { next }
	     !/^ \*   [ a-z]/ { exit }
	     { cell = substr($0, at[1], at[2] - at[1]); gsub(/ /, "", cell)
	       if (cell == "") next
	       probe = substr($0, at[2], at[3] - at[2]); gsub(/ /, "", probe)
	       args = 0
	       for (c = 3; c <= n; c++) {
		       v = substr($0, at[c], at[c + 1] - at[c]); gsub(/ /, "", v)
		       if (v != "" && v !~ /^\(/) args++ # a remark is no argument
	       }
	       print cell, probe, args }' include/scope_probes.h | sort
}

# "provider probe site semaphore args..." of a file's notes.
notes() {
	readelf -n "$1" | awk '
		$1 == "Provider:" { p = $2 }
		$1 == "Name:" { n = $2 }
		$1 == "Location:" { gsub(/,/, ""); site = $2; sem = $6 }
		$1 == "Arguments:" { $1 = ""; print p, n, site, sem $0 }'
}

probes_as_documented() {
	documented >"$tmp/documented"
	[ "$(wc -l <"$tmp/documented")" -ge 4 ] || {
		echo "no table found in scope_probes.h"
		return 1
	}
	notes "$plugin" | awk '{ print $1, $2, NF - 4 }' | sort | diff "$tmp/documented" -
}

registers_only() {
	! notes "$plugin" | cut -d' ' -f5- | tr ' ' '\n' | grep -vE '^-?[1248]@(%[a-z0-9]+|x[0-9]+)$'
}

# record reads them where a function has its arguments, and refuses a plugin whose note has them elsewhere.
flush_as_called() {
	notes "$1" | grep -qE '^ncclscope flush [^ ]+ [^ ]+ 8@(%rdi 8@%rsi|x0 8@x1)$'
}

semaphores() {
	notes "$plugin" | awk '{ print $4 }' | sort >"$tmp/sems"
	! grep -E '^0x0*$' "$tmp/sems" && ! uniq -d "$tmp/sems" | grep . && [ -s "$tmp/sems" ]
}

# The one-byte NOP: the five-byte form lets a kernel write below the stack pointer.
nops() {
	notes "$plugin" | while read -r _ name site _; do
		objdump -d --start-address="$site" --stop-address=$((site + 1)) "$plugin" |
			grep -qE '^ *[0-9a-f]+:[[:space:]]+90[[:space:]]+nop' || {
			echo "$name: at $site is no one-byte NOP"
			exit 1
		}
	done
}

t "probes and their arguments are those of scope_probes.h" probes_as_documented
t "arguments are registers" registers_only
t "the flush probe's are those of its function" flush_as_called "$plugin"
t "a semaphore for each probe" semaphores
if readelf -h "$plugin" | grep -q X86-64; then
	t "probe sites are one-byte NOPs" nops
fi

# The plugin for arm64, as far as a cross compiler without its libraries goes.
arm64() {
	local f sdt
	sdt=$(echo '#include <sys/sdt.h>' | "$cc" -E - | sed -n 's/.*"\(\/.*\)\/sys\/sdt\.h".*/\1/p' | head -n 1)
	mkdir -p "$tmp/sdt/sys" && cp "$sdt"/sys/sdt*.h "$tmp/sdt/sys/" || return
	for f in plugin/*.c; do
		"$cross" -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wshadow -Werror -fPIC \
			-fvisibility=hidden -Iinclude -Iplugin -idirafter "$tmp/sdt" -c "$f" \
			-o "$tmp/arm64-$(basename "$f" .c).o" || return
	done
	notes "$tmp/arm64-probes.o" | awk '{ print $1, $2, NF - 4 }' | sort | diff "$tmp/documented" - && flush_as_called "$tmp/arm64-probes.o"
}
if have "$cross" "the plugin for arm64"; then
	t "the plugin compiles for arm64 with the same probes" arm64
fi
finish
