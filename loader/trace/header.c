// SPDX-License-Identifier: BSD-2-Clause
/* The first line of a trace: who the process is, where, and how it was recorded; and the file for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "header.h"
#include "log.h"
#include "nccl_names.h"
#include "out_threads.h"
#include "session.h"
#include "version.h"

#define DIRS_MAX                                                                                   \
	16 /* kept open: a recorder of a service sees many jobs, each with a directory of its own */

const char *const sched_mode_names[] = {[SCHED_MODE_OFF] = "off",
					[SCHED_MODE_EVENTS] = "events",
					[SCHED_MODE_SLICES] = "slices",
					NULL};
const char *const net_mode_names[] =
	{[NET_MODE_OFF] = "off", [NET_MODE_EVENTS] = "events", [NET_MODE_FLOWS] = "flows", NULL};

/* ---- The node ----------------------------------------------------------------------------------- */

static int read_boot_id(char id[HOST_BOOT_ID_LEN])
{
	ssize_t n;
	int fd, err = 0;

	fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, id, HOST_BOOT_ID_LEN - 1);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		err = n ? -errno : -ENODATA;
	close(fd);
	id[n > 0 ? n : 0] = 0;
	id[strcspn(id, "\n")] = 0;
	return err;
}

int header__host(struct session *s)
{
	struct utsname un;
	int err;

	if (s->host.boot_id[0])
		return 0;
	uname(&un);
	snprintf(s->host.node, sizeof(s->host.node), "%s", un.nodename);
	snprintf(s->host.release, sizeof(s->host.release), "%s", un.release);
	snprintf(s->host.machine, sizeof(s->host.machine), "%s", un.machine);
	err = read_boot_id(s->host.boot_id);
	if (err)
		s->host.boot_id[0] = 0;
	return err;
}

/* ---- The file ---------------------------------------------------------------------------------- */

bool name_is_safe(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n && n <= 64 && !s[n] && s[0] != '.';
}

/* Somebody has deleted it: no file can be made there. */
static bool dir_is_gone(const struct out_dir *d)
{
	struct stat st;

	return fstat(d->fd, &st) ? errno == ESTALE : !st.st_nlink;
}

static void dir_drop(struct session *s, struct out_dir *d)
{
	HASH_DEL(s->dirs, d);
	close(d->fd);
	free(d);
}

static struct out_dir *dir_get(struct session *s, const char *path, int *err)
{
	struct out_dir *d;

	HASH_FIND_STR(s->dirs, path, d);
	if (d && !dir_is_gone(d))
		return d;
	if (d) /* its place may be free for a new one */
		dir_drop(s, d);
	if (HASH_COUNT(s->dirs) >= DIRS_MAX)
		dir_drop(s, s->dirs); /* the oldest */
	d = calloc(1, sizeof(*d));
	if (!d) {
		*err = -ENOMEM;
		return NULL;
	}
	snprintf(d->path, sizeof(d->path), "%s", path);
	d->fd = out_dir_open(path, s->dir, s->uid, s->gid); /* links: only what -o has named */
	if (d->fd < 0) {
		*err = d->fd;
		free(d);
		return NULL;
	}
	HASH_ADD_STR(s->dirs, path, d);
	if (!HASH_ADDED(hh, d)) {
		*err = -ENOMEM;
		close(d->fd);
		free(d);
		return NULL;
	}
	return d;
}

/* Of its newest record, or, before the first one, of when its recording began. */
static int64_t unix_time(const struct proc *p)
{
	uint64_t ns = p->corr.now_ns > p->begin_ns ? p->corr.now_ns : p->begin_ns;

	return (int64_t)((ns + (uint64_t)p->session->realtime.offset_ns) / NSEC_PER_SEC);
}

static int file_open(struct proc *p)
{
	uint64_t write_lost = p->out.write_lost;
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
		snprintf(stem, sizeof(stem), "trace_%lld_pid%u", (long long)unix_time(p),
			 p->id.ns_tgid);
	d = dir_get(s, path, &err);
	if (d)
		err = (s->compress ? out_file__open_zst : out_file__open)(
			&p->out, d->fd, path, stem, s->own_files ? s->uid : p->id.uid,
			s->own_files ? s->gid : p->id.gid);
	p->out.write_lost = write_lost;
	if (!err)
		p->out.writer = out_threads__next(s->out_threads);
	if (err && !p->out_failed)
		pr_err("Failed to open a trace file in '%s': %s, process %u is not recorded until "
		       "that works; its records are counted as lost\n",
		       path, d ? strerror(-err) : out_dir_error(err), p->id.tgid);
	if (!err && p->out_failed)
		pr_info("Process %u is recorded in '%s' now\n", p->id.tgid, p->out.path);
	p->out_failed = err;
	return err;
}

/* ---- The header line --------------------------------------------------------------------------- */

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

static void put_cgroup(struct json *j, const struct who *w)
{
	size_t len;
	const char *path = who__part(w, WHO_CGROUP, &len);

	if (!len)
		return;
	key(j, ",", "cgroup");
	json_str(j, path, len);
}

/* Integers where the schema wants integers: what does not look like one is left out. */
static void put_slurm(struct json *j, const struct who *w)
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

	if (!who__env(w, "SLURM_JOB_ID"))
		return;
	json_lit(j, ",\"slurm\":{");
	for (i = 0; i < sizeof(vars) / sizeof(*vars); i++) {
		v = who__env(w, vars[i].var);
		if (!v || (vars[i].integer && (!*v || strlen(v) > 9 || v[strspn(v, "0123456789")])))
			continue;
		key(j, sep, vars[i].name);
		if (vars[i].integer)
			json_u64(j, strtoull(v, NULL, 10));
		else
			json_str(j, v, strnlen(v, WHO_VALUE_MAX));
		sep = ",";
	}
	json_char(j, '}');
}

static void put_launcher(struct json *j, const struct who *w)
{
	const char *v, *sep = "";
	const char *const *name;

	json_lit(j, ",\"launcher\":{");
	for (name = who_launcher; *name; name++) {
		v = who__env(w, *name);
		if (!v)
			continue;
		key(j, sep, *name);
		json_str(j, v, strnlen(v, WHO_VALUE_MAX));
		sep = ",";
	}
	json_char(j, '}');
}

/* NCCL 2.9 and later: 10000 major + 100 minor + patch; before, 1000 major. */
static void put_nccl(struct json *j, const struct proc *p)
{
	const char *build_id = who__part(&p->who, WHO_BUILD_ID, NULL);
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

	json_lit(j, ",\"clock\":{\"source\":");
	json_str(j, source, strlen(source));
	if (p->clock != SCOPE_CLOCK_MONOTONIC && p->session->clock.hz) {
		json_lit(j, ",\"tscHz\":");
		json_u64(j, p->session->clock.hz);
	}
	json_lit(j, ",\"realtimeOffset\":");
	json_us_signed(j, p->session->realtime.offset_ns);
	json_lit(j, ",\"realtimeError\":");
	json_us(j, p->session->realtime.error_ns);
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
	key(j, ",", "startTime");
	json_us(j, p->id.start_ns);
}

/* What this recording could use: for people, and for bug reports. */
static void put_features(struct json *j, const struct session *s)
{
	json_lit(j, ",\"features\":{\"maskAsked\":");
	json_u64(j, s->mask);
	json_lit(j, ",\"ringBytes\":");
	json_u64(j, s->ring_bytes);
	key_str(j, "sched", sched_mode_names[s->sched_mode]);
	if (s->sched_mode) {
		key(j, ",", "irq");
		json_bool(j, s->features.irq);
		key(j, ",", "throttled");
		json_bool(j, s->features.quota);
		key(j, ",", "blockedIn");
		json_bool(j, s->features.why);
		key(j, ",", "wokenBy");
		json_bool(j, s->features.woken);
	}
	if (s->net_mode) {
		key_str(j, "net", s->features.net_calls ? "sockets" : "functions");
		key(j, ",", "noData");
		json_bool(j, s->features.no_data);
		if (s->features.drops)
			key_str(j, "drops", s->features.drop_reasons ? "reasons" : "locations");
	}
	json_char(j, '}');
}

int header__write(struct proc *p)
{
	const struct session *s = p->session;
	size_t args_len, cgroup_len;
	const char *args = who__part(&p->who, WHO_ARGS, &args_len);
	const char *job = who__env(&p->who, "SLURM_JOB_ID");
	struct json j;
	int err = header__host(p->session);

	if (err)
		return err;
	who__part(&p->who, WHO_CGROUP, &cgroup_len);
	if (job && name_is_safe(job) && !p->job_id)
		p->job_id = strdup(job);
	if (!p->out.path)
		err = file_open(p);
	if (err)
		return err;
	/* Arguments and paths can take six bytes a byte when escaped, and a separator each. */
	j = out_line_begin(&p->out, 9 * args_len + 6 * (cgroup_len + 64 * WHO_VALUE_MAX) + 8192);
	if (!j.at)
		return -ENOMEM;
	json_lit(&j, "{\"recordType\":\"header\",\"schema\":1");
	key_str(&j, "tool", "ncclscope");
	key_str(&j, "version", NCCLSCOPE_VERSION);
	key_str(&j, "host", s->host.node);
	key_str(&j, "bootId", s->host.boot_id);
	key_str(&j, "kernel", s->host.release);
	key_str(&j, "arch", s->host.machine);
	put_ids(&j, p);
	put_cmdline(&j, args, args_len);
	put_cgroup(&j, &p->who);
	put_slurm(&j, &p->who);
	put_launcher(&j, &p->who);
	put_nccl(&j, p);
	key(&j, ",", "mask");
	json_u64(&j, p->mask);
	if (p->has_ceiling) {
		key(&j, ",", "maskCeiling");
		json_u64(&j, p->ceiling);
	}
	put_clock(&j, p);
	put_features(&j, s);
	json_char(&j, '}');
	out_line_end(&p->out, &j, OUT_HEADER, p->corr.now_ns);
	/* At once, and alone: a trace without a header is none. */
	err = out_file__flush(&p->out);
	out_file__shrink(&p->out);
	return err;
}
