// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/stat, /proc/pressure and cpu.stat; see node.h. A job can name cgroups: paths of them are walked
 * one component after the other and never leave the mount, and are not printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "clock.h"
#include "node.h"

#define TEXT_MAX   (4 << 20) /* of any file: /proc/stat of 8192 CPUs is a megabyte */
#define SMALL_TEXT 4096	     /* of a file in a cgroup */
#define NS_PER_US  1000

/* ---- Text -------------------------------------------------------------------------------------- */

/* In nanoseconds; what does not fit is no time that a machine can have spent. */
static bool take_scaled(struct text *s, uint64_t unit_ns, uint64_t *ns)
{
	return text__take(s, 10, ns) && !__builtin_mul_overflow(*ns, unit_ns, ns);
}

/* Whether `list` has `word` between its commas. */
static bool list_has(struct text list, const char *word)
{
	struct text item;

	while (text__word(&list, ',', &item))
		if (text__is(&item, word))
			return true;
	return false;
}

static bool word_copy(const struct text *word, char *buf, size_t size)
{
	size_t len = (size_t)(word->end - word->at);

	if (len >= size || memchr(word->at, 0, len))
		return false;
	memcpy(buf, word->at, len);
	buf[len] = 0;
	return true;
}

/* ---- /proc/stat -------------------------------------------------------------------------------- */

/* "cpu12 ..."; not "cpu  ...", which is the sum of all. */
static bool cpu_line(struct text *line, uint32_t *cpu)
{
	struct text word;
	uint64_t nr;

	if (!text__word(line, ' ', &word) || word.end - word.at < 4 || memcmp(word.at, "cpu", 3))
		return false;
	word.at += 3;
	if (!text__number(&word, 10, &nr) || nr >= NODE_CPUS_MAX)
		return false;
	*cpu = (uint32_t)nr;
	return true;
}

uint32_t node_parse_ncpus(const char *text, size_t len)
{
	struct text left = text_of(text, len), line;
	uint32_t cpu, n = 0;

	while (text__line(&left, &line))
		if (cpu_line(&line, &cpu) && cpu >= n)
			n = cpu + 1;
	return n;
}

static void parse_cpu(struct text line, uint64_t tick_ns, struct node_cpu *cpu)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, TIMES };
	uint64_t t[TIMES], busy = 0;
	int i;

	for (i = 0; i < TIMES; i++)
		if (!take_scaled(&line, tick_ns, &t[i]))
			return;
	for (i = 0; i < STEAL; i++)
		if (i != IDLE && i != IOWAIT && __builtin_add_overflow(busy, t[i], &busy))
			return;
	*cpu = (struct node_cpu){.known = true,
				 .busy = busy,
				 .irq = t[IRQ],
				 .softirq = t[SOFTIRQ],
				 .steal = t[STEAL]};
}

void node_parse_stat(const char *text, size_t len, uint64_t tick_ns, struct node_sample *s)
{
	struct text left = text_of(text, len), line, rest, word;
	uint32_t cpu;

	while (text__line(&left, &line)) {
		rest = line;
		if (cpu_line(&rest, &cpu)) {
			if (cpu < s->ncpus)
				parse_cpu(rest, tick_ns, &s->cpus[cpu]);
			continue;
		}
		rest = line;
		if (!text__word(&rest, ' ', &word))
			continue;
		if (text__is(&word, "procs_running"))
			s->has_running = text__take(&rest, 10, &s->procs_running);
		else if (text__is(&word, "procs_blocked"))
			s->has_blocked = text__take(&rest, 10, &s->procs_blocked);
	}
}

/* ---- Pressure ---------------------------------------------------------------------------------- */

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds. */
static bool parse_total(struct text line, uint64_t *ns)
{
	static const char key[] = "total=";
	const size_t len = sizeof(key) - 1;
	struct text word;

	while (text__word(&line, ' ', &word)) {
		if ((size_t)(word.end - word.at) <= len || memcmp(word.at, key, len))
			continue;
		word.at += len;
		return take_scaled(&word, NS_PER_US, ns);
	}
	return false;
}

void node_parse_psi(const char *text, size_t len, struct node_psi *psi)
{
	struct text left = text_of(text, len), line, word;

	*psi = (struct node_psi){0};
	while (text__line(&left, &line)) {
		if (!text__word(&line, ' ', &word))
			continue;
		if (text__is(&word, "some"))
			psi->has_some = parse_total(line, &psi->some);
		else if (text__is(&word, "full"))
			psi->has_full = parse_total(line, &psi->full);
	}
}

/* ---- Samples ----------------------------------------------------------------------------------- */

struct node_sample *node_sample__get(struct node_sample *s)
{
	if (s)
		s->refs++;
	return s;
}

void node_sample__put(struct node_sample *s)
{
	if (s && !--s->refs)
		free(s);
}

const struct node_cpu *node_sample__cpu(const struct node_sample *s, uint32_t cpu)
{
	return s && cpu < s->ncpus && s->cpus[cpu].known ? &s->cpus[cpu] : NULL;
}

void node__init(struct node_sampler *n, const char *root)
{
	*n = (struct node_sampler){.root = root, .tick_ns = (uint64_t)proc_tick_ns()};
}

int node__sample(struct node_sampler *n)
{
	static const char *const psi_files[NODE_PSI_CNT] = {
		[NODE_PSI_CPU] = "/proc/pressure/cpu",
		[NODE_PSI_MEMORY] = "/proc/pressure/memory",
		[NODE_PSI_IO] = "/proc/pressure/io",
	};
	/* The kernel makes the text when the first byte is read. */
	uint64_t now_ns = monotonic_ns();
	struct node_sample *s;
	uint32_t ncpus;
	int i;

	if (text_file__read(&n->text, n->root, "/proc/stat", TEXT_MAX))
		n->text.len = 0;
	ncpus = node_parse_ncpus(n->text.at, n->text.len);
	s = calloc(1, sizeof(*s) + ncpus * sizeof(s->cpus[0]));
	if (!s)
		return -ENOMEM;
	s->refs = 1;
	s->now_ns = now_ns;
	s->ncpus = ncpus;
	node_parse_stat(n->text.at, n->text.len, n->tick_ns, s);
	for (i = 0; i < NODE_PSI_CNT; i++)
		if (!text_file__read(&n->text, n->root, psi_files[i], TEXT_MAX))
			node_parse_psi(n->text.at, n->text.len, &s->psi[i]);
	node_sample__put(n->last);
	n->last = s;
	return 0;
}

void node__free(struct node_sampler *n)
{
	node_sample__put(n->last);
	n->last = NULL;
	text_file__free(&n->text);
}

/* ---- The cgroup of a process ------------------------------------------------------------------- */

bool node_parse_quota(const char *text, size_t len, struct node_quota *quota)
{
	struct text left = text_of(text, len), line, word;
	bool periods = false, throttled = false, time = false;

	while (text__line(&left, &line)) {
		if (!text__word(&line, ' ', &word))
			continue;
		if (text__is(&word, "nr_periods"))
			periods = text__take(&line, 10, &quota->periods);
		else if (text__is(&word, "nr_throttled"))
			throttled = text__take(&line, 10, &quota->throttled_periods);
		else if (text__is(&word, "throttled_usec")) /* v2 */
			time = take_scaled(&line, NS_PER_US, &quota->throttled);
		else if (text__is(&word, "throttled_time")) /* v1 */
			time = text__take(&line, 10, &quota->throttled);
	}
	return periods && throttled && time;
}

/* "max 100000" or "-1" where there is none. */
bool node_parse_limit(const char *text, size_t len)
{
	struct text left = text_of(text, len), line;
	uint64_t us;

	return text__line(&left, &line) && text__take(&line, 10, &us);
}

/* "4:cpu,cpuacct:/path" is v1, "0::/path" v2; a controller is in one of them only. */
bool node_parse_cgroup(const char *text, size_t len, char *path, size_t size, bool *v2)
{
	struct text left = text_of(text, len), line, controllers;
	const char *first, *second;
	bool found = false;

	while (text__line(&left, &line)) {
		first = memchr(line.at, ':', (size_t)(line.end - line.at));
		if (!first++)
			continue;
		second = memchr(first, ':', (size_t)(line.end - first));
		if (!second)
			continue;
		controllers = (struct text){first, second};
		line.at = second + 1;
		if (first == second && !found) {
			found = word_copy(&line, path, size);
			*v2 = true;
		} else if (list_has(controllers, "cpu")) {
			*v2 = false;
			return word_copy(&line, path, size);
		}
	}
	return found;
}

/* Octal escapes stand for the space, tab, newline and backslash of a path. */
static bool word_unescape(const struct text *word, char *buf, size_t size)
{
	const char *p = word->at;
	size_t n = 0;

	while (p < word->end) {
		if (n + 1 >= size || !*p)
			return false;
		if (*p == '\\' && word->end - p >= 4 && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' &&
		    p[2] <= '7' && p[3] >= '0' && p[3] <= '7') {
			buf[n++] = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 4;
		} else {
			buf[n++] = *p++;
		}
	}
	buf[n] = 0;
	return n > 0 && strlen(buf) == n;
}

/* "0:27" */
static bool parse_dev(struct text word, unsigned int *major, unsigned int *minor)
{
	uint64_t a, b;
	struct text part;

	if (!text__word(&word, ':', &part) || !text__number(&part, 10, &a) ||
	    !text__number(&word, 10, &b) || a > UINT_MAX || b > UINT_MAX)
		return false;
	*major = (unsigned int)a;
	*minor = (unsigned int)b;
	return true;
}

/* "41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw,nsdelegate" */
bool node_parse_mount(const char *text, size_t len, struct node_mount *m)
{
	struct text line = text_of(text, len), word, root, point;

	/* NOLINTNEXTLINE(misc-redundant-expression): each takes a word more */
	if (!text__word(&line, ' ', &word) || !text__word(&line, ' ', &word) ||
	    !text__word(&line, ' ', &word) || !parse_dev(word, &m->major, &m->minor) ||
	    !text__word(&line, ' ', &root) || !text__word(&line, ' ', &point))
		return false;
	while (text__word(&line, ' ', &word) && !text__is(&word, "-"))
		;
	if (!text__word(&line, ' ', &word))
		return false;
	m->v2 = text__is(&word, "cgroup2");
	if (!m->v2 && (!text__is(&word, "cgroup") || !text__word(&line, ' ', &word) ||
		       !text__word(&line, ' ', &word) || !list_has(word, "cpu")))
		return false;
	return word_unescape(&root, m->root, sizeof(m->root)) &&
	       word_unescape(&point, m->point, sizeof(m->point));
}

/* What of `path` lies below the mount; NULL where it is not below it. */
static const char *path_below(const struct node_mount *m, const char *path)
{
	size_t len = strlen(m->root);

	if (!strcmp(m->root, "/"))
		return path;
	return !strncmp(path, m->root, len) && (!path[len] || path[len] == '/') ? path + len : NULL;
}

/* A file in a cgroup, from its beginning; its length or -errno. */
static ssize_t small_read(int fd, char buf[SMALL_TEXT])
{
	ssize_t n = pread(fd, buf, SMALL_TEXT, 0);

	return n < 0 ? -errno : n;
}

/* Opens a file in the folder `dir` and reads it; the descriptor or -errno. */
static int small_open(int dir, const char *name, char buf[SMALL_TEXT], ssize_t *len)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*len = small_read(fd, buf);
	if (*len >= 0)
		return fd;
	close(fd);
	return (int)*len;
}

/* Takes the cgroup in the folder `dir` if it is a better one than what was found above it. */
static void consider(struct node_cgroup *c, int dir)
{
	const char *limit = c->v2 ? "cpu.max" : "cpu.cfs_quota_us";
	struct node_quota quota;
	bool limited = false;
	char buf[SMALL_TEXT];
	ssize_t len = 0;
	int fd, stat;

	stat = small_open(dir, "cpu.stat", buf, &len);
	if (stat >= 0 && !node_parse_quota(buf, (size_t)len, &quota)) {
		close(stat);
		stat = -ENODATA;
	}
	if (stat < 0)
		return;
	fd = small_open(dir, limit, buf, &len);
	if (fd >= 0) {
		limited = node_parse_limit(buf, (size_t)len);
		close(fd);
	}
	if (c->limited && !limited) {
		c->own = false;
		close(stat);
		return;
	}
	node_cgroup__close(c);
	c->fd = stat;
	c->found = c->own = true;
	c->limited = limited;
}

/* In v2 the controller has to be handed down as far as to what is mounted here. */
static bool has_cpu(int dir)
{
	struct text text, item;
	char buf[SMALL_TEXT];
	ssize_t len = 0;
	int fd = small_open(dir, "cgroup.controllers", buf, &len);

	if (fd < 0)
		return false;
	close(fd);
	text = text_of(buf, (size_t)len);
	if (len && buf[len - 1] == '\n')
		text.end--;
	while (text__word(&text, ' ', &item))
		if (text__is(&item, "cpu"))
			return true;
	return false;
}

/* From the folder `dir`, which it closes, down along `path`: no "..", no links, so never out of it. */
static int walk(struct node_cgroup *c, int dir, const char *path)
{
	struct text left = text_of(path, strlen(path)), word;
	char name[NAME_MAX + 1];
	int next, err = 0;

	consider(c, dir);
	while (!err && text__word(&left, '/', &word)) {
		if (text__is(&word, ".") || text__is(&word, "..") ||
		    !word_copy(&word, name, sizeof(name))) {
			err = -ENOENT;
			break;
		}
		next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0) {
			err = -errno;
			break;
		}
		close(dir);
		dir = next;
		consider(c, dir);
	}
	close(dir);
	if (err)
		node_cgroup__close(c);
	return err ? err : c->found ? 0 : -ENODATA;
}

/* The folder where a cgroup hierarchy is mounted, unless something else lies over it. */
static int mount_open(const char *root, const struct node_mount *m)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (snprintf(path, sizeof(path), "%s%s", root, m->point) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_dev == makedev(m->major, m->minor) && (!m->v2 || has_cpu(fd)))
		return fd;
	close(fd);
	return -ENOENT;
}

static int find_below_mounts(struct node_cgroup *c, const char *root, const char *path,
			     const struct text_file *mounts)
{
	struct text left = text_of(mounts->at, mounts->len), line;
	struct node_mount m;
	int fd, err = -ENOENT;
	const char *below;

	while (err && err != -ENODATA && text__line(&left, &line)) {
		if (!node_parse_mount(line.at, (size_t)(line.end - line.at), &m) || m.v2 != c->v2)
			continue;
		below = path_below(&m, path);
		fd = below ? mount_open(root, &m) : -ENOENT;
		if (fd >= 0)
			err = walk(c, fd, below);
	}
	return err;
}

int node_cgroup__find(struct node_cgroup *c, const char *root, pid_t pid)
{
	char name[64] = "/proc/self/cgroup", path[PATH_MAX];
	struct text_file text = {0};
	int err;

	*c = (struct node_cgroup){0};
	if (pid)
		snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
	err = text_file__read(&text, root, name, TEXT_MAX);
	if (!err && !node_parse_cgroup(text.at, text.len, path, sizeof(path), &c->v2))
		err = -ENOENT;
	if (!err)
		err = text_file__read(&text, root, "/proc/self/mountinfo", TEXT_MAX);
	if (!err)
		err = find_below_mounts(c, root, path, &text);
	text_file__free(&text);
	return err;
}

int node_cgroup__read(const struct node_cgroup *c, struct node_quota *quota)
{
	char buf[SMALL_TEXT];
	ssize_t len;

	if (!c->found)
		return -ENOENT;
	len = small_read(c->fd, buf);
	if (len < 0)
		return (int)len;
	return node_parse_quota(buf, (size_t)len, quota) ? 0 : -ENODATA;
}

void node_cgroup__close(struct node_cgroup *c)
{
	if (c->found)
		close(c->fd);
	c->found = c->limited = c->own = false;
}
