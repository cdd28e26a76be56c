# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Shared by the tests of `report` under faults, which source it after lib.sh: each fault REPS times (1), what
# report says first of all, and whether that is right. With REPS_OUT a line for each run is added to that file:
# fault, what was wanted, code, rank, culprit, confidence, cost.
reps=${REPS:-1}

# verdict_of NAME: code, rank and culprit (_ for each blank) of the first verdict; "none" if there is none.
verdict_of() {
	"$scope" report --json "$tmp/$1" >"$tmp/$1.report" 2>"$tmp/$1.report-err" || cat "$tmp/$1.report-err"
	jq -r '.verdicts[0] | if . then [.code, .rank // "-", (.culprit // "-" | gsub(" "; "_")), (.confidence * 100 | round), .cost] | map(tostring) | join(" ") else "none - - 0 0" end' "$tmp/$1.report"
}

# named NAME CODE RANK CULPRIT: that it is the first, by extended regular expressions.
named() {
	local got code rank culprit
	got=$(verdict_of "$1")
	read -r code rank culprit _ <<<"$got"
	[ -z "${REPS_OUT:-}" ] || echo "$1 $2 $got" >>"$REPS_OUT"
	if grep -qxE "$2" <<<"$code" && grep -qxE "$3" <<<"$rank" && grep -qE "$4" <<<"$culprit"; then
		return 0
	fi
	echo "got '$got', want '$2 $3 $4'"
	"$scope" report "$tmp/$1" | sed -n '/^Why/,/^Comm/p'
	return 1
}

# disturbed NAME: a program of the machine that is none of ours had a CPU that the job needed, and report says so.
disturbed() {
	local code rank culprit
	read -r code rank culprit _ < <(verdict_of "$1")
	[ "$code" = proxy-preempted ] && ! grep -qE '(^|_mostly_)(scope-|standin-)' <<<"$culprit" && {
		[ -z "${REPS_OUT:-}" ] || echo "$1 disturbed $code $rank $culprit" >>"$REPS_OUT"
	}
}

# faults NAME CODE RANK CULPRIT COMMAND...: the command makes the recording NAME, as often as REPS says. Other users of
# the machine make trouble of their own, which report names as it should: once again then, three times at most. Any other
# wrong answer gets one more try, and is told of. With REPS (a rate is measured) every other answer counts.
faults() {
	local name=$1 code=$2 rank=$3 culprit=$4 i tries
	shift 4
	for i in $(seq "$reps"); do
		tries=1
		for _ in 1 2 3; do
			rm -rf "${tmp:?}/$name"
			"$@" "$name"
			if [ -n "${REPS:-}" ]; then
				disturbed "$name" || break
			else
				named "$name" "$code" "$rank" "$culprit" >"$tmp/$name.first" && break
				sed "s/^/# at first: $name: /" "$tmp/$name.first"
				disturbed "$name" || [ $((tries--)) -gt 0 ] || break
			fi
		done
		t "$name: report names it" named "$name" "$code" "$rank" "$culprit"
		[ -z "${REPS_KEEP:-}" ] || { mkdir -p "$REPS_KEEP" && rm -rf "$REPS_KEEP/$name-$i" && cp -r "$tmp/$name" "$REPS_KEEP/$name-$i"; }
	done
}

# without_flows NAME AS: the recording as if something else than TCP had moved the bytes.
without_flows() {
	local file
	mkdir -p "$tmp/$2"
	for file in "$tmp/$1"/*.jsonl; do
		jq -c 'if .recordType == "flow" or .recordType == "drop" then empty
			elif .net then .net |= {rdma} | if .net.rdma then . else del(.net) end
			else . end' "$file" >"$tmp/hidden" && mv "$tmp/hidden" "$tmp/$2/$(basename "$file")"
	done
}

# faults_blind NAME CODE RANK CULPRIT COMMAND...: faults, and the same is asked of the last recording as a kernel would have given it
# that does not tell of reads that find nothing.
faults_blind() {
	local file
	faults "$@"
	mkdir -p "$tmp/$1-blind"
	for file in "$tmp/$1"/*.jsonl; do
		jq -c 'if .recordType == "header" then del(.features.noData) else del(.net.noData) end' "$file" >"$tmp/$1-blind/$(basename "$file")"
	done
	t "$1: report names it where the kernel does not tell of reads that find nothing" named "$1-blind" "${@:2:3}"
}
