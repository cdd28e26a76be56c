// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters of RDMA ports; see rdma.h. What a port counted is kept as sums of what we saw it move,
 * so that a delta is a difference of two rows, and resets, wraps and gaps were dealt with when they
 * happened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "clock.h"
#include "rdma.h"

#define KEEP_NS                                                                                    \
	(2 * RDMA_SCAN_NS)	/* a device is read for so long after the look that found it open */
#define CACHE_NS    10000000ULL /* a jiffy: a driver's cache lives on to the end of one */
#define MAX_AGE_MS  10000	/* the kernel's own limit */
#define HISTORY_NS  (RDMA_ROWS * RDMA_PERIOD_NS)
#define VALUE_BYTES 32 /* of a counter's file; a number and its newline have 21 */
#define CAP_STEP    32 /* counters that there is memory for at a time */

/* A 32-bit counter that was above the one and is below the other has come round. */
#define WRAP_FROM 0xf0000000ULL
#define WRAP_TO	  0x10000000ULL

/* ---- Names and numbers ------------------------------------------------------------------------- */

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

static bool is_name_of(const char *name, const char *chars)
{
	size_t n = strspn(name, chars);

	return n && n < RDMA_NAME_MAX && !name[n] && name[0] != '.';
}

bool rdma_name_ok(const char *name)
{
	return is_name_of(name, NAME_CHARS);
}

bool rdma_counter_name_ok(const char *name)
{
	return is_name_of(name, NAME_CHARS " ") && name[0] != ' ' && name[strlen(name) - 1] != ' ';
}

bool rdma_is_counter(const char *name)
{
	/* for how many ms the driver gives the same answer; bnxt_re: objects in use, a register */
	return strcmp(name, "lifespan") && strncmp(name, "active_", 7) &&
	       strncmp(name, "watermark_", 10) && strcmp(name, "db_fifo_register");
}

static void set_name(char to[RDMA_NAME_MAX], const char *name)
{
	memccpy(to, name, 0, RDMA_NAME_MAX - 1);
	to[RDMA_NAME_MAX - 1] = 0;
}

/*
 * The number at the beginning of `text`; where it ends, or NULL where there is none or it is
 * too large.
 */
static const char *take_number(const char *text, const char *end, uint64_t *value)
{
	const char *p;
	uint64_t v = 0;

	for (p = text; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return NULL;
	*value = v;
	return p > text ? p : NULL;
}

uint64_t rdma_parse(const char *text, size_t len)
{
	const char *end = text + len, *p;
	uint64_t v = 0;

	p = take_number(text, end, &v);
	if (p && p < end && *p == '\n')
		p++;
	return p == end ? v : RDMA_UNKNOWN;
}

/* "1", "12"; not "01" nor "1x", whose number would be that of another file. */
static bool name_number(const char *name, uint32_t max, uint32_t *nr)
{
	const char *end = name + strlen(name);
	uint64_t v = 0;

	if (take_number(name, end, &v) != end || v > max || (name[0] == '0' && name[1]))
		return false;
	*nr = (uint32_t)v;
	return true;
}

/*
 * Counters of `counters` stop at their highest value, as InfiniBand has it: one that goes back was
 * reset, and counts from 0. Those of `hw_counters` are drivers' own, and some are 32 bits wide and
 * wrap.
 */
uint64_t rdma_moved(uint64_t was, uint64_t now, bool hw)
{
	if (now >= was)
		return now - was;
	if (hw && was >= WRAP_FROM && was <= UINT32_MAX && now < WRAP_TO)
		return now + (UINT32_MAX - was) + 1;
	return now;
}

/* ---- One port: readings in, deltas out --------------------------------------------------------- */

const char *rdma_counter__name(const struct rdma_counter *c)
{
	return c->label + 3;
}

static struct rdma_row *row_at(const struct rdma_port *p, uint64_t n)
{
	size_t size = sizeof(struct rdma_row) + p->cap * sizeof(uint64_t);

	return (struct rdma_row *)(p->rows + n % p->rows_max * size);
}

struct rdma_port *rdma_port__new(const char *device, uint32_t nr)
{
	struct rdma_port *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	set_name(p->device, device);
	p->nr = nr;
	return p;
}

/*
 * Nothing in it is being read any more; what it counted stays. It goes on counting from its
 * next reading.
 */
static void port_close(struct rdma_port *p)
{
	struct rdma_counter *c;
	uint32_t i;

	for (i = 0; i < p->ncounters; i++) {
		c = &p->counters[i];
		if (c->fd >= 0)
			close(c->fd);
		c->fd = -1;
		c->known = false;
	}
}

void rdma_port__free(struct rdma_port *p)
{
	if (!p)
		return;
	port_close(p);
	free(p->counters);
	free(p->rows);
	free(p);
}

/*
 * Makes room for more counters, in every row as well; old rows have 0 for them, which is their
 * sum so far.
 */
static int port_grow(struct rdma_port *p)
{
	struct rdma_port new = *p;
	uint64_t n;

	new.cap = p->cap + CAP_STEP;
	if (new.cap > RDMA_COUNTERS_MAX)
		return -ENOSPC;
	new.counters = realloc(p->counters, new.cap * sizeof(*p->counters));
	if (!new.counters)
		return -ENOMEM;
	p->counters = new.counters;

	new.rows_max = RDMA_ROW_BYTES / (sizeof(struct rdma_row) + new.cap * sizeof(uint64_t));
	if (new.rows_max > RDMA_ROWS)
		new.rows_max = RDMA_ROWS;
	new.rows = calloc(new.rows_max, sizeof(struct rdma_row) + new.cap * sizeof(uint64_t));
	if (!new.rows)
		return -ENOMEM;
	if (p->nrows - p->oldest > new.rows_max)
		new.oldest = p->nrows - new.rows_max;
	for (n = new.oldest; n < p->nrows; n++)
		memcpy(row_at(&new, n), row_at(p, n),
		       sizeof(struct rdma_row) + p->ncounters * sizeof(uint64_t));
	free(p->rows);
	*p = new;
	return 0;
}

struct rdma_counter *rdma_port__counter(struct rdma_port *p, const char *name, bool hw)
{
	struct rdma_counter *c, *twin = NULL;
	uint32_t i;

	for (i = 0; i < p->ncounters; i++) {
		c = &p->counters[i];
		if (strcmp(rdma_counter__name(c), name))
			continue;
		if (c->hw == hw)
			return c;
		twin = c;
	}
	if (p->ncounters == p->cap) {
		if (port_grow(p))
			return NULL;
		return rdma_port__counter(p, name, hw); /* they have moved */
	}
	c = &p->counters[p->ncounters++];
	*c = (struct rdma_counter){.hw = hw, .fd = -1, .twin = twin && hw};
	if (twin && !hw)
		twin->twin = true;
	snprintf(c->label, sizeof(c->label), "hw_%s", name);
	return c;
}

void rdma_counter__take(struct rdma_counter *c, struct rdma_port *p, uint64_t reading)
{
	uint64_t moved;

	if (reading == RDMA_UNKNOWN)
		return;
	moved = c->known ? rdma_moved(c->raw, reading, c->hw) : 0;
	c->known = true;
	c->raw = reading;
	c->total += moved;
	p->moves += moved > 0;
}

int rdma_port__row(struct rdma_port *p, uint64_t begin_ns, uint64_t end_ns)
{
	struct rdma_row *row;
	uint32_t i;

	if (!p->cap && port_grow(p))
		return -ENOMEM;
	begin_ns -= p->age_ns < begin_ns ? p->age_ns : begin_ns;
	if (p->nrows > p->oldest && begin_ns < row_at(p, p->nrows - 1)->begin_ns)
		begin_ns = row_at(p, p->nrows - 1)->begin_ns; /* age has grown */
	row = row_at(p, p->nrows);
	*row = (struct rdma_row){.begin_ns = begin_ns, .end_ns = end_ns, .moves = p->moves};
	for (i = 0; i < p->ncounters; i++)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): port_grow() frees no rows in use */
		row->total[i] = p->counters[i].total;
	p->row_ns = end_ns;
	if (++p->nrows - p->oldest > p->rows_max)
		p->oldest++;
	return 0;
}

const struct rdma_row *rdma_port__last(const struct rdma_port *p)
{
	return row_at(p, p->nrows - 1);
}

/* The last row that was read before `ns`, or the oldest. There are rows. */
static const struct rdma_row *row_before(const struct rdma_port *p, uint64_t ns)
{
	uint64_t low = p->oldest, high = p->nrows, mid;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (row_at(p, mid)->end_ns <= ns)
			low = mid;
		else
			high = mid;
	}
	return row_at(p, low);
}

/* The first row that tells of all up to `ns`, or the newest. There are rows. */
static const struct rdma_row *row_after(const struct rdma_port *p, uint64_t ns)
{
	uint64_t low = p->oldest, high = p->nrows - 1, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (row_at(p, mid)->begin_ns >= ns)
			high = mid;
		else
			low = mid + 1;
	}
	return row_at(p, low);
}

uint32_t rdma_port__deltas(const struct rdma_port *p, uint64_t from_ns, uint64_t to_ns,
			   rdma_emit emit, void *arg)
{
	const struct rdma_row *from, *to;
	const struct rdma_counter *c;
	struct rdma_delta d;
	uint32_t i, next, n = 0;

	if (p->nrows == p->oldest)
		return 0;
	from = row_before(p, from_ns);
	to = row_after(p, to_ns);
	if (to->moves <= from->moves)
		return 0;
	d = (struct rdma_delta){.device = p->device,
				.port = p->nr,
				.from_ns = from->begin_ns,
				.to_ns = to->end_ns,
				.first = true};
	for (i = 0; i < p->ncounters && to->total[i] == from->total[i]; i++)
		;
	for (; i < p->ncounters; i = next, d.first = false, n++) {
		for (next = i + 1; next < p->ncounters && to->total[next] == from->total[next];
		     next++)
			;
		c = &p->counters[i];
		d.counter = c->twin ? c->label : rdma_counter__name(c);
		d.n = to->total[i] - from->total[i];
		d.last = next == p->ncounters;
		emit(arg, &d);
	}
	return n;
}

/* ---- Files ------------------------------------------------------------------------------------- */

int rdma__init(struct rdma *r, const char *root)
{
	*r = (struct rdma){.root_fd = -1, .clock = monotonic_ns, .share = 1};
	r->root = root[0] ? realpath(root, NULL) : strdup("");
	if (!r->root)
		return -errno;
	if (!strcmp(r->root, "/"))
		r->root[0] = 0;
	if (!r->root[0])
		return 0;
	r->root_fd = open(r->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return r->root_fd < 0 ? -errno : 0;
}

void rdma__free(struct rdma *r)
{
	while (r->nports)
		rdma_port__free(r->ports[--r->nports]);
	if (r->root && r->root_fd >= 0)
		close(r->root_fd);
	free(r->root);
	r->root = NULL;
}

/*
 * A path from the root on, without its slash. sysfs is full of links, and they are the kernel's;
 * those of another tree must not lead out of it.
 */
static int open_path(const struct rdma *r, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	char full[PATH_MAX];
	long fd;

	if (!r->root[0]) {
		snprintf(full, sizeof(full), "/%s", path);
		fd = open(full, (int)how.flags);
	} else {
		fd = syscall(SYS_openat2, r->root_fd, path, &how, sizeof(how));
	}
	return fd < 0 ? -errno : (int)fd;
}

/*
 * Reads a small file into buf, which is a string then, without the newline at its end; its
 * length or -errno.
 */
static ssize_t read_text(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size - 1, 0);

	if (n < 0)
		return -errno;
	if (n && buf[n - 1] == '\n')
		n--;
	buf[n] = 0;
	return n;
}

static ssize_t read_path(const struct rdma *r, const char *path, char *buf, size_t size)
{
	int fd = open_path(r, path, O_RDONLY | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read_text(fd, buf, size);
	close(fd);
	return n;
}

/* The list of a folder, NULL for a folder that could not be opened; closes it in the end. */
static DIR *list(int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

static bool is_regular(const struct dirent *e)
{
	return e->d_type == DT_REG || e->d_type == DT_UNKNOWN;
}

/* ---- What is there to be read ------------------------------------------------------------------ */

/* Of a file that is gone the descriptor may still tell the last value. */
static void counter_check(struct rdma_counter *c)
{
	struct stat st;

	if (c->fd < 0 || (!c->failed && !fstat(c->fd, &st) && st.st_nlink))
		return;
	close(c->fd);
	c->fd = -1;
}

static void counter_open(struct rdma_counter *c, int dir)
{
	struct stat st;

	c->fd = openat(dir, rdma_counter__name(c), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	c->failed = false;
	if (c->fd < 0 || (!fstat(c->fd, &st) && S_ISREG(st.st_mode)))
		return;
	close(c->fd);
	c->fd = -1;
}

static void scan_age(struct rdma_port *p, int dir)
{
	char text[VALUE_BYTES];
	uint64_t ms = RDMA_UNKNOWN;
	ssize_t n;
	int fd = openat(dir, "lifespan", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0) {
		n = read_text(fd, text, sizeof(text));
		ms = n >= 0 ? rdma_parse(text, (size_t)n) : RDMA_UNKNOWN;
		close(fd);
	}
	p->age_ns = ms && ms <= MAX_AGE_MS ? ms * 1000000 + CACHE_NS : 0;
}

/* Opens what the folder `name` of the port has. Those that are open already stay so. */
static void scan_counters(struct rdma *r, struct rdma_port *p, int port, const char *name, bool hw)
{
	int fd = openat(port, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = list(fd);
	struct rdma_counter *c;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!is_regular(e) || !rdma_counter_name_ok(e->d_name) ||
		    !rdma_is_counter(e->d_name))
			continue;
		c = rdma_port__counter(p, e->d_name, hw);
		if (!c) {
			r->cut = true;
			continue;
		}
		counter_check(c);
		if (c->fd < 0 && r->files_left)
			counter_open(c, fd);
		else if (c->fd < 0)
			r->cut = true;
		r->files_left -= c->fd >= 0 && r->files_left;
	}
	if (d && hw)
		scan_age(p, fd);
	if (d)
		closedir(d);
}

static struct rdma_port *port_get(struct rdma *r, uint32_t place, uint32_t nr)
{
	const char *device = r->devices[place].name;
	struct rdma_port *p = NULL;
	uint32_t i;

	for (i = 0; i < r->nports && !p; i++)
		if (r->ports[i]->nr == nr && !strcmp(r->ports[i]->device, device))
			p = r->ports[i];
	if (!p && r->nports < RDMA_PORTS_MAX) {
		p = rdma_port__new(device, nr);
		if (p)
			r->ports[r->nports++] = p;
	}
	if (p)
		p->place = place;
	else
		r->cut = true;
	return p;
}

static void scan_device(struct rdma *r, uint32_t place)
{
	char path[PATH_MAX];
	struct rdma_port *p;
	struct dirent *e;
	uint32_t nr;
	int port;
	DIR *d;

	snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports", r->devices[place].name);
	d = list(open_path(r, path, O_RDONLY | O_DIRECTORY));
	while (d && (e = readdir(d))) {
		if (!name_number(e->d_name, UINT32_MAX, &nr))
			continue;
		port = openat(dirfd(d), e->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (port < 0)
			continue;
		p = port_get(r, place, nr);
		if (p) {
			p->seen = true;
			scan_counters(r, p, port, "counters", false);
			scan_counters(r, p, port, "hw_counters", true);
		}
		close(port);
	}
	if (d)
		closedir(d);
}

/*
 * What is not in use, or not there, is not read any more; and forgotten when no event can ask
 * for it.
 */
static void scan_end(struct rdma *r, uint64_t now_ns)
{
	struct rdma_port *p;
	uint32_t i, kept = 0;

	for (i = 0; i < r->nports; i++) {
		p = r->ports[i];
		if (!p->seen)
			port_close(p);
		if (p->seen || now_ns < p->row_ns + HISTORY_NS)
			r->ports[kept++] = p;
		else
			rdma_port__free(p);
	}
	r->nports = kept;
}

static void scan(struct rdma *r, uint64_t now_ns)
{
	struct rlimit files;
	uint32_t i;

	/* The rest is for who else is in this process, and for folders. */
	r->files_left = getrlimit(RLIMIT_NOFILE, &files) ? 0 : files.rlim_cur / 2 / r->share;
	for (i = 0; i < r->nports; i++)
		r->ports[i]->seen = false;
	for (i = 0; i < RDMA_DEVICES_MAX; i++)
		if (r->devices[i].name[0] && now_ns < r->devices[i].until_ns)
			scan_device(r, i);
	scan_end(r, now_ns);
}

/* ---- Samples ----------------------------------------------------------------------------------- */

/* False where none of its files is open. */
static bool port_sample(struct rdma *r, struct rdma_port *p)
{
	uint64_t begin_ns = r->clock();
	struct rdma_counter *c;
	char text[VALUE_BYTES];
	uint64_t value;
	bool any = false;
	ssize_t n;

	for (c = p->counters; c < p->counters + p->ncounters; c++) {
		if (c->fd < 0 || c->failed)
			continue;
		any = true;
		n = pread(c->fd, text, sizeof(text), 0);
		if (!n) /* somebody is writing it, in a tree that is not the kernel's */
			continue;
		value = n > 0 ? rdma_parse(text, (size_t)n) : RDMA_UNKNOWN;
		c->failed = value == RDMA_UNKNOWN;
		rdma_counter__take(c, p, value);
	}
	return any && !rdma_port__row(p, begin_ns, r->clock());
}

/*
 * When to do again what took from begin to end, and was due at `due`: never more than one part
 * in `cost` of the time.
 */
static uint64_t next_time(uint64_t due, uint64_t period_ns, uint32_t cost, uint64_t begin_ns,
			  uint64_t end_ns)
{
	uint64_t rest_ns = end_ns + (cost - 1) * (end_ns - begin_ns);

	due += period_ns;
	if (due <= begin_ns)
		due = begin_ns + period_ns;
	return due > rest_ns ? due : rest_ns;
}

bool rdma__sample(struct rdma *r)
{
	uint64_t begin_ns = r->clock(), end_ns;
	bool any = false;
	uint32_t i;

	if (begin_ns < r->next_ns)
		return false;
	if (begin_ns >= r->next_scan_ns) {
		scan(r, begin_ns);
		r->next_scan_ns = begin_ns + RDMA_SCAN_NS;
	}
	for (i = 0; i < r->nports; i++)
		any |= port_sample(r, r->ports[i]);
	end_ns = r->clock();
	r->next_ns = next_time(r->next_ns, RDMA_PERIOD_NS, RDMA_COST * r->share, begin_ns, end_ns);
	if (r->next_ns > end_ns + RDMA_REST_NS)
		r->next_ns = end_ns + RDMA_REST_NS;
	r->samples += any;
	r->cost_ns += end_ns - begin_ns;
	if (end_ns - begin_ns > r->max_cost_ns)
		r->max_cost_ns = end_ns - begin_ns;
	return any;
}

/* ---- Who uses what ----------------------------------------------------------------------------- */

/*
 * The place of a device in the table; -ENOSPC. One that nobody has had for as long as we
 * remember is free, but given away last: who had it open keeps the number.
 */
static int device_get(struct rdma *r, const char *name, uint64_t now_ns)
{
	int i, room = -ENOSPC, old = -ENOSPC;

	for (i = 0; i < RDMA_DEVICES_MAX; i++) {
		if (!strcmp(r->devices[i].name, name))
			return i;
		if (room < 0 && !r->devices[i].name[0])
			room = i;
		if (old < 0 && now_ns > r->devices[i].until_ns + HISTORY_NS)
			old = i;
	}
	if (room < 0)
		room = old;
	if (room < 0) {
		r->cut = true;
		return room;
	}
	r->devices[room] = (struct rdma_device){.until_ns = now_ns};
	set_name(r->devices[room].name, name);
	return room;
}

/* Is descriptor `fd` the device of that number? Somebody's file may have its name. */
static bool is_device(const struct rdma *r, int fds, const char *fd, uint32_t nr)
{
	char path[64], text[32], want[32];
	struct statx st;

	if (r->root[0]) /* has no devices */
		return true;
	/*
	 * As the descriptor knows it: asking the server of a network filesystem could take for
	 * ever.
	 */
	if (statx(fds, fd, AT_STATX_DONT_SYNC, STATX_TYPE, &st) || !S_ISCHR(st.stx_mode))
		return false;
	snprintf(path, sizeof(path), "sys/class/infiniband_verbs/uverbs%u/dev", nr);
	snprintf(want, sizeof(want), "%u:%u", st.stx_rdev_major, st.stx_rdev_minor);
	return read_path(r, path, text, sizeof(text)) > 0 && !strcmp(text, want);
}

/*
 * Is it a link to ROOT/dev/infiniband/uverbsN? In a container the path may begin with anything;
 * there the number of the device tells.
 */
static bool uverbs_link(const struct rdma *r, const char *link, uint32_t *nr)
{
	static const char tail[] = "/dev/infiniband/uverbs";
	size_t root_len = strlen(r->root);
	const char *at = NULL, *p;

	if (root_len) {
		if (!strncmp(link, r->root, root_len))
			at = link + root_len;
		if (!at || strncmp(at, tail, sizeof(tail) - 1))
			return false;
	} else {
		for (p = link; (p = strstr(p, tail)); p++)
			at = p;
	}
	return at && name_number(at + sizeof(tail) - 1, 1 << 20, nr);
}

/*
 * Verbs of all devices are in each network namespace; where each device has a namespace of its own ("rdma system"), the device itself
 * is in that one's sysfs alone.
 */
static bool is_elsewhere(const struct rdma *r, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "sys/class/infiniband/%s", name);
	fd = open_path(r, path, O_PATH);
	if (fd >= 0)
		close(fd);
	return fd == -ENOENT;
}

/* What descriptor `fd` of a process is, as a set of one device or none. */
static uint64_t device_of(struct rdma *r, int fds, const char *fd, uint64_t now_ns)
{
	char link[PATH_MAX], path[64], name[RDMA_NAME_MAX + 1];
	ssize_t n = readlinkat(fds, fd, link, sizeof(link) - 1);
	uint32_t nr;
	int i;

	if (n <= 0)
		return 0;
	link[n] = 0;
	if (!uverbs_link(r, link, &nr) || !is_device(r, fds, fd, nr))
		return 0;
	snprintf(path, sizeof(path), "sys/class/infiniband_verbs/uverbs%u/ibdev", nr);
	if (read_path(r, path, name, sizeof(name)) < 0 || !rdma_name_ok(name))
		return 0;
	i = device_get(r, name, now_ns);
	if (i < 0)
		return 0;
	r->devices[i].elsewhere = is_elsewhere(r, name);
	return 1ULL << i;
}

/* Devices that somebody has open are read from now on, for a while. */
static void keep(struct rdma *r, uint64_t devices, uint64_t now_ns, uint64_t until_ns)
{
	struct rdma_device *dev;

	for (; devices; devices &= devices - 1) {
		dev = &r->devices[__builtin_ctzll(devices)];
		if (dev->until_ns <= now_ns)
			r->next_scan_ns = 0; /* not read until now */
		if (dev->until_ns < until_ns)
			dev->until_ns = until_ns;
	}
}

/* Most nodes have none. It comes with the driver, at any time. */
static bool has_class(struct rdma *r, uint64_t now_ns)
{
	int fd;

	if (now_ns < r->class_ns)
		return r->has_class;
	r->class_ns = now_ns + RDMA_SCAN_NS;
	fd = open_path(r, "sys/class/infiniband_verbs", O_PATH | O_DIRECTORY);
	r->has_class = fd >= 0;
	if (fd >= 0)
		close(fd);
	return r->has_class;
}

/* So many of its descriptors from where the last look stopped, whose position is a number of theirs. 0 or -errno. */
static int look_go(struct rdma *r, struct rdma_user *user, pid_t pid, uint64_t now_ns)
{
	struct dirent *e = NULL;
	char path[64];
	uint32_t nr;
	int i;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d)
		return -errno;
	if (user->at)
		seekdir(d, user->at);
	for (i = 0; i < RDMA_LOOK_FDS && (e = readdir(d)); i++)
		if (name_number(e->d_name, INT_MAX, &nr))
			user->found |= device_of(r, dirfd(d), e->d_name, now_ns);
	user->at = e ? telldir(d) : 0;
	closedir(d);
	return 0;
}

/* All looks together: RDMA_TURN_NS at once, where there were none for a while. */
static void look_pay(struct rdma *r, uint64_t begin_ns, uint64_t end_ns)
{
	if (r->look_ns + RDMA_COST * RDMA_TURN_NS < begin_ns)
		r->look_ns = begin_ns - RDMA_COST * RDMA_TURN_NS;
	r->look_ns += RDMA_COST * (end_ns - begin_ns);
}

int rdma__look(struct rdma *r, struct rdma_user *user, pid_t pid)
{
	uint64_t now_ns = r->clock(), end_ns, until_ns;
	int err;

	if (now_ns < user->next_ns || !has_class(r, now_ns))
		return 0;
	if (now_ns < r->look_ns)
		return -EAGAIN;
	if (!user->at) {
		user->begin_ns = now_ns;
		user->took_ns = user->found = 0;
	}
	err = look_go(r, user, pid, now_ns);
	end_ns = r->clock();
	look_pay(r, now_ns, end_ns);
	user->took_ns += end_ns - now_ns;
	if (err)
		user->at = 0;
	if (!user->at)
		user->next_ns = next_time(now_ns, RDMA_SCAN_NS, RDMA_LOOK_COST,
					  end_ns - user->took_ns, end_ns);
	user->devices |= user->found;
	/* The next look may come to them as late as this one has. */
	until_ns = (user->at ? now_ns : user->next_ns) + (now_ns - user->begin_ns) + KEEP_NS;
	keep(r, user->found, now_ns, until_ns);
	return err;
}

/* By its name as well: the place may have been given to another since. */
static bool is_among(const struct rdma *r, const struct rdma_port *p, uint64_t devices)
{
	return devices >> p->place & 1 && !strcmp(r->devices[p->place].name, p->device);
}

uint32_t rdma__deltas(const struct rdma *r, uint64_t devices, uint64_t from_ns, uint64_t to_ns,
		      rdma_emit emit, void *arg)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->nports; i++)
		if (is_among(r, r->ports[i], devices))
			n += rdma_port__deltas(r->ports[i], from_ns, to_ns, emit, arg);
	return n;
}

bool rdma__known(const struct rdma *r, uint64_t devices, uint64_t since_ns)
{
	uint32_t i;

	for (i = 0; i < r->nports; i++)
		if (is_among(r, r->ports[i], devices) && r->ports[i]->nrows &&
		    r->ports[i]->row_ns >= since_ns)
			return true;
	return false;
}
