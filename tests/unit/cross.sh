#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The plugin and the BPF programs build for arm64, and the plugin has there what it has here: NCCL's
# tables, the control block, the probes with their semaphores, arguments in registers.
#
# Usage: cross.sh [BUILD DIR]
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build}
so=$build/arm64/libnccl-profiler-ncclscope.so
failed=0
export LC_ALL=C

if ! command -v aarch64-linux-gnu-gcc >/dev/null || [ ! -e /usr/aarch64-linux-gnu/include/stdio.h ]; then
	echo "skip cross: no compiler for arm64 (packaging/deps.sh check)"
	exit 77
fi

is()
{
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		echo "not ok $1"
		printf '# %s\n' "expected: ${2//$'\n'/ | }" "seen:     ${3//$'\n'/ | }"
		failed=1
	fi
}

make -s cross-check BUILD="$build" || { echo "not ok cross-build"; exit 1; }
is cross-build AArch64 "$(readelf -h "$so" | sed -n 's/^ *Machine: *//p')"
is cross-bpf "$(cd bpf && echo *.bpf.c | sed 's/\.c\>/.o/g')" "$(cd "$build/arm64" && echo *.bpf.o)"
is cross-exports "$(printf 'ncclProfiler_v%d\n' 1 2 3 4 5 6 7; echo ncclscope_control)" \
	"$(nm -D --defined-only "$so" | awk '{print $3}' | sort)"
# nothing but libc (and the loader, which glibc may name)
is cross-libraries libc.so.6 "$(readelf -d "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-')"
is cross-probes 'flush 8@x0 8@x1
start 8@x0 8@x1 8@x2
state 8@x0 8@x1 8@x2
stop 8@x0' "$(readelf -n "$so" | awk '/Name:/ {name = $2} /Arguments:/ {sub(/.*Arguments: /, ""); print name, $0}')"
is cross-semaphores 0 "$(readelf -n "$so" | grep -c 'Semaphore: 0x0000000000000000')"
exit $failed
