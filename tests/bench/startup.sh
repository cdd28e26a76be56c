#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# How long it takes until `record` records, until it has ended, and until `doctor` has examined the node; on the wall,
# by turns.
#
# Usage: startup.sh [--rounds N] [--json]
usage() {
	echo "Usage: startup.sh [--rounds N] [--json]" >&2
	exit 2
}

rounds=11 json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds in '' | *[!0-9]* | 0*) usage ;; esac

export E2E_TIMEOUT=$((rounds * 60 + 60))
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"

ms() { # since a time as EPOCHREALTIME has it
	echo $(((${EPOCHREALTIME/./} - ${1/./}) / 1000))
}

# ready NAME OPTION...: until it says so, which a named pipe tells at once; then until it has ended.
ready() {
	local name=$1 begin line
	shift
	mkfifo "$tmp/says"
	begin=$EPOCHREALTIME
	env --default-signal=INT "$scope" record --plugin "$plugin" -o "$tmp/$name" "$@" 2>"$tmp/says" >/dev/null &
	recorder=$!
	exec 3<"$tmp/says"
	while read -r line <&3; do
		case $line in *Recording*) break ;; esac
	done
	note "\"record ready${*:+ $*}\"" "$(ms "$begin")"
	begin=$EPOCHREALTIME
	kill -INT "$recorder"
	cat <&3 >/dev/null
	wait "$recorder" || die "record failed"
	exec 3<&-
	note "\"record ended${*:+ $*}\"" "$(ms "$begin")"
	rm -rf "$tmp/says" "${tmp:?}/$name"
}

doctor() {
	local begin=$EPOCHREALTIME
	"$scope" doctor >/dev/null 2>&1
	case $? in 0 | 4) ;; *) die "doctor failed" ;; esac
	note '"doctor"' "$(ms "$begin")"
}

for round in $(seq "$rounds"); do
	ready trace
	ready bare --sched=off --net=off
	doctor
	progress
done

jq -s --argjson rounds "$rounds" "$stats"'
	{"record ready": 500, doctor: 2000} as $max
	| {rounds: $rounds, cases: (group_by(.key) | map({name: .[0].key, ms: (map(.value) | spread)}))}
	| .targets = [.cases[] | select($max[.name]) | {what: .name, unit: "ms", value: .ms.median, ci: .ms.ci, max: $max[.name]} | judge]' \
	"$tmp/values" >"$tmp/result" || die "no result"
if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
jq -r "$stats"'(.cases[] | "\(.name): \(.ms.median) ms (\(.ms.ci | join("..")))"), (.targets[] | "\(.what): at most \(.max) ms \(verdict)")' "$tmp/result"
