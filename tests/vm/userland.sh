#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Gets a Debian 12 of another architecture into a directory, nothing is installed: userland.sh ARCH DIR, ARCH as Debian calls it.
#
# DIR is then the compiler's --sysroot (headers and libraries that we build with) as well as the root filesystem of a machine
# that runs it (what tests/vm/guest.sh calls): files as packages have them, of which no script has run. Exit: 0 there, 1 failed,
# 77 this machine has no Debian mirror.
set -Eeu
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
arch=$1
dir=$2
apt=$dir.apt
# shellcheck source=debian.sh
. "$(dirname "$0")/debian.sh"

build=(libc6-dev linux-libc-dev libbpf-dev libcmocka-dev libelf-dev zlib1g-dev libjansson-dev libzstd-dev libncurses-dev libcap-ng-dev uthash-dev
	systemtap-sdt-dev)
tests=(base-files bash busybox-static coreutils dash diffutils findutils grep iproute2 jq kmod mawk mount perl-base procps sed util-linux zstd)

download() {
	apt_begin bookworm
	say "getting a Debian for $arch"
	private_apt apt-get -q -y -d --no-install-recommends install "${build[@]}" "${tests[@]}" >>"$apt/log" 2>&1
}

# Links that begin at / would lead the compiler into this machine's files.
links_relative() {
	local link
	find "$1" -type l -lname '/*' | while read -r link; do
		ln -srfT "$1$(readlink "$link")" "$link"
	done
}

unpack() {
	local deb root=$dir.new d
	rm -rf "$root"
	# as every Debian has them since 12
	mkdir -p "$root"/usr/{bin,sbin,lib}
	for d in bin sbin lib; do
		ln -s usr/$d "$root/$d"
	done
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
	done
	ln -s mawk "$root/usr/bin/awk" # what its package's script would do
	mkdir -p "$root"/{proc,sys,dev,run,tmp}
	printf '%s\n' root:x:0:0:root:/root:/bin/bash nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin >"$root/etc/passwd"
	printf '%s\n' root:x:0: nogroup:x:65534: >"$root/etc/group"
	links_relative "$root"
	mv "$root" "$dir" # last, as the sign that all is there
}

[ -d "$dir" ] && exit 0
rm -rf "$apt" # of one that failed
mkdir -p "$apt"
download
unpack
rm -rf "$apt"
