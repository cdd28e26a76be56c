// SPDX-License-Identifier: BSD-2-Clause
/* The flush probe of a plugin's file; see attach_priv.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "attach_priv.h"
#include "elf_file.h"
#include "log.h"
#include "scope.skel.h"
#include "scope_probes.h"
#include "uprobe_multi.h"

/* Two arguments of a function, as a USDT note names them. */
#if defined(__x86_64__)
#define FLUSH_ARGS "8@%rdi 8@%rsi"
#else
#define FLUSH_ARGS "8@x0 8@x1"
#endif

/* The pid of a link means the process since 6.12; before, it could be one thread of it, or its vfork child as well. */
#define PID_MAJOR 6
#define PID_MINOR 12

void probe_choose(struct scope_bpf *skel, const struct btf *btf)
{
	bool multi = btf && has_enumerator(btf, "bpf_attach_type", "BPF_TRACE_UPROBE_MULTI");

	/* Always: where the other does not attach, this one does. */
	program_enable(skel->progs.scope_flush, true);
	program_enable(skel->progs.scope_flush_um, multi);
	if (multi)
		bpf_program__set_expected_attach_type(skel->progs.scope_flush_um,
						      TRACE_UPROBE_MULTI);
}

bool attach__pid_is_process(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname un;

	return !uname(&un) && sscanf(un.release, "%u.%u", &major, &minor) == 2 &&
	       (major > PID_MAJOR || (major == PID_MAJOR && minor >= PID_MINOR));
}

/*
 * The site, for programs that read the registers in which a function gets its arguments: the note must name
 * just those. 0 or -errno.
 */
static int find_site(int fd, struct elf_usdt_site *site)
{
	int err = elf__usdt_site(fd, SCOPE_PROVIDER, SCOPE_PROBE_FLUSH, site);

	if (!err && (strcmp(site->args, FLUSH_ARGS) || !site->semaphore_offset))
		err = -EOPNOTSUPP;
	return err;
}

/* By a uprobe_multi link: an fd or -errno. */
static int attach_multi(struct attach *a, const struct elf_usdt_site *site, const char *path,
			pid_t pid)
{
	struct bpf_program *prog = a->skel->progs.scope_flush_um;

	if (!bpf_program__autoload(prog) || (pid > 0 && !attach__pid_is_process()))
		return -EOPNOTSUPP;
	return uprobe_multi__link(bpf_program__fd(prog), path, site->offset, site->semaphore_offset,
				  pid);
}

/* By one of perf's uprobes. */
static struct bpf_link *attach_perf(struct attach *a, const struct elf_usdt_site *site,
				    const char *path, pid_t pid)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = site->semaphore_offset);

	return bpf_program__attach_uprobe_opts(a->skel->progs.scope_flush, pid, path, site->offset,
					       &opts);
}

static int attach_site(struct attach *a, struct attach_probe *probe,
		       const struct elf_usdt_site *site, const char *path, pid_t pid)
{
	probe->fd = attach_multi(a, site, path, pid);
	if (probe->fd >= 0)
		return 0;
	pr_debug("No uprobe_multi link to '%s': %s, trying perf's uprobes\n", path,
		 strerror(-probe->fd));
	probe->link = attach_perf(a, site, path, pid);
	return probe->link ? 0 : -errno;
}

/*
 * Whatever the path leads to when it is first opened: the file may belong to a job. Were the kernel to go by
 * the path again, it could be led to another file, and put the probe amid that one's instructions. One that
 * elf_file.c refuses is left alone: libbpf would map it, which faults when its owner truncates it, and believe all it says.
 */
int probe_attach(struct attach *a, struct attach_probe *probe, const char *path, pid_t pid)
{
	struct elf_usdt_site site;
	char same[32];
	int fd, err;

	fd = elf__open(path);
	if (fd < 0)
		return fd;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", fd);
	err = find_site(fd, &site);
	if (!err)
		err = attach_site(a, probe, &site, same, pid);
	close(fd);
	probe->on = !err;
	return err;
}

void probe_detach(struct attach_probe *probe)
{
	if (!probe->on)
		return;
	if (probe->link)
		bpf_link__destroy(probe->link);
	else
		close(probe->fd);
	*probe = (struct attach_probe){0};
}

bool attach__by_perf(const struct attach *a)
{
	int i;

	for (i = 0; i < ATTACH_MAX_PLUGINS; i++)
		if (a->plugin[i].on && a->plugin[i].link)
			return true;
	return false;
}
