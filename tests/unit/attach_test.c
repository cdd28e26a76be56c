// SPDX-License-Identifier: BSD-2-Clause
/* loader/attach/attach_usdt.c: at which place of which files the flush probe is put, and how. What the kernel and libbpf are asked for is ours here. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include "attach_priv.h"
#include "elf_file.h"
#include "scope.skel.h"
#include "scope_probes.h"

/* What was asked for, and what is answered. */
static struct {
	int multi, perf, usdt; /* how often */
	unsigned long offset, semaphore;
	int multi_answer;
	bool perf_works;
} asked;

int __wrap_uprobe_multi__link(int prog_fd, const char *path, unsigned long offset,
			      unsigned long semaphore_offset, pid_t pid);
bool __wrap_bpf_program__autoload(const struct bpf_program *prog);
int __wrap_bpf_program__fd(const struct bpf_program *prog);
struct bpf_link *__wrap_bpf_program__attach_uprobe_opts(const struct bpf_program *prog, pid_t pid,
							const char *path, size_t offset,
							const struct bpf_uprobe_opts *opts);
struct bpf_link *__wrap_bpf_program__attach_usdt(const struct bpf_program *prog, pid_t pid,
						 const char *path, const char *provider,
						 const char *name,
						 const struct bpf_usdt_opts *opts);

int __wrap_uprobe_multi__link(int prog_fd, const char *path, unsigned long offset,
			      unsigned long semaphore_offset, pid_t pid)
{
	(void)prog_fd;
	(void)path;
	(void)pid;
	asked.multi++;
	asked.offset = offset;
	asked.semaphore = semaphore_offset;
	return asked.multi_answer;
}

bool __wrap_bpf_program__autoload(const struct bpf_program *prog)
{
	(void)prog;
	return true;
}

int __wrap_bpf_program__fd(const struct bpf_program *prog)
{
	(void)prog;
	return -1;
}

static struct bpf_link *link_or_error(void)
{
	static char link;

	if (asked.perf_works)
		return (struct bpf_link *)&link;
	errno = EPERM;
	return NULL;
}

struct bpf_link *__wrap_bpf_program__attach_uprobe_opts(const struct bpf_program *prog, pid_t pid,
							const char *path, size_t offset,
							const struct bpf_uprobe_opts *opts)
{
	(void)prog;
	(void)pid;
	(void)path;
	assert_null(opts->func_name); /* to find which libbpf would read the file */
	asked.perf++;
	asked.offset = offset;
	asked.semaphore = opts->ref_ctr_offset;
	return link_or_error();
}

struct bpf_link *__wrap_bpf_program__attach_usdt(const struct bpf_program *prog, pid_t pid,
						 const char *path, const char *provider,
						 const char *name, const struct bpf_usdt_opts *opts)
{
	(void)prog;
	(void)pid;
	(void)path;
	(void)provider;
	(void)name;
	(void)opts;
	asked.usdt++;
	return link_or_error();
}

static struct scope_bpf skel;
static struct attach attach = {.skel = &skel};

/* What comes of it; nothing has been asked for before. */
static int attach_to(const char *path, struct attach_probe *probe)
{
	*probe = (struct attach_probe){0};
	asked.multi = asked.perf = asked.usdt = 0;
	asked.offset = asked.semaphore = 0;
	return probe_attach(&attach, probe, path, -1);
}

static void assert_site(void)
{
	struct elf_usdt_site site;
	int fd = elf__open(PLUGIN_PATH);

	assert_true(fd >= 0);
	assert_int_equal(elf__usdt_site(fd, SCOPE_PROVIDER, SCOPE_PROBE_FLUSH, &site), 0);
	close(fd);
	assert_int_equal(asked.offset, site.offset);
	assert_int_equal(asked.semaphore, site.semaphore_offset);
	assert_int_equal(asked.usdt, 0);
}

static void test_plugin(void **state)
{
	struct attach_probe probe;

	(void)state;
	asked.multi_answer = 1000;
	assert_int_equal(attach_to(PLUGIN_PATH, &probe), 0);
	assert_true(probe.on && probe.fd == 1000 && !probe.link);
	assert_int_equal(asked.perf, 0);
	assert_site();
	asked.multi_answer = -EINVAL;
	asked.perf_works = true;
	assert_int_equal(attach_to(PLUGIN_PATH, &probe), 0);
	assert_true(probe.on && probe.link);
	assert_int_equal(asked.multi, 1);
	assert_int_equal(asked.perf, 1);
	assert_site();
	asked.perf_works = false;
	assert_int_equal(attach_to(PLUGIN_PATH, &probe), -EPERM);
	assert_false(probe.on);
	assert_int_equal(asked.usdt, 0);
}

static const void *plugin;
static size_t plugin_size;

/* A copy of the plugin in which the first `what` is `other`, of `len` bytes as well, has this error, and nothing is asked for. */
static void assert_refused(const void *what, const void *other, size_t len, int err)
{
	char path[] = "/tmp/attach_test.XXXXXX", *copy = malloc(plugin_size), *at;
	struct attach_probe probe;
	int fd = mkstemp(path);

	assert_non_null(copy);
	memcpy(copy, plugin, plugin_size);
	at = memmem(copy, plugin_size, what, len);
	assert_non_null(at);
	memcpy(at, other, len);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, copy, plugin_size), (ssize_t)plugin_size);
	close(fd);
	free(copy);
	asked.multi_answer = 1000;
	asked.perf_works = true;
	assert_int_equal(attach_to(path, &probe), err);
	assert_false(probe.on);
	assert_int_equal(asked.multi + asked.perf + asked.usdt, 0);
	unlink(path);
}

/* Whose files are not as the plugin is may have made them so. */
static void test_refused(void **state)
{
	(void)state;
	assert_refused("\177ELF", "\177elf", 4, -ENOEXEC);
	assert_refused("ncclscope\0flush", "ncclscope\0flash", 16, -ENOENT);
	assert_refused("ncclscope\0state", "ncclscope\0flush", 16, -E2BIG);
#ifdef __x86_64__
	assert_refused("flush\0008@%rdi 8@%rsi", "flush\0008@%rsi 8@%rdi", 20, -EOPNOTSUPP);
#else
	assert_refused("flush\0008@x0 8@x1", "flush\0008@x1 8@x0", 16, -EOPNOTSUPP);
#endif
}

static int begin(void **state)
{
	int fd = open(PLUGIN_PATH, O_RDONLY | O_CLOEXEC);
	struct stat st;

	(void)state;
	if (fd < 0 || fstat(fd, &st))
		return -1;
	plugin_size = (size_t)st.st_size;
	plugin = mmap(NULL, plugin_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return plugin == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_plugin),
					   cmocka_unit_test(test_refused)};

	return cmocka_run_group_tests_name("attach", tests, begin, NULL);
}
