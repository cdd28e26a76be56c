#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Gets a Debian kernel and unpacks it, nothing is installed: kernel.sh VERSION DIR; VERSION-rt is that with PREEMPT_RT.
#
# Afterwards DIR/vmlinuz is the kernel and DIR/lib/modules/RELEASE its modules, with modules.dep. Packages come
# from the mirror that this machine's own sources name, by an apt folder of our own below DIR: /etc/apt is
# read and left as it is. Exit: 0 there, 1 failed, 77 this machine has no Debian mirror.
set -Eeu
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
version=${1%-rt}
flavour=${1#"$version"}
dir=$2
apt=$dir/apt

# The suite that has it. Backports keep older kernels beside the newest.
case $version in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=bookworm-backports ;;
*) suite=trixie-backports ;;
esac

say() {
	echo "kernel.sh: $*" >&2
}

# The address that this machine gets its own release from.
mirror() {
	local release
	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	apt-get --print-uris update 2>/dev/null | sed -n "s|^'\(.*\)/dists/$release/InRelease'.*|\1|p" | head -n 1
}

# Proxies, keys and the like are the machine's; sources, lists and caches are ours.
private_apt() {
	local cmd=$1
	shift
	"$cmd" -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" \
		-o Dir::Cache::archives=archives -o APT::Architecture=amd64 -o APT::Architectures::=amd64 \
		-o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false "$@"
}

# The newest of that version: signed, not for clouds; of real time if asked for.
newest_image() {
	private_apt apt-cache pkgnames "linux-image-$version." |
		grep -E "^linux-image-${version//./\\.}\.[^-]+(-[0-9]+)?$flavour-amd64\$" | sort -V | tail -n 1
}

download() {
	local address image
	address=$(mirror)
	if [ -z "$address" ] || ! grep -q '^ID=debian' /etc/os-release; then
		say "this machine has no Debian mirror in its sources to get kernels from"
		exit 77
	fi
	mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,deb}
	: >"$apt/status"
	echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $address $suite main" \
		>"$apt/sources.list"
	private_apt apt-get -q update >"$apt/log" 2>&1
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
trap '[ ! -s "$apt/log" ] || tail -n 5 "$apt/log" >&2' ERR
download
unpack
rm -rf "$apt"
