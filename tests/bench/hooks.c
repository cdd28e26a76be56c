// SPDX-License-Identifier: BSD-2-Clause
/*
 * hooks OBJECT: attaches the programs of hooks.bpf.c, those whose tracepoints this kernel has, prints how many, and
 * keeps them until it is ended.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

static bool exists(const struct btf *btf, const struct bpf_program *prog)
{
	char name[128];

	snprintf(name, sizeof(name), "btf_trace_%s", bpf_program__name(prog));
	return btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF) > 0;
}

int main(int argc, char **argv)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct bpf_object *obj = argc == 2 ? bpf_object__open(argv[1]) : NULL;
	struct bpf_program *prog;
	int n = 0;

	if (!btf || !obj) {
		fprintf(stderr, "Usage: hooks OBJECT, on a kernel with BTF\n");
		return 2;
	}
	bpf_object__for_each_program(prog, obj) bpf_program__set_autoload(prog, exists(btf, prog));
	if (bpf_object__load(obj)) {
		fprintf(stderr, "Failed to load '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	bpf_object__for_each_program(prog, obj) n +=
		bpf_program__autoload(prog) && bpf_program__attach(prog); /* while we are there */
	if (!n) {
		fprintf(stderr, "Failed to attach any program of '%s'\n", argv[1]);
		return 1;
	}
	printf("%d\n", n);
	fflush(stdout);
	pause();
	return 0;
}
