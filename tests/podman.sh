# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# podman with images, containers and locks of its own, for tests that are scripts: of the machine's nothing is touched. They source it.

# own_podman DIR DRIVER SECONDS: from here on podman is DIR/podman, which keeps all of it in DIR, by that storage driver, and is ended
# after so long. Limits: its own default is more than some machines let anyone have.
own_podman() {
	mkdir -p "$1"
	cat >"$1/containers.conf" <<-'EOT'
		[containers]
		default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
		[engine]
		lock_type = "file"
	EOT
	cat >"$1/podman" <<-EOT
		#!/bin/sh
		CONTAINERS_CONF="$1/containers.conf" exec timeout "$3" podman --root "$1/root" --runroot "$1/run" --tmpdir "$1/tmp" \\
			--storage-driver "$2" --cgroup-manager cgroupfs --events-backend file --runtime runc "\$@"
	EOT
	chmod +x "$1/podman"
	eval "podman() { '$1/podman' \"\$@\"; }"
}
