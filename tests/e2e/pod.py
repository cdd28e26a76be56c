#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The pod of packaging/kubernetes.yaml's DaemonSet as arguments of `podman run`, for machines whose `podman kube play` knows less.

Usage: pod.py MANIFEST NODE

Prints arrays for a shell: of each container its arguments up to the image (NAME_options), those behind it (NAME_args) and its
readiness probe (NAME_ready). What one machine has not is replaced: directories of the node, which lie below NODE (but /sys), and capabilities that nobody has
here; the image is the caller's. Whatever else the manifest says has its option, or is an error.
"""
import json
import re
import shlex
import sys
import yaml

# Of a pod: for the scheduler and the kubelet, nothing that a container could tell.
OF_CLUSTER = {"automountServiceAccountToken", "tolerations", "terminationGracePeriodSeconds", "nodeSelector"}


def ours():
    """Capabilities that a process may get on this machine."""
    with open("/proc/self/status") as f:
        bits = next(int(line.split()[1], 16) for line in f if line.startswith("CapBnd:"))
    with open("/usr/include/linux/capability.h") as f:
        known = re.findall(r"^#define CAP_(\w+)\s+(\d+)$", f.read(), re.M)
    return {name for name, bit in known if bits >> int(bit) & 1}


def take(of, key, default=None):
    return of.pop(key, default)


def nothing_left(of, where):
    if of:
        sys.exit(f"pod.py: {where} has what this script does not know: {', '.join(sorted(of))}")


def confined(security, where):
    options = []
    capabilities = take(security, "capabilities")
    options += [f"--cap-drop={name}" for name in take(capabilities, "drop", [])]
    for name in take(capabilities, "add", []):
        if name in ours():
            options.append(f"--cap-add={name}")
        else:
            print(f"# without CAP_{name}, which nobody has on this machine", file=sys.stderr)
    nothing_left(capabilities, where)
    if take(security, "readOnlyRootFilesystem"):
        options += ["--read-only", "--read-only-tmpfs=false"]
    if take(security, "seccompProfile", {}) not in ({}, {"type": "RuntimeDefault"}):  # which is podman's default, too
        sys.exit("pod.py: another seccomp profile than the runtime's")
    if take(security, "appArmorProfile", {}) == {"type": "Unconfined"}:
        options += ["--security-opt=apparmor=unconfined"]
    nothing_left(security, where)
    return options


def limits(resources):
    of = resources.get("limits", {})
    units = {"Mi": 1 << 20, "Gi": 1 << 30}
    number, unit = re.fullmatch(r"(\d+)(\w*)", of["memory"]).groups()
    return [f"--memory={int(number) * units[unit]}", f"--cpus={of['cpu']}"]


def print_container(container, shared, volumes):
    name = take(container, "name")
    take(container, "image")
    options = shared + confined(take(container, "securityContext"), name)
    resources = take(container, "resources")
    options += limits(resources) if resources else []
    for mount in take(container, "volumeMounts"):
        source = "/".join([volumes[mount["name"]]] + ([mount["subPath"]] if "subPath" in mount else []))
        options += ["-v", f"{source}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}"]
    command, args = take(container, "command"), take(container, "args", [])
    ready = take(container, "readinessProbe", {}).get("exec", {}).get("command", [])
    nothing_left(container, name)
    if command:
        options += [f"--entrypoint={json.dumps(command)}"]
    for what, words in ("options", options), ("args", args), ("ready", ready):
        print(f"{name}_{what}=({' '.join(map(shlex.quote, words))})")


def main():
    manifest, node = sys.argv[1:]
    with open(manifest) as f:
        pod = next(doc for doc in yaml.safe_load_all(f) if doc["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in take(pod, "volumes")}
    volumes = {name: path if path.startswith("/sys/") else node + path for name, path in volumes.items()}
    shared = ["--pid=host"] if take(pod, "hostPID") else []
    shared += ["--network=host"] if take(pod, "hostNetwork") else []
    containers = take(pod, "initContainers") + take(pod, "containers")
    nothing_left({key for key in pod if key not in OF_CLUSTER}, "the pod")
    for container in containers:
        print_container(container, shared, volumes)


main()
