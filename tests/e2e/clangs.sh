#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# BPF programs of other clangs than the build's: each optimises in its own way, and the kernel's verifier has to follow. One that
# it does not take costs all kernel context, with no more than a warning. clangs.sh [CLANG...]; otherwise those from 14 on that are installed.
. "$(dirname "$0")/lib.sh"

# What does not have BPF in it is the build's own.
build_with() {
	local clang=$1 out=$build/clangs/$1
	rm -rf "$out" && mkdir -p "$out" && cp -a "$build/loader" "$build"/*.h "$build/libnccl-profiler-ncclscope.so" "$build/plugin" "$out/" &&
		rm -f "$out"/{scope,probe}.skel.h "$out"/loader/attach/attach*.o "$out"/loader/doctor/feat_bpf.o "$out"/loader/*.d "$out"/loader/*/*.d &&
		make -C "$top" --no-print-directory -s -j"$(nproc)" BUILD="$out" CLANG="$clang" "$out/ncclscope"
}

installed() {
	local clang own=${CLANG:-clang}
	for clang in $(compgen -c clang- | grep -xE 'clang-[0-9]+' | sort -uV); do
		[ "${clang#clang-}" -lt 14 ] ||
			[ "$(readlink -f "$(command -v "$clang")")" = "$(readlink -f "$(command -v "${own%% *}")")" ] || echo "$clang"
	done
}

clangs=${*:-$(installed)}
[ -n "$clangs" ] || skip_all "no clang beside the one that it was built with (packaging/deps.sh check)"
for clang in $clangs; do
	t "$clang: builds" build_with "$clang"
	cp "$build/clangs/$clang/ncclscope" "$scope" || continue
	is "$clang: doctor" "$("$scope" doctor --json | jq -r '.. | objects | select(.name? == "record-programs").status')" works
	record "$clang" -- "$job" --ranks 2 --bytes 1M --iters 20 --check --json
	is "$clang: the job runs, nobody complains" "$rc$(grep -E 'warning|error' "$tmp/$clang.err")" 0
	t "$clang: what the job made, clean, lossless" good "$clang"
	t "$clang: steps know what their thread did" steps_have_states "$clang"
	t "$clang: and their flow" holds "$clang" '[events[] | select(.type == "ncclProfileProxyStep")] | length > 0 and all(.net)'
done
finish
