#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# How often `report` is right: each planted fault of tests/e2e/report_sched.sh and tests/e2e/report_net.sh REPS times (5), as the table of
# docs/report.md. As root, on a machine that is otherwise idle; a run in which report says that another program had
# the CPU is made again, up to three times, and counted.
#
# Usage: report_matrix.sh [PATTERN]
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export REPS=${REPS:-5} REPS_OUT=$tmp/out E2E_TIMEOUT=${E2E_TIMEOUT:-1800}
: >"$REPS_OUT"
nice -n -12 "$here/../e2e/report_sched.sh" "${1:-.}"
nice -n -12 "$here/../e2e/report_net.sh" "${1:-.}"
echo
echo "| fault | wanted | first verdict, how often | made again |"
echo "|---|---|---|---|"
awk '$2 == "disturbed" { again[$1]++; next }
	{ if (!($1 in want)) order[++n] = $1; want[$1] = $2; got[$1, $3]++; codes[$3] }
	END { for (i = 1; i <= n; i++) { f = order[i]; s = ""
		for (c in codes) if ((f, c) in got) s = s (s ? ", " : "") c " " got[f, c]
		printf "| %s | %s | %s | %d |\n", f, want[f], s, again[f] } }' "$REPS_OUT"
