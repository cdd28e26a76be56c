#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The pod of packaging/kubernetes.yaml, by podman and runc, with all that confines it there: it records a job in a container that has
# nothing of it but the plugin, mounted from the node, and a job of the node itself.
# POD_IMAGE=ARCHIVE: an image of packaging/Containerfile (tests/distro/image.sh). Else the same files, taken from this machine.
. "$(dirname "$0")/lib.sh"
# shellcheck source=../podman.sh
. "$top/tests/podman.sh"
needs podman runc python3 zstd
python3 -c 'import yaml' 2>/dev/null || skip_all "needs Python's yaml"
manifest=$top/packaging/kubernetes.yaml
image=localhost/ncclscope:test
node=$tmp/node
uid=12345

mkdir "$node"
own_podman "$tmp/podman" vfs 100
all_down() {
	podman rm --all --force --time 1
} >/dev/null 2>&1
trap 'all_down; cleanup' EXIT

# image_of DIR NAME [OPTION...]: what lies in DIR, with the libraries that its programs and the plugin are linked against.
image_of() {
	local dir=$1 name=$2
	shift 2
	find "$dir" "$plugin" -type f -perm -100 -exec ldd {} + 2>/dev/null | grep -o '/[^ ]*\.so[^ :]*' | sort -u | grep -v -e "^$dir/" -e "^$plugin" | xargs cp -L --parents -t "$dir"
	tar -C "$dir" -c . | podman import --quiet "$@" - "$name"
}
# /usr/local as `make install` has it, and the few programs that the manifest calls.
image_here() {
	local root=$tmp/image program
	mkdir -p "$root"/{bin,tmp,usr/local/{bin,lib},var/log/ncclscope,run/ncclscope,opt/ncclscope}
	cp "$scope" "$root/usr/local/bin/"
	cp "$plugin" "$root/usr/local/lib/"
	for program in sh cat cmp cp mv grep; do cp -L "$(command -v $program)" "$root/bin/"; done
	image_of "$root" $image --change 'ENV PATH=/usr/local/bin:/bin' --change 'ENTRYPOINT ["ncclscope"]' --change 'WORKDIR /var/log/ncclscope'
}
if [ "${POD_IMAGE:-}" ]; then
	podman load --quiet --input "$POD_IMAGE" >"$tmp/load"
	podman tag "$(sed 's/.*: //' "$tmp/load")" $image
else
	image_here >/dev/null
fi
t "there is an image" podman image exists $image
# A job's has nothing of ours.
mkdir -p "$tmp/job/standin" "$tmp/job/tmp"
cp "$job" "$tmp"/bin/libnccl.so* "$tmp/job/standin/"
image_of "$tmp/job" localhost/job:test --change 'ENTRYPOINT ["/standin/scope-job", "--json"]' >/dev/null

# ---- The recorder

python3 "$here/pod.py" "$manifest" "$node" >"$tmp/options" || exit 1
# shellcheck source=/dev/null
. "$tmp/options" # plugin_options and the others
mkdir -p "$node"/{opt,run,var/log}/ncclscope
# shellcheck disable=SC2154
t "its first container ends well" podman run --rm "${plugin_options[@]}" $image "${plugin_args[@]}"
t "its first container puts the plugin there, readable for all" eval '[ "$(stat -c %a "$node/opt/ncclscope/libnccl-profiler-ncclscope.so")" = 644 ] ||
	[ "$(stat -c %a "$node/opt/ncclscope/libnccl-profiler-ncclscope.so")" = 755 ]'
# Of cgroups it has a namespace of its own, as runtimes give one where there is cgroup v2. Only this plugin: what else runs here is not asked about.
# shellcheck disable=SC2154
t "the recorder starts" podman run -d --name recorder --cgroupns private "${ncclscope_options[@]}" $image "${ncclscope_args[@]}" \
	--plugin /usr/local/lib/libnccl-profiler-ncclscope.so
# shellcheck disable=SC2154
t "the recorder gets ready" until_true 30 podman exec recorder "${ncclscope_ready[@]}"
in_pod=$(podman inspect --format '{{.State.Pid}}' recorder)
is "the recorder is confined: seccomp, no_new_privs" "$(status_of "$in_pod" Seccomp) $(status_of "$in_pod" NoNewPrivs)" "2 1"
podman exec recorder ncclscope doctor --json >"$tmp/doctor"
is "doctor in the pod: what it needs is there" "$(jq -rc '[.features[] | select(.status == "missing" or .status == "denied") | .name]' "$tmp/doctor")" "[]"
is "doctor in the pod: it sees the node" \
	"$(jq -rc '[.features[] | select(.name == "init-pid-namespace" or .name == "cgroup-cpu-stat") | .status]' "$tmp/doctor")" '["works","works"]'
given_up='setpcap sys_resource'
! jq -e '.features[] | select(.name == "attach-path") | .detail | startswith("uprobe_multi")' "$tmp/doctor" >/dev/null || given_up+=' sys_admin'
# shellcheck disable=SC2086
is "the recorder has given up what it needs no more" $((0x$(status_of "$in_pod" CapPrm) & 0x$(bits $given_up))) 0

# ---- Jobs

# As pods have it: no privilege, no network but what it brings along, pids of its own, a quota, 64 MiB of /dev/shm.
podman run --name job --rm --network none --user $uid:$uid --cap-drop all --cpus 1.5 -v "$node/opt/ncclscope:/opt/ncclscope:ro" \
	-e NCCL_PROFILER_PLUGIN=/opt/ncclscope/libnccl-profiler-ncclscope.so -e NCCL_PROFILE_EVENT_MASK=0x7fff \
	localhost/job:test --ranks 2 --bytes 256K --iters 20 --linger-ms 3000 >"$tmp/pod.out" 2>"$tmp/pod.err"
is "job in a container: exit status" $? 0
NCCL_PROFILER_PLUGIN=$node/opt/ncclscope/libnccl-profiler-ncclscope.so "$job" --json --ranks 2 --bytes 256K --iters 20 --linger-ms 1500 >"$tmp/host.out"
is "job of the node: exit status" $? 0
podman exec recorder ncclscope status --json >"$tmp/status" 2>/dev/null
t "status in the pod: its recorder" jq -e '.recorders | length == 1' "$tmp/status"
is "status on the node: the same recorder" "$(NCCLSCOPE_STATUS_DIR=$node/run/ncclscope "$scope" status --json 2>/dev/null | jq -c '[.recorders[].pid]')" "[$in_pod]"

podman stop --time 60 recorder >/dev/null
is "the pod ends as asked, exit status" "$(podman inspect --format '{{.State.ExitCode}}' recorder)" 0

# ---- Traces

# split NAME: in $tmp/NAME the traces of the processes that the job tells of.
find "$node/var/log/ncclscope" -name '*.zst' -exec zstd -dq {} +
split() {
	local f pid
	mkdir "$tmp/$1"
	for f in "$node"/var/log/ncclscope/*/*.jsonl; do
		pid=${f##*_pid}
		! jq -e --argjson p "${pid%.jsonl}" '.rank | any(.pid == $p)' "$tmp/$1.out" >/dev/null || cp -p "$f" "$tmp/$1/"
	done
}
rc=0
for name in pod host; do
	split $name
	t "$name: a file of each rank" [ "$(find "$tmp/$name" -name '*.jsonl' | wc -l)" = 2 ]
	t "$name: clean, lossless, counted, joined" good $name
	t "$name: threads' states of each step" steps_have_states $name
	t "$name: a connection of each step" holds $name 'events | of("ProxyStep") | length > 100 and all(.net.flow)'
	t "$name: NCCL's build id" holds $name 'records("header") | length == 2 and all(.ncclBuildId)'
done
t "pod: pids of the container, and the node's beside them" holds pod 'records("header") | length == 2 and all(.pid < 100 and .hostPid > .pid)'
# Not from the recorder's own cgroup on: /../...
is "host: cgroup" "$(q host '[records("header")[].cgroup] | unique | tojson')" "[\"$(awk -F: '$1 == 0 { print $3 }' /proc/self/cgroup)\"]"
t "pod: cgroup, as the node sees it" holds pod 'records("header") | length == 2 and all(.cgroup | test("^/[^.].*libpod-[0-9a-f]{64}"))'
t "pod: its CPU quota" holds pod 'records("node") | any(.throttled.periods > 0)'
is "pod: traces are the job's user's" "$(stat -c %u "$tmp"/pod/*.jsonl | sort -u)" $uid
is "one recorder: one node's name" "$(q pod '[records("header")[].host] | unique | tojson')" "[\"$(hostname)\"]"

finish
