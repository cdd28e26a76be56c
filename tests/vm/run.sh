#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs what was built on other kernels, in qemu without KVM: run.sh [VERSION...], by default 5.10 6.1 6.12 6.18 7.2.
#
# A kernel is that of a Debian suite (tests/vm/kernel.sh) and sees this machine's root filesystem, read-only, so
# programs and libraries are the ones built and tested here. tests/vm/guest.sh runs in it; its cases are printed
# as it printed them, with the kernel in front of the name. Root is not needed. Logs stay in build/vm.
#
# VM_COMMAND runs another command than the tests, in the folder of the sources (VM_COMMAND='build/ncclscope doctor').
# VM_TIMEOUT is the seconds that a kernel may take.
set -u
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(realpath "${BUILD:-$top/build}")
vms=$build/vm
limit_s=${VM_TIMEOUT:-400}
command=${VM_COMMAND:-tests/vm/guest.sh}
failed=0
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 6.18 7.2

for tool in qemu-system-x86_64 busybox cpio depmod modprobe xz gzip timeout; do
	command -v $tool >/dev/null || {
		echo "SKIP: run.sh: needs $tool: packaging/deps.sh vm"
		exit 77
	}
done
[ "$(uname -m)" = x86_64 ] || {
	echo "SKIP: run.sh: the kernels are for x86-64, this machine is $(uname -m)"
	exit 77
}
for file in ncclscope libnccl-profiler-ncclscope.so standin/scope-job tests/vm/dying; do
	[ -e "$build/$file" ] || {
		echo "not ok run.sh: Failed to find '$build/$file': build it first (make check-vm does)"
		exit 1
	}
done

not_ok() {
	echo "not ok $1: $2"
	failed=$((failed + 1))
}

# What the kernel needs to mount the host's filesystem, in the order of loading; nothing when it is built in.
module_files() {
	local root=$1 release=$2 module
	for module in virtio_pci 9pnet_virtio 9p overlay; do
		modprobe -q -d "$root" -S "$release" --show-depends $module | sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++'
}

# initramfs DIR OUT COMMAND: busybox, the modules, tests/vm/init and the command that it runs.
initramfs() {
	local dir=$1 out=$2 command=$3 tree file name
	tree=$(mktemp -d)
	mkdir "$tree"/{bin,modules,proc,sys,dev,host,memory}
	cp "$(command -v busybox)" "$tree/bin/busybox"
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

# Two serial lines: the kernel's messages on one, what the tests say on the other. -cpu max: all that TCG can.
# hpet=off: with the HPET for its clock, 5.10 stood still now and then on a busy host, once before any test.
boot() {
	local dir=$1
	# One thread for both CPUs: with two, TCG may run an instruction that the other CPU has patched, and the
	# kernel, which patches its tracepoints, panics ("Oops: int3").
	timeout -k 5 "$limit_s" qemu-system-x86_64 -machine pc,hpet=off -accel tcg,thread=single -cpu max -smp 2 -m 2048 \
		-nodefaults -display none -monitor none -no-reboot \
		-serial "file:$dir/console.log" -serial "file:$dir/tests.raw" \
		-kernel "$dir/vmlinuz" -initrd "$dir/initramfs.gz" -append "console=ttyS0 loglevel=5 panic=-1" \
		-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
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

run_kernel() {
	local version=$1 dir=$vms/$1 begin=$SECONDS rc
	"$here/kernel.sh" "$version" "$dir"
	rc=$?
	case $rc in
	0) ;;
	77) echo "skip $version: no Debian mirror to get the kernel from" && return ;;
	*) not_ok "$version" "Failed to get the kernel" && return ;;
	esac
	initramfs "$dir" "$dir/initramfs.gz" "cd '$top' || exit; export BUILD='$build'; $command" || {
		not_ok "$version" "Failed to make '$dir/initramfs.gz'"
		return
	}
	rm -f "$dir"/*.log "$dir"/tests.raw
	boot "$dir"
	judge "$version" "$dir" $((SECONDS - begin))
}

for version in "$@"; do
	run_kernel "$version"
done
[ $failed = 0 ]
