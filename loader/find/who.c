// SPDX-License-Identifier: BSD-2-Clause
/* Who a process is, from /proc; see who.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf_file.h"
#include "mapping.h"
#include "patience.h"
#include "who.h"

#define PROC_FILE_MAX (128 * 1024) /* of environ and cgroup each */
#define MAX_TRIES     8		   /* mappings named like libnccl that are looked into */

const uint32_t who_max[WHO_PARTS] = {
	[WHO_ARGS] = WHO_ARGS_MAX,
	[WHO_ENV] = WHO_ENV_MAX,
	[WHO_CGROUP] = WHO_CGROUP_MAX,
	[WHO_BUILD_ID] = ELF_BUILD_ID_LEN - 1,
};

const char *const who_launcher[] = {
	"RANK",
	"LOCAL_RANK",
	"GROUP_RANK",
	"WORLD_SIZE",
	"TORCHELASTIC_RUN_ID",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_LOCAL_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"PMI_RANK",
	"PMI_SIZE",
	"MPI_LOCALRANKID",
	"PMIX_RANK",
	"CUDA_VISIBLE_DEVICES",
	NULL,
};

static const char *const others[] = {
	"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NODEID", NULL,
};

/* ---- /proc ------------------------------------------------------------------------------------- */

/* A file of /proc/PID, at most `max` bytes, into `buf`, which has room for a 0 besides. How many. */
static size_t proc_read(uint32_t pid, const char *file, char *buf, size_t max)
{
	size_t len = 0;
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && len < max && (n = read(fd, buf + len, max - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	buf[len] = 0;
	return len;
}

/* A variable in an environ block of `len` bytes with a 0 behind it; NULL when it is not set. */
static const char *env_get(const char *env, size_t len, const char *name)
{
	size_t n = strlen(name);
	const char *p;

	for (p = env; p < env + len; p += strlen(p) + 1)
		if (!strncmp(p, name, n) && p[n] == '=')
			return p + n + 1;
	return NULL;
}

/* Those of `names` that are set, behind `at`; the new end. A value that is cut is a byte longer than what is told. */
static char *pick(char *at, const char *end, const char *env, size_t len, const char *const *names)
{
	const char *v;
	int n;

	for (; *names; names++) {
		v = env_get(env, len, *names);
		if (!v)
			continue;
		n = snprintf(at, (size_t)(end - at), "%s=%.*s", *names, WHO_VALUE_MAX + 1, v);
		if (n + 1 >= end - at)
			break;
		at += n + 1;
	}
	return at;
}

/* The path in the unified hierarchy: the line "0::/path". */
static size_t take_cgroup(char *to, const char *text)
{
	const char *line = strncmp(text, "0::", 3) ? strstr(text, "\n0::") : text;
	size_t len;

	*to = 0;
	if (!line)
		return 0;
	line += line == text ? 3 : 4;
	len = strcspn(line, "\n");
	len = len < WHO_CGROUP_MAX ? len : WHO_CGROUP_MAX;
	memcpy(to, line, len);
	to[len] = 0;
	return len;
}

/*
 * Build id of the libnccl that the process has mapped: of the very file, through map_files, since in a
 * container its name leads elsewhere. Not known is no error.
 */
static void nccl_build_id(uint32_t pid, char *id, size_t len)
{
	char path[64], *line = NULL;
	int fd, tries = 0;
	struct mapping m;
	size_t room = 0;
	FILE *f;

	*id = 0;
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	while (f && !*id && tries < MAX_TRIES && getline(&line, &room, f) > 0) {
		if (strncmp(mapping__base(line), "libnccl.so", 10) || !mapping__parse(&m, line))
			continue;
		tries++;
		mapping__path(&m, (pid_t)pid, path, sizeof(path));
		fd = elf__open(path);
		if (fd < 0)
			continue;
		if (elf__build_id(fd, id, len))
			*id = 0;
		close(fd);
	}
	free(line);
	if (f)
		fclose(f);
}

/* ---- Parts ------------------------------------------------------------------------------------- */

static int read_parts(struct who *w, uint32_t pid)
{
	size_t room = WHO_ARGS_MAX + WHO_ENV_MAX + WHO_CGROUP_MAX + ELF_BUILD_ID_LEN + WHO_PARTS;
	char *text = malloc(room), *buf = malloc(PROC_FILE_MAX + 1), *at = text, *end, *fitting;
	size_t n;

	*w = (struct who){0};
	if (!text || !buf) {
		free(text);
		free(buf);
		return -ENOMEM;
	}
	w->len[WHO_ARGS] = (uint32_t)proc_read(pid, "cmdline", at, WHO_ARGS_MAX);
	at += w->len[WHO_ARGS] + 1;
	n = proc_read(pid, "environ", buf, PROC_FILE_MAX);
	end = pick(at, at + WHO_ENV_MAX, buf, n, others);
	end = pick(end, at + WHO_ENV_MAX, buf, n, who_launcher);
	*end = 0;
	w->len[WHO_ENV] = (uint32_t)(end - at);
	at = end + 1;
	proc_read(pid, "cgroup", buf, PROC_FILE_MAX);
	w->len[WHO_CGROUP] = (uint32_t)take_cgroup(at, buf);
	at += w->len[WHO_CGROUP] + 1;
	nccl_build_id(pid, at, ELF_BUILD_ID_LEN);
	w->len[WHO_BUILD_ID] = (uint32_t)strlen(at);
	at += w->len[WHO_BUILD_ID] + 1;
	fitting = realloc(text, (size_t)(at - text));
	if (fitting)
		text = fitting;
	w->text = text;
	free(buf);
	return 0;
}

/* By the process that may hang: the lengths, then the text. */
static int ask_who(struct patience_call *call)
{
	const uint32_t *pid = call->in;
	struct who w;
	int err = read_parts(&w, *pid);

	if (err)
		return err;
	call->out_len = sizeof(w.len) + who__size(&w);
	call->out = malloc(call->out_len);
	if (call->out) {
		memcpy(call->out, w.len, sizeof(w.len));
		memcpy((char *)call->out + sizeof(w.len), w.text, who__size(&w));
	}
	who__free(&w);
	return call->out ? 0 : -ENOMEM;
}

int who__read(struct who *w, uint32_t pid, uint32_t uid)
{
	struct patience_call call = {.in = &pid, .in_len = sizeof(pid), .in_fd = -1};
	int err = patience__call(ask_who, &call, uid);

	*w = (struct who){0};
	if (!err && call.out_len < sizeof(w->len))
		err = -EPIPE;
	if (!err)
		err = who__set(w, call.out, (char *)call.out + sizeof(w->len),
			       call.out_len - sizeof(w->len));
	free(call.out);
	return err;
}

int who__set(struct who *w, const uint32_t lens[WHO_PARTS], const char *text, size_t len)
{
	size_t sum = 0;
	char *copy;
	int i;

	for (i = 0; i < WHO_PARTS; i++) {
		if (lens[i] > who_max[i] || lens[i] >= len - sum || text[sum + lens[i]])
			return -EINVAL;
		sum += lens[i] + 1;
	}
	if (sum != len)
		return -EINVAL;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	who__free(w);
	w->text = copy;
	memcpy(w->len, lens, sizeof(w->len));
	return 0;
}

size_t who__size(const struct who *w)
{
	size_t sum = 0;
	int i;

	for (i = 0; w->text && i < WHO_PARTS; i++)
		sum += w->len[i] + 1;
	return sum;
}

void who__free(struct who *w)
{
	free(w->text);
	*w = (struct who){0};
}

const char *who__part(const struct who *w, enum who_part part, size_t *len)
{
	const char *at = w->text ? w->text : "";
	int i;

	if (len)
		*len = w->text ? w->len[part] : 0;
	for (i = 0; w->text && i < (int)part; i++)
		at += w->len[i] + 1;
	return at;
}

const char *who__env(const struct who *w, const char *name)
{
	size_t len;
	const char *env = who__part(w, WHO_ENV, &len);

	return env_get(env, len, name);
}
