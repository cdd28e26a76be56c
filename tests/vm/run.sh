#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs what was built on other kernels, in qemu without KVM: run.sh [VERSION[-rt][-arm64[-16k]]...], by default 5.10 6.1 6.12 6.18 7.2.
#
# A kernel is that of a Debian suite (tests/vm/kernel.sh) and sees this machine's root filesystem, read-only, so
# programs and libraries are the ones built and tested here; one for arm64 sees Debian's (tests/vm/userland.sh) and what
# was built for it, in build/vm/build-arm64. tests/vm/guest.sh runs in it; its cases are printed
# as it printed them, with the kernel in front of the name. Root is not needed. Logs stay in build/vm.
#
# VM_COMMAND runs another command than the tests, in the folder of the sources (VM_COMMAND='build/ncclscope doctor').
# VM_TIMEOUT is the seconds that a kernel may take.
set -u
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd -P)
build=$(realpath "${BUILD:-$top/build}")
vms=$build/vm
limit_s=${VM_TIMEOUT:-660}
command=${VM_COMMAND:-tests/vm/guest.sh}
failed=0
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 6.18 7.2

for tool in qemu-system-x86_64 qemu-system-aarch64 busybox cpio depmod modprobe xz gzip timeout; do
	command -v $tool >/dev/null || {
		echo "SKIP: run.sh: needs $tool: packaging/deps.sh vm"
		exit 77
	}
done
[ "$(uname -m)" = x86_64 ] || {
	echo "SKIP: run.sh: the kernels are for x86-64, this machine is $(uname -m)"
	exit 77
}

not_ok() {
	echo "not ok $1: $2"
	failed=$((failed + 1))
}

# What the kernel needs to mount the host's filesystem, and a pair of network devices, in the order of loading; nothing when it is built in.
module_files() {
	local root=$1 release=$2 module
	for module in virtio_pci 9pnet_virtio 9p overlay veth; do
		modprobe -q -d "$root" -S "$release" --show-depends $module | sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++'
}

# initramfs DIR OUT BUSYBOX COMMAND: busybox, the modules, tests/vm/init and the command that it runs.
initramfs() {
	local dir=$1 out=$2 busybox=$3 command=$4 tree file name
	tree=$(mktemp -d)
	mkdir "$tree"/{bin,modules,proc,sys,dev,host,memory}
	cp "$busybox" "$tree/bin/busybox"
	ln -s busybox "$tree/bin/sh"
	install -m 755 "$here/init" "$tree/init"
	printf '%s\n' "$command" >"$tree/command"
	: >"$tree/modules/order"
	for file in $(module_files "$dir/root" "$(basename "$dir"/lib/modules/*)"); do
		name=$(basename "$file")
		case $name in
		*.xz) xz -dc "$file" >"$tree/modules/${name%.xz}" ;;
		*) cp "$file" "$tree/modules/" ;;
		esac
		echo "${name%.xz}" >>"$tree/modules/order"
	done
	(cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$out"
	rm -rf "$tree"
}

# shared DIR TAG: the machine may mount it
shared() {
	machine+=(-virtfs "local,path=$1,mount_tag=$2,security_model=none,readonly=on,multidevs=remap")
}

# Two serial lines: the kernel's messages on one, what the tests say on the other. -cpu max: all that TCG can.
# hpet=off: with the HPET for its clock, 5.10 stood still now and then on a busy host, once before any test.
# One thread for both CPUs: with two, TCG may run an instruction that the other CPU has patched, and the
# kernel, which patches its tracepoints, panics ("Oops: int3").
machine_x86() {
	machine=(qemu-system-x86_64 -machine "pc,hpet=off" -accel "tcg,thread=single" -cpu max
		-serial "file:$dir/console.log" -serial "file:$dir/tests.raw")
	append="console=ttyS0 output=ttyS1"
	shared / host
}

# This one has a single serial line of its own. -cpu: max would spend most of its time on signing pointers.
machine_arm64() {
	machine=(qemu-system-aarch64 -machine virt -accel "tcg,thread=multi" -cpu neoverse-n1
		-serial "file:$dir/console.log" -chardev "file,id=tests,path=$dir/tests.raw" -device "pci-serial,chardev=tests")
	append="console=ttyAMA0 output=ttyS0 sources=$top"
	shared "$root" host
	shared "$top" sources
}

boot() {
	timeout -k 5 "$limit_s" "${machine[@]}" -smp 2 -m 2048 -nodefaults -display none -monitor none -no-reboot \
		-kernel "$dir/vmlinuz" -initrd "$dir/initramfs.gz" -append "$append loglevel=5 panic=-1" \
		</dev/null >"$dir/qemu.log" 2>&1
}

# The machine's exit status says nothing; a test that did not come to its end has failed.
judge() {
	local version=$1 dir=$2 seconds=$3 code
	tr -d '\r' <"$dir/tests.raw" >"$dir/tests.log"
	sed -n "s/^\(ok\|not ok\|skip\) [a-z]*\.sh: /\1 $version /p; /^#/p" "$dir/tests.log"
	failed=$((failed + $(grep -c '^not ok ' "$dir/tests.log")))
	code=$(sed -n 's/^vm-command-ended //p' "$dir/tests.log")
	if [ "$code" = 0 ]; then
		echo "ok $version all tests ran (Linux $(basename "$dir"/lib/modules/*), $seconds s)"
	else
		not_ok "$version all tests ran" "status '$code' after $seconds s, see $dir/*.log"
		[ -n "$code" ] || tail -n 15 "$dir/qemu.log" "$dir/console.log" "$dir/tests.log" | sed 's/^/# /'
	fi
	if grep -aE '(WARNING|BUG): |Oops|Call Trace' "$dir/console.log" | sed 's/^/# /' | grep .; then
		not_ok "$version the kernel has nothing to complain of" "see $dir/console.log"
	else
		echo "ok $version the kernel has nothing to complain of"
	fi
}

# got PROGRAM NAME DIR: a kernel or a root filesystem
got() {
	"$here/$1" "$2" "$3"
	case $? in
	0) return 0 ;;
	77) echo "skip $version: no Debian mirror to get $2 from" ;;
	*) not_ok "$version" "Failed to get $2" ;;
	esac
	return 1
}

# built_in DIR: what is to run is there
built_in() {
	local file
	for file in ncclscope libnccl-profiler-ncclscope.so standin/scope-job tests/vm/dying; do
		[ -e "$1/$file" ] && continue
		not_ok "$version" "Failed to find '$1/$file': build it first (make check-vm does)"
		return 1
	done
}

run_kernel() {
	local version=$1 dir=$vms/$1 begin=$SECONDS root='' busybox built=$build machine append
	got kernel.sh "$version" "$dir" || return
	case $version in
	*-arm64*)
		root=$vms/arm64 built=$vms/build-arm64
		case $build in "$top"/*) ;; *) not_ok "$version" "BUILD is to be below '$top', which is all that the machine has of this one" && return ;; esac
		got userland.sh arm64 "$root" || return
		busybox=$root/bin/busybox
		machine_arm64
		;;
	*)
		busybox=$(command -v busybox)
		machine_x86
		;;
	esac
	built_in "$built" || return
	initramfs "$dir" "$dir/initramfs.gz" "$busybox" "cd '$top' || exit; export BUILD='$built' E2E_TIMEOUT=$((limit_s - 60)); $command" || {
		not_ok "$version" "Failed to make '$dir/initramfs.gz'"
		return
	}
	rm -f "$dir"/*.log "$dir"/tests.raw
	boot
	judge "$version" "$dir" $((SECONDS - begin))
}

for version; do
	run_kernel "$version"
done
[ $failed = 0 ]
