#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Gets a Debian kernel and unpacks it, nothing is installed: kernel.sh VERSION[-rt][-arm64[-16k]] DIR; -rt: with PREEMPT_RT, -16k: with
# pages of 16 KiB.
#
# Afterwards DIR/vmlinuz is the kernel and DIR/lib/modules/RELEASE its modules, with modules.dep. The apt folder is one of our own
# below DIR (debian.sh). Exit: 0 there, 1 failed, 77 this machine has no Debian mirror.
set -Eeu
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
version=${1%%-*}
dir=$2
apt=$dir/apt
case ${1#"$version"} in
'') arch=amd64 flavour=-amd64 ;;
-rt) arch=amd64 flavour=-rt-amd64 ;;
-arm64) arch=arm64 flavour=-arm64 ;;
-rt-arm64) arch=arm64 flavour=-rt-arm64 ;;
-arm64-16k) arch=arm64 flavour=-arm64-16k ;;
*) echo "kernel.sh: '$1' is no VERSION, VERSION-rt, -arm64, -rt-arm64 or -arm64-16k" >&2 && exit 1 ;;
esac
# shellcheck source=debian.sh
. "$(dirname "$0")/debian.sh"

# The suite that has it. Backports keep older kernels beside the newest.
case $version in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=bookworm-backports ;;
*) suite=trixie-backports ;;
esac

# The newest of that version: signed, not for clouds.
newest_image() {
	private_apt apt-cache pkgnames "linux-image-$version." |
		grep -E "^linux-image-${version//./\\.}\.[^-]+(-[0-9]+)?$flavour\$" | sort -V | tail -n 1
}

download() {
	local image
	apt_begin "$suite"
	image=$(newest_image)
	[ -n "$image" ] || {
		say "Failed to find Linux $version in $suite"
		exit 1
	}
	# From 7.x on the image is an empty package, and these have the files.
	mapfile -t parts < <(private_apt apt-cache depends "$image" |
		sed -n 's/^ *Depends: \(linux-\(binary\|modules\)-[0-9].*\)/\1/p')
	say "getting $image" "${parts[@]}" "from $suite"
	(cd "$apt/deb" && private_apt apt-get -q download "$image" "${parts[@]}") >>"$apt/log" 2>&1
}

unpack() {
	local deb release
	for deb in "$apt"/deb/*.deb; do
		dpkg-deb -x "$deb" "$dir/root"
	done
	if [ -d "$dir/root/usr/lib/modules" ]; then
		mkdir -p "$dir/root/lib"
		ln -s ../usr/lib/modules "$dir/root/lib/modules"
	fi
	release=$(basename "$dir"/root/lib/modules/*)
	depmod -b "$dir/root" "$release"
	ln -s root/lib "$dir/lib"
	# last, as the sign that all is there
	for image in boot/vmlinuz-$release lib/modules/$release/vmlinuz; do
		[ ! -e "$dir/root/$image" ] || ln -sf "root/$image" "$dir/vmlinuz"
	done
}

[ -e "$dir/vmlinuz" ] && exit 0
rm -rf "$dir"
mkdir -p "$apt"
download
unpack
rm -rf "$apt"
