// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who a process is. What /proc says of it is the job's own text (command line, environment, paths):
 * bounded when read, checked before it names a file, escaped when written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "elf_file.h"
#include "header.h"
#include "log.h"
#include "nccl_names.h"
#include "session.h"
#include "version.h"

#define PROC_FILE_MAX (128 * 1024) /* of cmdline and environ each */
#define MAX_TRIES     8		   /* mappings named like libnccl that are looked into */
#define VALUE_MAX     256	   /* of one variable that we pass on */

/* ---- /proc ------------------------------------------------------------------------------------- */

/* A file of /proc/PID, at most PROC_FILE_MAX bytes; *len 0 when it is gone. Never NULL but for memory. */
static char *proc_read(uint32_t pid, const char *file, size_t *len)
{
	char path[64], *buf = malloc(PROC_FILE_MAX + 1);
	ssize_t n;
	int fd;

	*len = 0;
	if (!buf)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && *len < PROC_FILE_MAX &&
	       (n = read(fd, buf + *len, PROC_FILE_MAX - *len)) > 0)
		*len += (size_t)n;
	if (fd >= 0)
		close(fd);
	buf[*len] = 0;
	return buf;
}

/* A variable in an environ block of `len` bytes; NULL when it is not set. */
static const char *env_get(const char *env, size_t len, const char *name)
{
	size_t n = strlen(name);
	const char *p;

	for (p = env; p && p < env + len; p += strlen(p) + 1)
		if (!strncmp(p, name, n) && p[n] == '=')
			return p + n + 1;
	return NULL;
}

static void line_of(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : 0;

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	buf[strcspn(buf, "\n")] = 0;
}

/* ---- libnccl ----------------------------------------------------------------------------------- */

/*
 * Build id of the libnccl that the process has mapped: of the very file, through map_files, since in a
 * container its name leads elsewhere. Not known is no error.
 */
static void nccl_build_id(uint32_t pid, char *id, size_t len)
{
	char path[64], line[1024], map[128], *name;
	int fd, tries = 0;
	FILE *f;

	*id = 0;
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	while (f && !*id && tries < MAX_TRIES && fgets(line, sizeof(line), f)) {
		name = strchr(line, '/');
		if (!name || !strstr(name, "/libnccl.so"))
			continue;
		tries++;
		snprintf(map, sizeof(map), "/proc/%u/map_files/%.*s", pid, (int)strcspn(line, " "),
			 line);
		fd = elf__open(map);
		if (fd < 0)
			continue;
		if (elf__build_id(fd, id, len))
			*id = 0;
		close(fd);
	}
	if (f)
		fclose(f);
}

/* ---- The file ---------------------------------------------------------------------------------- */

bool name_is_safe(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n && n <= 64 && !s[n] && s[0] != '.';
}

static struct out_dir *dir_get(struct session *s, const char *path, int *err)
{
	struct out_dir *d;

	HASH_FIND_STR(s->dirs, path, d);
	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d) {
		*err = -ENOMEM;
		return NULL;
	}
	snprintf(d->path, sizeof(d->path), "%s", path);
	d->fd = out_dir_open(path, s->uid, s->gid);
	if (d->fd < 0) {
		*err = d->fd;
		free(d);
		return NULL;
	}
	HASH_ADD_STR(s->dirs, path, d);
	return d;
}

static int file_open(struct proc *p)
{
	struct session *s = p->session;
	char path[PATH_MAX], stem[128];
	struct out_dir *d;
	int err = 0;

	if (s->dir)
		snprintf(path, sizeof(path), "%s", s->dir);
	else
		snprintf(path, sizeof(path), "ncclscope_dump-%s", p->job_id ? p->job_id : s->stamp);
	if (p->job_id)
		snprintf(stem, sizeof(stem), "trace_%s_pid%u", p->job_id, p->id.ns_tgid);
	else
		snprintf(stem, sizeof(stem), "trace_%lld_pid%u", (long long)time(NULL),
			 p->id.ns_tgid);
	d = dir_get(s, path, &err);
	if (d)
		err = out_file__open(&p->out, d->fd, path, stem, p->id.uid, p->id.gid);
	if (err)
		pr_err("Failed to open a trace file in '%s': %s, process %u is not recorded; its "
		       "records are counted as lost\n",
		       path, strerror(-err), p->id.tgid);
	return err;
}

/* ---- The header line --------------------------------------------------------------------------- */

static const char *const launcher_vars[] = {
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
};

static void key(struct json *j, const char *sep, const char *name)
{
	json_raw(j, sep, strlen(sep));
	json_str(j, name, strlen(name));
	json_char(j, ':');
}

static void key_str(struct json *j, const char *name, const char *value)
{
	key(j, ",", name);
	json_str(j, value, strlen(value));
}

static void put_cmdline(struct json *j, const char *args, size_t len)
{
	const char *p, *sep = "";

	json_lit(j, ",\"cmdline\":[");
	for (p = args; p < args + len; p += strlen(p) + 1, sep = ",") {
		json_raw(j, sep, strlen(sep));
		json_str(j, p, strlen(p));
	}
	json_char(j, ']');
}

/* The path in the unified hierarchy: the line "0::/path". */
static void put_cgroup(struct json *j, const char *text)
{
	const char *line = strncmp(text, "0::", 3) ? strstr(text, "\n0::") : text;

	if (!line)
		return;
	line += line == text ? 3 : 4;
	key(j, ",", "cgroup");
	json_str(j, line, strcspn(line, "\n"));
}

/* Integers where the schema wants integers: what does not look like one is left out. */
static void put_slurm(struct json *j, const char *env, size_t len)
{
	static const struct {
		const char *var, *name;
		bool integer;
	} vars[] = {{"SLURM_JOB_ID", "jobId", false},
		    {"SLURM_STEP_ID", "stepId", false},
		    {"SLURM_PROCID", "procId", true},
		    {"SLURM_NODEID", "nodeId", true}};
	const char *v, *sep = "";
	size_t i;

	if (!env_get(env, len, "SLURM_JOB_ID"))
		return;
	json_lit(j, ",\"slurm\":{");
	for (i = 0; i < sizeof(vars) / sizeof(*vars); i++) {
		v = env_get(env, len, vars[i].var);
		if (!v || (vars[i].integer && (!*v || strlen(v) > 9 || v[strspn(v, "0123456789")])))
			continue;
		key(j, sep, vars[i].name);
		if (vars[i].integer)
			json_u64(j, strtoull(v, NULL, 10));
		else
			json_str(j, v, strnlen(v, VALUE_MAX));
		sep = ",";
	}
	json_char(j, '}');
}

static void put_launcher(struct json *j, const char *env, size_t len)
{
	const char *v, *sep = "";
	size_t i;

	json_lit(j, ",\"launcher\":{");
	for (i = 0; i < sizeof(launcher_vars) / sizeof(*launcher_vars); i++) {
		v = env_get(env, len, launcher_vars[i]);
		if (!v)
			continue;
		key(j, sep, launcher_vars[i]);
		json_str(j, v, strnlen(v, VALUE_MAX));
		sep = ",";
	}
	json_char(j, '}');
}

/* NCCL 2.9 and later: 10000 major + 100 minor + patch; before, 1000 major. */
static void put_nccl(struct json *j, const struct proc *p, const char *build_id)
{
	uint32_t v = p->nccl_version;
	char text[48];

	if (v >= 10000)
		snprintf(text, sizeof(text), "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
	else
		snprintf(text, sizeof(text), "%u.%u.%u", v / 1000, v / 100 % 10, v % 100);
	if (v)
		key_str(j, "ncclVersion", text);
	if (*build_id)
		key_str(j, "ncclBuildId", build_id);
}

static void put_clock(struct json *j, const struct proc *p)
{
	static const char *const sources[] = {[SCOPE_CLOCK_MONOTONIC] = "clock_gettime",
					      [SCOPE_CLOCK_TSC] = "tsc",
					      [SCOPE_CLOCK_CNTVCT] = "cntvct"};
	const char *source = sources[p->clock <= SCOPE_CLOCK_CNTVCT ? p->clock : 0];
	uint64_t error;
	int64_t offset = realtime_offset_ns(&error);

	json_lit(j, ",\"clock\":{\"source\":");
	json_str(j, source, strlen(source));
	if (p->clock != SCOPE_CLOCK_MONOTONIC && p->session->clock.hz) {
		json_lit(j, ",\"tscHz\":");
		json_u64(j, p->session->clock.hz);
	}
	json_lit(j, ",\"realtimeOffset\":");
	json_us_signed(j, offset);
	json_lit(j, ",\"realtimeError\":");
	json_us(j, error);
	json_char(j, '}');
}

static void put_ids(struct json *j, const struct proc *p)
{
	static const char *const keys[] = {"pid", "hostPid", "uid"};
	const uint32_t values[] = {p->id.ns_tgid, p->id.tgid, p->id.uid};
	int i;

	for (i = 0; i < 3; i++) {
		key(j, ",", keys[i]);
		json_u64(j, values[i]);
	}
	key(j, ",", "comm");
	json_str(j, p->id.comm, strnlen(p->id.comm, sizeof(p->id.comm)));
}

/* What this recording could use: for people, and for bug reports. */
static void put_features(struct json *j, const struct session *s)
{
	static const char *const sched[] = {"off", "events", "slices"};

	json_lit(j, ",\"features\":{\"maskAsked\":");
	json_u64(j, s->mask);
	json_lit(j, ",\"ringBytes\":");
	json_u64(j, s->ring_bytes);
	key_str(j, "sched", sched[s->sched_mode]);
	if (s->sched_mode) {
		key(j, ",", "irq");
		json_bool(j, s->features.irq);
		key(j, ",", "throttled");
		json_bool(j, s->features.quota);
		key(j, ",", "blockedIn");
		json_bool(j, s->features.why);
	}
	if (s->net_mode) {
		key_str(j, "net", s->features.net_calls ? "sockets" : "functions");
		if (s->features.drops)
			key_str(j, "drops", s->features.drop_reasons ? "reasons" : "locations");
	}
	json_char(j, '}');
}

int header__write(struct proc *p)
{
	char boot[64], build_id[ELF_BUILD_ID_LEN], *args, *env, *cgroup;
	size_t args_len, env_len, cgroup_len;
	struct utsname un;
	const char *job;
	struct json j;
	int err = 0;

	args = proc_read(p->key.tgid, "cmdline", &args_len);
	env = proc_read(p->key.tgid, "environ", &env_len);
	cgroup = proc_read(p->key.tgid, "cgroup", &cgroup_len);
	if (!args || !env || !cgroup) {
		err = -ENOMEM;
		goto cleanup;
	}
	job = env_get(env, env_len, "SLURM_JOB_ID");
	if (job && name_is_safe(job) && !p->job_id)
		p->job_id = strdup(job);
	if (!p->out.path) {
		err = file_open(p);
		p->out_failed = err;
	}
	if (err)
		goto cleanup;

	uname(&un);
	line_of("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	nccl_build_id(p->key.tgid, build_id, sizeof(build_id));
	/* Arguments and paths can take six bytes a byte when escaped, and a separator each. */
	if (args_len > PROC_FILE_MAX / 2)
		args_len = PROC_FILE_MAX / 2;
	args[args_len] = 0;
	j = out_line_begin(&p->out, 9 * args_len + 6 * (cgroup_len + 64 * VALUE_MAX) + 8192);
	if (!j.at) {
		err = -ENOMEM;
		goto cleanup;
	}
	json_lit(&j, "{\"recordType\":\"header\",\"schema\":1");
	key_str(&j, "tool", "ncclscope");
	key_str(&j, "version", NCCLSCOPE_VERSION);
	key_str(&j, "host", un.nodename);
	key_str(&j, "bootId", boot);
	key_str(&j, "kernel", un.release);
	key_str(&j, "arch", un.machine);
	put_ids(&j, p);
	put_cmdline(&j, args, args_len);
	put_cgroup(&j, cgroup);
	put_slurm(&j, env, env_len);
	put_launcher(&j, env, env_len);
	put_nccl(&j, p, build_id);
	key(&j, ",", "mask");
	json_u64(&j, p->mask);
	put_clock(&j, p);
	put_features(&j, p->session);
	json_char(&j, '}');
	out_line_end(&p->out, &j, OUT_HEADER, p->corr.now_ns);
	/* At once, and alone: a trace without a header is none. */
	err = out_file__flush(&p->out);
cleanup:
	free(args);
	free(env);
	free(cgroup);
	return err;
}
