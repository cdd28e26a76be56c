# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Other releases of Debian, each in a directory of its own below build/distro: shared by the tests here, which source it. They have
# this machine's kernel, its devices and its network.
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
build=$(realpath "${BUILD:-$top/build}")
distros=$build/distro
[ "$(id -u)" = 0 ] || skip_all "takes root"
needs debootstrap unshare pivot_root git
mkdir -p "$distros"

# The mirror of Debian that this machine has its own packages from, if any. In a subshell: debian.sh is for scripts with errors that end them.
this_mirror() (
	apt=$distros
	# shellcheck source=../vm/debian.sh
	. "$top/tests/vm/debian.sh"
	! grep -q '^ID=debian' /etc/os-release || mirror
)

# distro NAME: its smallest installation is there.
distro() {
	local root=$distros/$1
	[ ! -e "$root" ] || return 0
	echo "Getting Debian's $1" >&2
	rm -rf "$root.new"
	# shellcheck disable=SC2046 # none: debootstrap's own
	debootstrap --variant=minbase "$1" "$root.new" $(this_mirror) >"$root.log" 2>&1 || {
		tail -n 5 "$root.log"
		return 1
	}
	# a snapshot of a mirror may be old
	echo 'Acquire::Check-Valid-Until "false";' >"$root.new/etc/apt/apt.conf.d/50ncclscope"
	cp /etc/resolv.conf "$root.new/etc/"
	[ -z "${NODE_EXTRA_CA_CERTS:-}" ] || cp --parents "$NODE_EXTRA_CA_CERTS" "$root.new"
	mv "$root.new" "$root"
}

# inside NAME COMMAND...: as root of it, in a mount namespace of its own. Not chroot: tests make namespaces in there, and for these "/" must be a mount.
inside() {
	local root=$distros/$1
	shift
	# shellcheck disable=SC2016 # the inner shell's
	env -u BUILD -u MAKEFLAGS -u MAKELEVEL -u TMPDIR unshare --mount --propagation private bash -c '
		mount --bind "$1" "$1" && cd "$1" || exit
		for d in proc sys dev; do mount --rbind "/$d" "$d" || exit; done
		pivot_root . . && umount -l . && cd / || exit
		shift
		exec "$@"' - "$root" "$@"
}

# working_tree DIR: as it is, into DIR.
working_tree() {
	git -C "$top" ls-files -co --exclude-standard -z | tar -C "$top" -c --null --ignore-failed-read -T - 2>/dev/null | tar -C "$1" -x
}

# sources NAME: the working tree in /src; what was built there before stays.
sources() {
	local src=$distros/$1/src
	[ -e "$src" ] || git clone -q "$top" "$src" || return
	working_tree "$src"
}
