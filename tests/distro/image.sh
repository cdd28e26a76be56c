#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The image of packaging/Containerfile, built from nothing but the sources and Debian's packages, and the pod of packaging/kubernetes.yaml
# with it (tests/e2e/pod.sh): image.sh [NAME] (bookworm), the release that it is based on.
. "$(dirname "$0")/lib.sh"
# shellcheck source=../podman.sh
. "$top/tests/podman.sh"
needs podman runc
release=${1:-bookworm}
own_tmp

store=$distros/podman
own_podman "$store" overlay 900
trap 'umount -l "$store"/root/overlay 2>/dev/null; rm -rf "$store" "$tmp"' EXIT

base() {
	tar -C "$distros/$release" --exclude=./src -c . | podman import --quiet --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - localhost/base
}
build_image() {
	mkdir "$tmp/sources" && working_tree "$tmp/sources" &&
		make -C "$tmp/sources" image IMAGE=localhost/ncclscope:built CONTAINER_TOOL="$store/podman" \
			IMAGE_OPTIONS="--build-arg BASE=localhost/base --network host"
}
in_image() {
	podman run --rm --network none "$@"
}

t "$release: is there" distro "$release"
t "$release: as an image" base
t "make image" build_image
[ $failed = 0 ] || finish
is "the image: runs" "$(in_image localhost/ncclscope:built --version)" "$("$build/ncclscope" --version)"
is "the image: no compiler in it" "$(in_image --entrypoint /bin/sh localhost/ncclscope:built -c 'for c in gcc clang make ncclscope; do command -v $c; done')" \
	/usr/local/bin/ncclscope
podman save --quiet -o "$tmp/image.tar" localhost/ncclscope:built
echo "# $(($(stat -c %s "$tmp/image.tar") >> 20)) MiB, its base $(($(podman image inspect --format '{{.Size}}' localhost/base) >> 20))"
POD_IMAGE=$tmp/image.tar "$top/tests/e2e/pod.sh" || failed=1
finish
