#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What it takes to make traces of inputs: a capture of the stand-in job, with kernel context and without, recorded once and
# converted over and over, as text and with --compress, by one thread (--threads=0) and with another that writes. A line
# each: records of NCCL and of the kernel; how many of both one thread does in a second of CPU time (the machine may be
# shared), ns of CPU each, the median, the kernel's part of it and the least, and how many two do in a second; bytes of traces,
# and of the capture, for each of NCCL; peak memory. And of a tenth as many records, to see that memory does not grow.
#
# In a virtual machine, own_memory comes first: see there.
#
# Usage: convert.sh [--records N] [--rounds N] [--json] [NCCLSCOPE...]
# --records: of NCCL in a capture, about (1,000,000). With several programs, each round takes all of them by turns.
usage() {
	echo "Usage: convert.sh [--records N] [--rounds N] [--json] [NCCLSCOPE...]" >&2
	exit 2
}

records=1000000 rounds=5 json='' programs=()
while [ $# -gt 0 ]; do
	case $1 in
	--records) records=${2:?} && shift ;;
	--rounds) rounds=${2:?} && shift ;;
	--json) json=1 ;;
	-*) usage ;;
	*) programs+=("$(realpath "$1")") ;;
	esac
	shift
done
case $records$rounds in *[!0-9]*) usage ;; esac

export E2E_TIMEOUT=$((rounds * records / 10000 + 600))
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
[ ${#programs[@]} -gt 0 ] || programs=("$scope")
for program in "${programs[@]}"; do
	"$program" convert --help | grep -q -e --threads || {
		echo "Failed to compare '$program': its convert knows no --threads" >&2
		exit 1
	}
done

# An iteration is about 270 records.
make_capture() { # NAME RECORDS OPTION...
	local name=$1 n=$2
	shift 2
	"$scope" record -q --plugin "$plugin" --ring 512M --raw "$tmp/$name.raw" "$@" -- "$job" --ranks 2 --op allreduce \
		--bytes 4M --channels 2 --no-check --timeout 3600 --iters $((n / 270 + 1)) >/dev/null 2>"$tmp/$name.err" || {
		cat "$tmp/$name.err"
		exit 1
	}
}
make_capture off "$records" --sched=off --net=off
make_capture on "$records"
make_capture short $((records / 10))

# value PROGRAM CASE THREADS ROUND [OPTION...]
value() {
	local program=$1 name=$2 threads=$3 round=$4 say out=$tmp/out
	shift 4
	rm -rf "$out"
	say=$("$program" convert -v --threads="$threads" "$@" "$tmp/$name.raw" -o "$out" 2>&1 | grep -o 'Inputs: .*') || exit 1
	[ "$round" = 0 ] || sed -E "s/.*context: ([0-9]+), of NCCL: ([0-9]+); CPU ([0-9.]+) s, ([0-9.]+) s of .* took ([0-9.]+) s; peak ([0-9]+) KiB.*/\1 \2 \3 \4 \5 \6/" <<<"$say" |
		jq -cRn --arg program "${program##*/}" --arg case "$name${1:+ $1}" --argjson threads "$threads" \
			--argjson raw "$(stat -c %s "$tmp/$name.raw")" --argjson bytes "$(cat "$out"/* | wc -c)" \
			'input | split(" ") | map(tonumber) | {program: $program, case: $case, threads: $threads, nccl: .[1], context: .[0], all: (.[0] + .[1]), cpu: .[2],
				kernel: .[3], took: .[4], peakKiB: .[5], raw: $raw, bytes: $bytes}' >>"$tmp/values"
}
# values PROGRAM CASE ROUND [OPTION...]: by one thread, and with another.
values() {
	value "$1" "$2" 0 "${@:3}"
	value "$1" "$2" 1 "${@:3}"
}
for ((round = 0; round <= rounds; round++)); do # the first warms up
	for program in "${programs[@]}"; do values "$program" short $round; done
	for name in off on; do
		for program in "${programs[@]}"; do
			values "$program" $name $round
			values "$program" $name $round --compress
		done
	done
done

result=$(jq -sc --argjson rounds "$rounds" "$stats"'
	{"off": 4e6, "on": 2e6} as $min | {"on --compress": 30} as $max
	| {rounds: $rounds, cases: (group_by([.program, .case]) | map(map(select(.threads == 0)) as $one | map(select(.threads == 1)) as $two
		| .[0] + {cpu: ($one | map(.cpu) | median), kernel: ($one | map(.kernel) | median), least: ($one | map(.cpu) | min), took: ($two | map(.took) | median), peakKiB: (map(.peakKiB) | max)}
		| . + {perSecond: (.all / .cpu | floor), perSecondTwo: (.all / .took | floor), nsEach: (.cpu * 1e9 / .all | round), nsKernel: (.kernel * 1e9 / .all | round), nsLeast: (.least * 1e9 / .all | round),
			outEach: (.bytes * 10 / .nccl | round / 10), rawEach: (.raw * 10 / .nccl | round / 10)}))}
	| .targets = [.cases[]
		| (select($min[.case]) | {what: "records of capture \(.case), text, one thread", unit: "a second of CPU", value: .perSecond, min: $min[.case], met: (.perSecond >= $min[.case])},
			{what: "the same, two threads", unit: "a second", value: .perSecondTwo, min: $min[.case], met: (.perSecondTwo >= $min[.case])}),
		(select($max[.case]) | {what: "capture \(.case)", unit: "bytes a record of NCCL", value: .outEach, max: $max[.case], met: (.outEach <= $max[.case])})]' "$tmp/values")
if [ "$json" ]; then
	jq . <<<"$result"
else
	printf '%-12s %-15s %9s %9s %10s %6s %6s %6s %11s %9s %8s %8s\n' program context nccl kernel records/s ns sys least two/s B/nccl raw peakMiB
	jq -r '.cases[] | [.program, (.case | gsub(" "; ",")), .nccl, .context, .perSecond, .nsEach, .nsKernel, .nsLeast, .perSecondTwo, .outEach, .rawEach, (.peakKiB / 1024 | round)] | @tsv' <<<"$result" |
		awk -F'\t' '{ printf "%-12s %-15s %9d %9d %10d %6d %6d %6d %11d %9.1f %8.1f %8d\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 }'
fi
