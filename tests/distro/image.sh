#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The image of packaging/Containerfile, built from nothing but the sources and Debian's packages, and the pod of packaging/kubernetes.yaml
# with it (tests/e2e/pod.sh): image.sh [NAME] (bookworm), the release that it is based on.
. "$(dirname "$0")/lib.sh"
needs podman runc
release=${1:-bookworm}
own_tmp

# Nothing of the machine's own images is touched.
store=$distros/podman
mkdir -p "$store"
cat >"$tmp/podman" <<-EOT
	#!/bin/sh
	exec podman --root "$store/root" --runroot "$store/run" --tmpdir "$store/tmp" --cgroup-manager cgroupfs --events-backend file \
		--runtime runc "\$@"
EOT
chmod +x "$tmp/podman"
podman() {
	"$tmp/podman" "$@"
}
trap 'umount -l "$store"/root/overlay 2>/dev/null; rm -rf "$store" "$tmp"' EXIT

base() {
	tar -C "$distros/$release" --exclude=./src -c . | podman import --quiet --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - localhost/base
}
# As a clone has them; what git does not know is not in it.
clone() {
	mkdir "$tmp/clone" && git -C "$top" ls-files -co --exclude-standard -z | tar -C "$top" -c --null --ignore-failed-read -T - 2>/dev/null | tar -C "$tmp/clone" -x
}
# Limits: podman's own default is more than some machines let anyone have.
limits=(--ulimit nofile=1024:1024 --ulimit nproc=4096:4096)
build_image() {
	make -C "$tmp/clone" image IMAGE=localhost/ncclscope:built CONTAINER_TOOL="$tmp/podman" \
		IMAGE_OPTIONS="--build-arg BASE=localhost/base --network host ${limits[*]}"
}
in_image() {
	podman run --rm --network none "${limits[@]}" "$@"
}

t "$release: is there" distro "$release"
t "$release: as an image" base
t "the sources" clone
t "make image" build_image
[ $failed = 0 ] || finish
is "the image: runs" "$(in_image localhost/ncclscope:built --version)" "$("$build/ncclscope" --version)"
is "the image: no compiler in it" "$(in_image --entrypoint /bin/sh localhost/ncclscope:built -c 'for c in gcc clang make ncclscope; do command -v $c; done')" \
	/usr/local/bin/ncclscope
podman save --quiet -o "$tmp/image.tar" localhost/ncclscope:built
echo "# $(($(stat -c %s "$tmp/image.tar") >> 20)) MiB, its base $(($(podman image inspect --format '{{.Size}}' localhost/base) >> 20))"
POD_IMAGE=$tmp/image.tar "$top/tests/e2e/pod.sh" || failed=1
finish
