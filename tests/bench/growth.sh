#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Does an event cost the same however many there are? Processes, channels and events grow; what a callback costs the
# job, and what a record costs the recorder, in CPU time; beside it, what one costs that a plugin does nothing in, for
# processes that take turns have cold caches whoever has what to do in them. Over events, of which there are the most, with --compress:
# 10^8 are 21 GB of text, and what the machine then takes for memory is not the recorder's cost.
#
# Usage: growth.sh [--rounds N] [--events N] [--svg FILE] [--json]
# --events: at most so many callbacks a run. The plot goes to FILE. More than 10^7 make their own average: those are run once.
usage() {
	echo "Usage: growth.sh [--rounds N] [--events N] [--svg FILE] [--json]" >&2
	exit 2
}

rounds=3 most=10000000 svg='' json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--events) most=${2:?} && shift ;;
	--svg) svg=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds$most in *[!0-9]* | 0*) usage ;; esac

export E2E_TIMEOUT=$((rounds * (600 + most / 20000) + 60))
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
long=10000000
usual=$((most < 400000 ? most : 400000)) # callbacks of a run that does not grow in them

# jobs PROCESSES OPTION...: all at the same time.
jobs() {
	local i pids=() n=$1
	shift
	rm -f "$tmp"/run.*
	for i in $(seq "$n"); do
		"$benches/callback" --cpus "$home,$one" "$@" >"$tmp/run.$i" &
		pids+=($!)
	done
	wait "${pids[@]}" || die "the bench failed"
}

# quiet: ns of a callback in the runs, those that others disturb least.
quiet() {
	cat "$tmp"/run.* | jq -s 'map(.proxy.quiet) | add / length'
}

# grow AXIS X PROCESSES CHANNELS CALLBACKS: 340,000 callbacks a second, all processes together. Without a plugin first.
grow() {
	local each=$(($4 * 170 + 7)) short nothing empty begin used how options=(--sched=off --net=off)
	[ "$1" != events ] || options+=(--compress)
	how=(--rate $((340000 / $3 / each + 1)) --channels "$4" --ops)
	short=$((($5 > usual ? usual : $5) / $3 / each + 1))
	jobs "$3" "${how[@]}" $short
	nothing=$(quiet)
	jobs "$3" "${how[@]}" $short --plugin "$benches/empty_plugin.so"
	empty=$(quiet)
	recorder_on armed "${options[@]}"
	taskset -cp "$home" "$recorder" >/dev/null
	begin=$(cpu_ns "$recorder")
	jobs "$3" "${how[@]}" $(($5 / $3 / each + 1)) --plugin "$plugin"
	until_true 10 all_written
	used=$(($(cpu_ns "$recorder") - begin))
	stop_recorder
	grep -q '^Loss: 0' "$tmp/armed.err" || die "with $1 $2: $(grep '^Loss' "$tmp/armed.err")"
	note "[\"$1\", $2]" "$(cat "$tmp"/run.* | jq -sc --argjson used $used --argjson nothing "$nothing" --argjson empty "$empty" '
		(map(.app.allCalls + .proxy.allCalls) | add) as $calls
		| {calls: $calls, job: ((map(.proxy.quiet) | add / length) - $nothing), recorder: ($used / $calls),
			empty: ($empty - $nothing)}')"
	rm -rf "${tmp:?}/armed" "$tmp"/run.*
}
# As many traces as processes, and none of them open.
all_written() {
	[ "$(find "$tmp/armed" -name 'trace_*' | wc -l)" = "$(cat "$tmp"/run.* | wc -l)" ] &&
		! find "/proc/$recorder/fd" -lname "$tmp/armed/trace_*" | grep -q .
}

for round in $(seq "$rounds"); do
	for n in 1 4 16 64; do grow processes $n $n 8 "$usual"; done
	for n in 1 4 16 32; do grow channels $n 1 $n "$usual"; done
	for ((n = 100000; n <= most; n *= 10)); do
		[ $round -gt 1 ] && [ $n -gt $long ] || grow events $n 1 8 $n
	done
	progress
done

jq -s --argjson rounds "$rounds" "$stats"'
	# Of an axis the dearest point beside the cheapest one, in the same round: what disturbs a round is in both.
	def growth(k): map(map({round, cost: (.value | k)})) | min_by(map(.cost) | median) as $least
		| map([.[] as $v | $least[] | select(.round == $v.round) | 100 * ($v.cost / .cost - 1)] | {value: median, ci: ci}) | max_by(.value);
	def goal(what; k): map({what: "\(what), over \(.[0][0].key[0])", unit: "%", max: 20} + growth(k) | judge);
	(group_by(.key[0]) | map(group_by(.key[1]))) as $axes
	| {rounds: $rounds, axes: ($axes | map({name: .[0][0].key[0], points: map({x: .[0].key[1], job: (map(.value.job) | median),
			recorder: (map(.value.recorder) | median), empty: (map(.value.empty) | median)})})),
		targets: ($axes | [goal("job"; .job), goal("recorder"; .recorder)] | transpose | add)}' "$tmp/values" >"$tmp/result" || die "no result"

# A panel for each axis: its x by the logarithm, ns from 0.
if [ -n "$svg" ]; then
	jq -r '([.axes[].points[] | .job, .recorder] | max) as $top | .axes[] | .name as $n | .points[] | [$n, .x, .job, .recorder, .empty, $top] | @tsv' "$tmp/result" |
		awk -F '\t' '
		function y(v) { return 220 - 180 * v / (top * 1.1) }
		function finish() {
			for (k = 1; k <= 3; k++)
				printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>\n", color[k], path[k]
			path[1] = path[2] = path[3] = ""
		}
		BEGIN {
			color[1] = "#1b6ca8"; color[2] = "#c1440e"; color[3] = "#888888"
			print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"270\" font-family=\"sans-serif\" font-size=\"11\">"
			print "<rect width=\"900\" height=\"270\" fill=\"white\"/>"
			print "<text x=\"50\" y=\"16\">ns of CPU time for each callback: <tspan fill=\"#1b6ca8\">of the job</tspan>, <tspan fill=\"#c1440e\">of the recorder</tspan>, <tspan fill=\"#888888\">of the job with a plugin that does nothing</tspan></text>"
		}
		{
			if ($1 != last) {
				finish(); panel++; i = 0; last = $1; left = 50 + (panel - 1) * 285; top = $6
				printf "<path d=\"M%d 30V220H%d\" fill=\"none\" stroke=\"#888\"/><text x=\"%d\" y=\"255\">%s</text>\n", left, left + 240, left + 95, $1
				for (v = 0; v <= top; v += step(top))
					printf "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", left - 4, y(v) + 4, v
			}
			x = left + 15 + 65 * i++
			printf "<text x=\"%.1f\" y=\"236\" text-anchor=\"middle\">%s</text>\n", x, $2
			for (k = 1; k <= 3; k++) {
				path[k] = path[k] sprintf("%.1f,%.1f ", x, y($(k + 2)))
				printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y($(k + 2)), color[k]
			}
		}
		function step(t) { return t > 2000 ? 500 : t > 800 ? 200 : t > 400 ? 100 : t > 200 ? 50 : 20 }
		END { finish(); print "</svg>" }' >"$svg"
fi
if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
jq -r "$stats"'def num: . * 10 | round / 10 | tostring;
	(.axes[] | "\(.name): " + (.points | map("\(.x): \(.job | num) ns job (\(.empty | num) with an empty plugin), \(.recorder | num) ns recorder") | join("; "))),
	(.targets[] | "\(.what): \(.value | num)% (\(.ci[0] | num) to \(.ci[1] | num), at most \(.max)%) \(verdict)")' "$tmp/result"
