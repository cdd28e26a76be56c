#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What root has built in a user's checkout is the user's, or the next plain `make` would fail: give_back.sh DIR [COMMAND [ARG...]]
# runs the command and, however it has ended, gives DIR to the owner of the Makefile. Exits as the command has.
#
# Not DIR/distro: installations of Debian, in which files are of who they are (tests/distro).
dir=$1
shift
trap : INT TERM HUP # the command ends by these, we after it
"$@"
status=$?
owner=$(stat -c %u:%g "$(dirname "$0")/../Makefile")
if [ "$(id -u)" = 0 ] && [ "$owner" != 0:0 ] && [ -d "$dir" ]; then
	chown -h "$owner" "$dir"
	find "$dir" -mindepth 1 -maxdepth 1 ! -name distro -exec chown -R -h "$owner" {} +
fi
exit $status
