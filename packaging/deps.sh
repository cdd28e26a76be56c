#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs what the machine lacks, on Debian and Ubuntu: of what the build needs (`deps.sh build`), the
# demo (`demo`) or the tests (`check`) as well, other kernels under qemu (`vm`) or other releases (`distro`).
# Says and touches nothing when all is there.
# Exit: 0 all there, 1 could not be installed or is too old, 2 usage, 3 root is needed.
set -u
LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
export LC_ALL PATH

CC=${CC:-gcc}
CLANG=${CLANG:-clang}
CLANG_MIN=14
LIBBPF_MIN=1
missing='' # what is missing, in words
packages='' # what brings it

lack()
{
	missing="$missing $1"
	shift
	packages="$packages $*"
}

# cmd NAME PACKAGE: a program on the path.
cmd()
{
	command -v "$1" >/dev/null 2>&1 || lack "$1" "$2"
}

# Whether a command compiles; it may be "ccache gcc" or "gcc -m64", as make takes it.
works()
{
	# shellcheck disable=SC2086 # a command and its options
	$1 -E -x c /dev/null >/dev/null 2>&1
}

# compiler COMMAND PACKAGE: likewise.
compiler()
{
	works "$1" || lack "$1" "$2"
}

# header NAME PACKAGE: the compiler finds #include <NAME>; before there is a compiler, by its place.
header()
{
	if works "$CC"; then
		# shellcheck disable=SC2086
		printf '#include <%s>\n' "$1" | $CC -E -x c - -include stddef.h -include stdarg.h \
			-include setjmp.h -include stdint.h >/dev/null 2>&1 || lack "<$1>" "$2"
	else
		for f in "/usr/include/$1" /usr/include/*-linux-gnu/"$1"; do
			[ -e "$f" ] && return
		done
		lack "<$1>" "$2"
	fi
}

os_id()
{
	[ -r /etc/os-release ] && sed -n 's/^ID=//p' /etc/os-release | tr -d '"'
}

# Whether this release has a package, as far as the lists say; without any lists it may.
offered()
{
	apt-cache show "$1" 2>/dev/null | grep -q '^Filename:' ||
		! apt-cache show libc6-dev 2>/dev/null | grep -q '^Filename:'
}

# pinned NAME: a program, and the package of that name, that tests want in this version or not at all.
pinned()
{
	command -v "$1" >/dev/null 2>&1 || ! offered "$1" || lack "$1" "$1"
}

# Ubuntu's /usr/sbin/bpftool only looks for the one of the running kernel, which a container or a
# cloud kernel may not have; any real one will do. The Makefile looks in the same places.
bpftool_works()
{
	for b in ${BPFTOOL:-} /usr/lib/linux-tools/*/bpftool /usr/lib/linux-tools-*/bpftool bpftool; do
		"$b" version >/dev/null 2>&1 && return 0
	done
	return 1
}

need_bpftool()
{
	bpftool_works && return
	if [ "$(os_id)" = ubuntu ] && ! apt-cache show bpftool 2>/dev/null | grep -q '^Filename:'; then
		lack bpftool linux-tools-common linux-tools-generic
	else
		lack bpftool bpftool
	fi
}

# Ubuntu's /usr/bin/perf is such a script as well.
need_perf()
{
	for p in /usr/lib/linux-tools/*/perf /usr/lib/linux-tools-*/perf perf; do
		"$p" version >/dev/null 2>&1 && return
	done
	if [ "$(os_id)" = ubuntu ]; then
		lack perf linux-tools-common linux-tools-generic
	else
		lack perf linux-perf
	fi
}

# For tests of the page of `view`. Ubuntu's chromium is a snap, which a container cannot run and tests do without.
need_browser()
{
	cmd node nodejs
	cmd npm npm
	[ "$(os_id)" = ubuntu ] || cmd chromium chromium
}

# Sanitizers and fuzzer of the clang that is there, or of the one that is about to come. Where they lie depends on its version.
compiler_rt()
{
	if works "$CLANG"; then
		# shellcheck disable=SC2086
		echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d[n - 1] & 0; }' |
			$CLANG -fsanitize=fuzzer,address -x c -o /dev/null - >/dev/null 2>&1 ||
			lack "$CLANG's compiler-rt" "libclang-rt-$(clang_major)-dev"
	else
		lack "clang's compiler-rt" libclang-rt-dev
	fi
}

python_module()
{
	python3 -c "import $1" >/dev/null 2>&1 || lack "Python's $1" "$2"
}

arm64_compiler()
{
	cmd aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || lack 'arm64 libc' libc6-dev-arm64-cross
}

build_needs()
{
	compiler "$CC" gcc
	header stdio.h libc6-dev
	cmd make make
	compiler "$CLANG" clang
	header bpf/libbpf.h libbpf-dev
	header libelf.h libelf-dev
	header zlib.h zlib1g-dev
	header jansson.h libjansson-dev
	header zstd.h libzstd-dev
	header curses.h libncurses-dev
	header cap-ng.h libcap-ng-dev
	header uthash.h uthash-dev
	header sys/sdt.h systemtap-sdt-dev
	need_bpftool
}

demo_needs()
{
	cmd jq jq # in what tests/e2e/demo.sh says to run next
}

# tests/e2e/pod.sh
pods_needs()
{
	cmd podman podman
	cmd runc runc
	python_module yaml python3-yaml
}

check_needs()
{
	header cmocka.h libcmocka-dev
	compiler_rt
	pinned clang-format-14 # every version formats a little differently
	pinned clang-tidy-14
	pinned clang-19 # tests/e2e/clangs.sh: the newest one beside Debian 12's own
	cmd cppcheck cppcheck
	cmd gcovr gcovr # make coverage
	arm64_compiler
	cmd bpftrace bpftrace
	header fuse3/fuse_opt.h libfuse3-dev
	cmd ip iproute2
	cmd iperf3 iperf3 # make bench
	cmd jq jq
	cmd zstd zstd # tests/e2e/raw.sh
	cmd mandoc mandoc
	cmd nft nftables
	need_perf
	need_browser
	cmd ps procps
	cmd setpriv util-linux
	pods_needs
	cmd script bsdutils
	cmd shellcheck shellcheck
	cmd strace strace
	cmd systemd-analyze systemd
	cmd protoc protobuf-compiler # tests/unit/export.sh
	cmd tmux tmux # tests/e2e/top.sh
	cmd python3 python3
	python_module jsonschema python3-jsonschema
}

vm_needs()
{
	cmd qemu-system-x86_64 qemu-system-x86
	cmd qemu-system-aarch64 qemu-system-arm
	arm64_compiler
	cmd modprobe kmod
	cmd cpio cpio
	cmd xz xz-utils
	cmd jq jq # tests/e2e/lib.sh
	cmd zstd zstd
	cmd setpriv util-linux
	cmd rdma iproute2 # with it ip and tc
	cmd ibv_rc_pingpong ibverbs-utils
	[ -e /etc/libibverbs.d/rxe.driver ] || lack 'libibverbs for soft-RoCE' ibverbs-providers
	# alone in an initramfs, so it must not want a libc
	if ! command -v busybox >/dev/null 2>&1 || ldd "$(command -v busybox)" >/dev/null 2>&1; then
		lack 'static busybox' busybox-static
	fi
}

distro_needs()
{
	cmd debootstrap debootstrap
	cmd git git
	pods_needs
}

clang_major()
{
	# shellcheck disable=SC2086
	$CLANG -dumpversion | cut -d. -f1
}

apt()
{
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -y "$@"
}

install_packages()
{
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "Missing:$missing. Only Debian and Ubuntu are known to this script;" \
			"their packages are:$packages" >&2
		exit 1
	fi
	if [ "$(id -u)" != 0 ]; then
		echo "Missing:$missing. Install with:" >&2
		echo "  sudo apt-get install --no-install-recommends$packages" >&2
		exit 3
	fi
	log=$(mktemp) || exit 1
	echo "Installing$packages" >&2
	# Lists first: on a new machine there are none, on an old one they name what is gone.
	# shellcheck disable=SC2086 # one word per package
	if ! { apt update && take_stock "$1" && apt install --no-install-recommends $packages; } >"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		echo "Failed to install$packages" >&2
		rm -f "$log"
		exit 1
	fi
	rm -f "$log"
}

# What is there may be too old; no package of this release would help.
check_versions()
{
	major=$(clang_major)
	case $major in
	'' | *[!0-9]*)
		echo "$CLANG does not say what version it is: set CLANG to a clang" >&2
		exit 1
		;;
	esac
	if [ "$major" -lt $CLANG_MIN ]; then
		echo "$CLANG is version $major, at least $CLANG_MIN is needed: install a newer one and" \
			"set CLANG" >&2
		exit 1
	fi
	# shellcheck disable=SC2086
	major=$(printf '#include <bpf/libbpf_version.h>\nLIBBPF_MAJOR_VERSION\n' |
		$CC -E -P -x c - 2>/dev/null | tail -n 1)
	case $major in
	'' | *[!0-9]*) major=0 ;; # before 0.6 there was no such header
	esac
	if [ "$major" -lt $LIBBPF_MIN ]; then
		echo "libbpf-dev is version 0.x, at least $LIBBPF_MIN.0 is needed (Debian 12, Ubuntu 24.04" \
			"and newer have it; Ubuntu 22.04 does not)" >&2
		exit 1
	fi
	bpftool_works || {
		echo "bpftool is there but does not run: set BPFTOOL to one that does" >&2
		exit 1
	}
}

# take_stock build|demo|check|vm|distro: what is missing for it.
take_stock()
{
	missing='' packages=''
	build_needs
	[ "$1" = build ] || "$1_needs"
}

case ${1:-} in
build | demo | check | vm | distro) ;;
*)
	echo "Usage: deps.sh build|demo|check|vm|distro" >&2
	exit 2
	;;
esac
take_stock "$1"
[ -z "$missing" ] || install_packages "$1"
check_versions
