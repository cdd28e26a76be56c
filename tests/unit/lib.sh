# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Shared by the tests of programs that read traces, which source it: the program, which their first argument names, and a place of their
# own.
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
tool=$(realpath "${1:-$top/build/ncclscope}")
traces=$top/tests/unit/traces
own_tmp
