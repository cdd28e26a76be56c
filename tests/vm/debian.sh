# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Shared by what gets packages for other machines (kernel.sh, userland.sh; tests/distro/lib.sh for its mirror), which source it with $apt set to a folder of their
# own and $arch to Debian's name of the architecture. Packages come from the mirror that this machine's own sources
# name; /etc/apt is read and left as it is, and nothing is installed.

say() {
	echo "$(basename "$0"): $*" >&2
}

# The address that this machine gets its own release from.
mirror() {
	local release
	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	apt-get --print-uris update 2>/dev/null | sed -n "s|^'\(.*\)/dists/$release/InRelease'.*|\1|p" | head -n 1
}

# private_apt PROGRAM ARGUMENT...: proxies, keys and the like are the machine's; sources, lists and caches are ours.
private_apt() {
	local cmd=$1
	shift
	"$cmd" -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" \
		-o Dir::Cache::archives=archives -o "APT::Architecture=$arch" -o "APT::Architectures::=$arch" \
		-o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false "$@"
}

# apt_begin SUITE: its lists are there. Exit 77: this machine has no Debian mirror.
apt_begin() {
	local address
	address=$(mirror)
	if [ -z "$address" ] || ! grep -q '^ID=debian' /etc/os-release; then
		say "this machine has no Debian mirror in its sources to get packages from"
		exit 77
	fi
	mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,deb}
	: >"$apt/status"
	echo "deb [arch=$arch signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $address $1 main" \
		>"$apt/sources.list"
	private_apt apt-get -q update >"$apt/log" 2>&1
}

# What went wrong is in the log of apt; whoever sources this has errors end the script (set -Ee). Not to where the failed
# command's messages go, which is that log.
exec 3>&2
trap '[ ! -s "$apt/log" ] || tail -n 5 "$apt/log" >&3' ERR
