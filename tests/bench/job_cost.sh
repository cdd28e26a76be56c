#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a whole job loses: the stand-in's AllReduce over TCP, four ranks, with nothing, with the plugin disarmed, with
# everything recorded and with everything in a capture (record --raw), by turns. It shares its CPUs with the recorder.
#
# Usage: job_cost.sh [--rounds N] [--iters LARGE,SMALL] [--json]
# LARGE: of 64 MiB, SMALL: of 64 KiB. A round takes nothing, disarmed, everything, a capture, and all again from there
# back to nothing.
usage() {
	echo "Usage: job_cost.sh [--rounds N] [--iters LARGE,SMALL] [--json]" >&2
	exit 2
}

rounds=5 iters=200,20000 json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--iters) iters=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds in '' | *[!0-9]* | 0*) usage ;; esac
large=${iters%,*} small=${iters#*,}
case $large$small in '' | *[!0-9]*) usage ;; esac

export E2E_TIMEOUT=$((rounds * (160 + 8 * large / 2 + 8 * small / 200) + 120))
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
export STANDIN_TIMEOUT=$((60 + large + small / 100))

# job SIZE ITERS CASE PLUGIN: seconds that its iterations took, those of the rank that took longest.
job() {
	NCCL_PROFILER_PLUGIN=$4 "$job" --ranks 4 --op allreduce --bytes "$1" --warmup $(($2 / 20 + 1)) --iters "$2" --no-check \
		--json >"$tmp/job.json" 2>"$tmp/job.err" || {
		cat "$tmp/job.err" >&2
		die "the job failed"
	}
	note "[\"$1\", \"$3\"]" "$(jq '[.rank[] | [.iterations[] | select(.warmup | not).us] | add / 1e6] | max' "$tmp/job.json")"
}

# recorded SIZE ITERS CASE OPTION...
recorded() {
	recorder_with trace "${@:4}"
	job "$1" "$2" "$3" "$plugin"
	stop_recorder
	sed -n 's/^Loss: //p' "$tmp/trace.err" >>"$tmp/loss"
	rm -rf "${tmp:?}/trace"
}

size() {
	job "$1" "$2" nothing none
	job "$1" "$2" disarmed "$plugin"
	recorded "$1" "$2" everything -o "$tmp/trace"
	recorded "$1" "$2" captured --raw "$tmp/trace"
	recorded "$1" "$2" captured --raw "$tmp/trace"
	recorded "$1" "$2" everything -o "$tmp/trace"
	job "$1" "$2" disarmed "$plugin"
	job "$1" "$2" nothing none
}

for round in $(seq "$rounds"); do
	size 64M "$large"
	size 64K "$small"
	progress
done

# A pair: of one half of a round, so next to each other in time.
jq -s --argjson rounds "$rounds" --argjson iters "[$large, $small]" --argjson lost "$(grep -cv '^0$' "$tmp/loss")" "$stats"'
	{"64M": {disarmed: 0.1, everything: 2, captured: 2}, "64K": {disarmed: 0.1, everything: 5, captured: 5}} as $max
	| group_by([.round, .key[0]]) | map({size: .[0].key[0], of: (group_by(.key[1]) | map({(.[0].key[1]): map(.value)}) | add)})
	| {rounds: $rounds, lossy: $lost, cases: (group_by(.size) | sort_by(.[0].size) | reverse | map(.[0].size as $size
		| {size: $size, iters: (if $size == "64M" then $iters[0] else $iters[1] end), seconds: (map(.of.nothing[]) | spread),
			noise: (map(100 * (.of.nothing[1] / .of.nothing[0] - 1)) | spread),
			disarmed: (map(range(2) as $i | 100 * (.of.disarmed[$i] / .of.nothing[$i] - 1)) | spread),
			everything: (map(range(2) as $i | 100 * (.of.everything[$i] / .of.nothing[$i] - 1)) | spread),
			captured: (map(range(2) as $i | 100 * (.of.captured[$i] / .of.nothing[$i] - 1)) | spread)}))}
	| .targets = [.cases[] | . as $c | ("disarmed", "everything", "captured") | {what: "\($c.size), \(.)", unit: "%", value: $c[.].median, ci: $c[.].ci,
		max: $max[$c.size][.], met: ($c[.].median <= $max[$c.size][.]), within: ($c[.].ci[0] <= $max[$c.size][.])}]' \
	"$tmp/values" >"$tmp/result" || die "no result"
if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
jq -r 'def num: . * 100 | round / 100 | tostring; def of: "\(.median | num)% (\(.ci | map(num) | join("..")))";
	(.cases[] | "\(.size) x \(.iters): \(.seconds.median | num) s, noise \(.noise | of), disarmed \(.disarmed | of), everything \(.everything | of), captured \(.captured | of)"),
	(.targets[] | "\(.what): at most \(.max)% \(if .met then "met" elif .within then "not shown: within the noise" else "MISSED" end)"),
	(select(.lossy > 0) | "Something was lost in \(.lossy) recordings: the figures are too low")' "$tmp/result"
