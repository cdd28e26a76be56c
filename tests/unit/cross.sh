#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The plugin and the BPF programs build for arm64, and the plugin has there what it has here: NCCL's
# tables, the control block, the probes with their semaphores, arguments in registers.
#
# Usage: cross.sh [BUILD DIR]
. "$(dirname "$0")/../lib.sh"
build=${1:-build}
so=$build/arm64/libnccl-profiler-ncclscope.so
cd "$top" || exit 1
command -v aarch64-linux-gnu-gcc >/dev/null && [ -e /usr/aarch64-linux-gnu/include/stdio.h ] ||
	skip_all "no compiler for arm64 (packaging/deps.sh check)"
own_tmp

t "the build" make -s cross-check BUILD="$build"
[ $failed = 0 ] || finish
is "its machine" "$(readelf -h "$so" | sed -n 's/^ *Machine: *//p')" AArch64
is "BPF programs" "$(cd "$build/arm64" && echo *.bpf.o)" "$(cd bpf && echo *.bpf.c | sed 's/\.c\>/.o/g')"
is "exports" "$(nm -D --defined-only "$so" | awk '{print $3}' | sort)" \
	"$(printf 'ncclProfiler_v%d\n' 1 2 3 4 5 6 7; echo ncclscope_control)"
# nothing but libc (and the loader, which glibc may name)
is "libraries" "$(readelf -d "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(ld-|libdl\.so\.2$|libpthread\.so\.0$)')" libc.so.6
is "versions of libc" "$(nm -D --undefined-only "$so" | sed -n 's/.*@//p' | sort -u)" GLIBC_2.17
is "probes" "$(readelf -n "$so" | awk '/Name:/ {name = $2} /Arguments:/ {sub(/.*Arguments: /, ""); print name, $0}')" 'flush 8@x0 8@x1
start 8@x0 8@x1 8@x2
state 8@x0 8@x1 8@x2
stop 8@x0'
is "semaphores that are nowhere" "$(readelf -n "$so" | grep -c 'Semaphore: 0x0000000000000000')" 0
finish
