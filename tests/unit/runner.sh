#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# tests/run.sh with tests of our own making: all of what each says is counted and told, whatever its name.
. "$(dirname "$0")/../lib.sh"
own_tmp
mkdir -p "$tmp/some" "$tmp/other"
cat >"$tmp/some/same.sh" <<'END'
#!/bin/sh
for n in $(seq "$1"); do echo "ok $n" && sleep 0.1; done
END
cat >"$tmp/other/same.sh" <<'END'
#!/bin/sh
echo "skip one: why not"
echo "not ok another"
exit 1
END
# Fails as long as no file says that it has been run.
cat >"$tmp/some/late.sh" <<'END'
#!/bin/sh
[ -e ran ] && exec echo "ok late"
touch ran
echo "not ok late"
exit 1
END
chmod +x "$tmp"/*/*.sh

# run TEST...: what it says is in $tmp/said.
run() {
	rm -rf "$tmp/logs" "$tmp/ran"
	(cd "$tmp" && "$top/tests/run.sh" -o logs "$@") >"$tmp/said" 2>&1
	status=$?
}

said() {
	grep -cE "$1" "$tmp/said"
}

run "some/same.sh 3" "some/same.sh 5" other/same.sh
is "one name: all of them counts" "$(tail -n 1 "$tmp/said"), exit $status" "8 passed, 1 failed, 1 skipped, exit 1"
is "one name: each is told of" "$(said '^same\.sh  .* passed .* failed .* skipped ')" 3
is "one name: each has a log" "$(cd "$tmp/logs" && grep -c '^ok' -- *same*.log)" 'other-same.sh.log:0
some-same.sh-2.log:5
some-same.sh.log:3'
is "what failed" "$(cat "$tmp/logs/failures.log")" "not ok another"
is "nothing is left of what they had to say" "$(find "$tmp/logs" -name '*.told' -o -name '*.counts')" ''

run "some/same.sh 1" --beside some/late.sh other/late.sh --timed "some/same.sh 2"
is "a test that is not there" "$(tail -n 1 "$tmp/said"), exit $status" "4 passed, 1 failed, 0 skipped, exit 1"
run --beside some/late.sh "some/same.sh 1" --timed "some/same.sh 2"
is "beside others, and again" "$(tail -n 1 "$tmp/said"), exit $status" "4 passed, 0 failed, 0 skipped, exit 0"
is "beside others: what failed at first" "$(said '^at first: not ok late$')$(cat "$tmp/logs/some-late.sh.beside.log")" "2not ok late"
cat >"$tmp/some/tries.sh" <<'END'
#!/bin/sh
echo "# at first: it was not"
echo "# of no interest"
echo "ok in the end"
END
chmod +x "$tmp/some/tries.sh"
run some/tries.sh
is "what a test tried again by itself is told" "$(sed -n 2p "$tmp/said") $(tail -n 1 "$tmp/said")" "# at first: it was not 1 passed, 0 failed, 0 skipped"
run --timed some/late.sh
is "timed, and again" "$(tail -n 1 "$tmp/said"), exit $status" "1 passed, 0 failed, 0 skipped, exit 0"
is "timed: what failed at first" "$(cat "$tmp/logs/some-late.sh.first.log")" "not ok late"
finish
