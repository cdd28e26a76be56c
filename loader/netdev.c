// SPDX-License-Identifier: BSD-2-Clause
/*
 * /proc/PID/net/dev and /proc/net/softnet_stat; see netdev.h. Processes share namespaces, so each
 * is read once a round, by the inode that /proc/PID/ns/net tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "netdev.h"

/* net/dev has up to 352 bytes for a device, softnet_stat 135 for a CPU. */
#define TEXT_MAX (2 << 20)

const char *const netdev_field_names[NETDEV_FIELDS] = {
	[NETDEV_RX_BYTES] = "rxBytes",
	[NETDEV_RX_PACKETS] = "rxPackets",
	[NETDEV_RX_ERRORS] = "rxErrors",
	[NETDEV_RX_DROPPED] = "rxDropped",
	[NETDEV_RX_FIFO] = "rxFifo",
	[NETDEV_RX_FRAME] = "rxFrame",
	[NETDEV_RX_COMPRESSED] = "rxCompressed",
	[NETDEV_RX_MULTICAST] = "rxMulticast",
	[NETDEV_TX_BYTES] = "txBytes",
	[NETDEV_TX_PACKETS] = "txPackets",
	[NETDEV_TX_ERRORS] = "txErrors",
	[NETDEV_TX_DROPPED] = "txDropped",
	[NETDEV_TX_FIFO] = "txFifo",
	[NETDEV_TX_COLLISIONS] = "txCollisions",
	[NETDEV_TX_CARRIER] = "txCarrier",
	[NETDEV_TX_COMPRESSED] = "txCompressed",
};

/* ---- Text -------------------------------------------------------------------------------------- */

/* The next line, without its newline, of what is left from *at to end; false at the end. */
static bool take_line(const char **at, const char *end, const char **line, size_t *len)
{
	const char *nl;

	if (*at >= end)
		return false;
	nl = memchr(*at, '\n', (size_t)(end - *at));
	*line = *at;
	*len = (size_t)((nl ? nl : end) - *at);
	*at = nl ? nl + 1 : end;
	return true;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* The next word, between spaces, as a number of that base and nothing else. */
static bool take_number(const char **at, const char *end, uint64_t base, uint64_t *value)
{
	const char *p = *at, *begin;
	uint64_t v = 0;

	while (p < end && *p == ' ')
		p++;
	for (begin = p; p < end && *p != ' '; p++)
		if ((uint64_t)digit(*p) >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit(*p), &v))
			return false;
	*at = p;
	*value = v;
	return p > begin;
}

/* "  eth0: 1 2 3 ..."; the two lines of the heading have no colon. */
static bool parse_dev(const char *line, size_t len, struct netdev_dev *dev)
{
	const char *end = line + len, *colon;
	int i;

	while (line < end && *line == ' ')
		line++;
	colon = memchr(line, ':', (size_t)(end - line));
	if (!colon || colon == line || colon - line >= NETDEV_NAME_MAX ||
	    memchr(line, 0, (size_t)(colon - line)))
		return false;
	memset(dev->name, 0, sizeof(dev->name));
	memcpy(dev->name, line, (size_t)(colon - line));
	line = colon + 1;
	for (i = 0; i < NETDEV_FIELDS; i++)
		if (!take_number(&line, end, 10, &dev->v[i]))
			return false;
	return true;
}

uint32_t netdev_parse(const char *text, size_t len, struct netdev_dev *devs, uint32_t max,
		      bool *cut)
{
	const char *end = text + len, *line;
	struct netdev_dev dev;
	uint32_t n = 0;

	*cut = false;
	while (!*cut && take_line(&text, end, &line, &len)) {
		if (!parse_dev(line, len, &dev))
			continue;
		if (n < max)
			devs[n++] = dev;
		else
			*cut = true;
	}
	return n;
}

bool netdev_parse_softnet(const char *line, size_t len, struct netdev_cpu *stat, uint32_t *cpu)
{
	enum { PROCESSED, DROPPED, SQUEEZED, FLOW_LIMIT = 10, CPU = 12, WORDS };
	const char *end = line + len;
	uint64_t v[WORDS];
	int n = 0;

	while (n < WORDS && take_number(&line, end, 16, &v[n]) && v[n] <= UINT32_MAX)
		n++;
	if (n <= FLOW_LIMIT)
		return false;
	*stat = (struct netdev_cpu){.known = true,
				    .processed = (uint32_t)v[PROCESSED],
				    .dropped = (uint32_t)v[DROPPED],
				    .squeezed = (uint32_t)v[SQUEEZED],
				    .flow_limit = (uint32_t)v[FLOW_LIMIT]};
	if (n > CPU)
		*cpu = (uint32_t)v[CPU];
	return true;
}

uint64_t netdev_parse_netns(const char *link, size_t len)
{
	static const char head[] = "net:[";
	const char *end = link + len;
	uint64_t nr;

	if (len < sizeof(head) || memcmp(link, head, sizeof(head) - 1) || *--end != ']')
		return 0;
	link += sizeof(head) - 1;
	return take_number(&link, end, 10, &nr) && link == end ? nr : 0;
}

/* ---- Reading ----------------------------------------------------------------------------------- */

/* Up to TEXT_MAX bytes of a file, whole lines; their number or -errno. */
static ssize_t text_read(struct netdev_sampler *n, const char *name)
{
	char path[PATH_MAX], *nl;
	ssize_t got = 1;
	size_t len = 0;
	int fd;

	if (!n->text)
		n->text = malloc(TEXT_MAX); /* of which what is never touched costs nothing */
	if (!n->text)
		return -ENOMEM;
	if (snprintf(path, sizeof(path), "%s%s", n->root, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (got > 0 && len < TEXT_MAX) {
		got = read(fd, n->text + len, TEXT_MAX - len);
		len += got > 0 ? (size_t)got : 0;
	}
	if (got < 0)
		got = -errno;
	close(fd);
	if (got < 0)
		return got;
	nl = len == TEXT_MAX ? memrchr(n->text, '\n', len) : NULL;
	return nl ? nl + 1 - n->text : (ssize_t)len;
}

/* ---- Samples ----------------------------------------------------------------------------------- */

struct netdev_sample *netdev_sample__get(struct netdev_sample *s)
{
	if (s)
		s->refs++;
	return s;
}

void netdev_sample__put(struct netdev_sample *s)
{
	if (s && !--s->refs)
		free(s);
}

const struct netdev_dev *netdev_sample__was(const struct netdev_sample *was,
					    const struct netdev_sample *now, uint32_t i)
{
	uint32_t k;

	if (!was || !now || was->netns != now->netns || i >= now->n)
		return NULL;
	/* Devices come at the end; only where one has gone the places have changed. */
	for (k = 0; k < was->n; k++)
		if (!strcmp(was->devs[(i + k) % was->n].name, now->devs[i].name))
			return &was->devs[(i + k) % was->n];
	return NULL;
}

void netdev__init(struct netdev_sampler *n, const char *root)
{
	*n = (struct netdev_sampler){.root = root};
}

void netdev__free(struct netdev_sampler *n)
{
	while (n->nspaces)
		netdev_sample__put(n->spaces[--n->nspaces]);
	free(n->spaces);
	free(n->rounds);
	free(n->cpus);
	free(n->text);
	netdev__init(n, n->root);
}

/* Nobody has asked for it in the round that is over: no process is in it any more. */
static void drop_old(struct netdev_sampler *n)
{
	uint32_t i, kept = 0;

	for (i = 0; i < n->nspaces; i++) {
		if (n->rounds[i] != n->round) {
			netdev_sample__put(n->spaces[i]);
			continue;
		}
		n->spaces[kept] = n->spaces[i];
		n->rounds[kept++] = n->rounds[i];
	}
	n->nspaces = kept;
}

static int spaces_grow(struct netdev_sampler *n)
{
	uint32_t cap = n->cap ? n->cap * 2 : 8;
	struct netdev_sample **spaces;
	uint64_t *rounds;

	spaces = realloc(n->spaces, cap * sizeof(*spaces));
	if (!spaces)
		return -ENOMEM;
	n->spaces = spaces;
	rounds = realloc(n->rounds, cap * sizeof(*rounds));
	if (!rounds)
		return -ENOMEM;
	n->rounds = rounds;
	n->cap = cap;
	return 0;
}

/* Where the sample of a namespace is, or is to be; its place or -ENOMEM. */
static int space_get(struct netdev_sampler *n, uint64_t netns)
{
	uint32_t i;

	for (i = 0; i < n->nspaces; i++)
		if (n->spaces[i]->netns == netns)
			return (int)i;
	if (n->nspaces == n->cap && spaces_grow(n))
		return -ENOMEM;
	return (int)n->nspaces;
}

static uint64_t netns_of(const struct netdev_sampler *n, pid_t pid)
{
	char path[PATH_MAX], link[64];
	ssize_t len;

	if (snprintf(path, sizeof(path), "%s/proc/%d/ns/net", n->root, pid) >= (int)sizeof(path))
		return 0;
	len = readlink(path, link, sizeof(link));
	return len > 0 ? netdev_parse_netns(link, (size_t)len) : 0;
}

static struct netdev_sample *sample_new(struct netdev_sampler *n, pid_t pid, uint64_t netns)
{
	struct netdev_sample *s, *smaller;
	uint64_t now_ns = monotonic_ns();
	char name[64];
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/net/dev", pid);
	len = text_read(n, name);
	if (len <= 0)
		return NULL;
	s = malloc(sizeof(*s) + NETDEV_DEVICES_MAX * sizeof(s->devs[0]));
	if (!s)
		return NULL;
	*s = (struct netdev_sample){.refs = 1, .now_ns = now_ns, .netns = netns};
	s->n = netdev_parse(n->text, (size_t)len, s->devs, NETDEV_DEVICES_MAX, &s->cut);
	smaller = realloc(s, sizeof(*s) + s->n * sizeof(s->devs[0]));
	return smaller ? smaller : s;
}

struct netdev_sample *netdev__of(struct netdev_sampler *n, pid_t pid)
{
	uint64_t netns = netns_of(n, pid);
	struct netdev_sample *s;
	int i;

	i = netns ? space_get(n, netns) : -ENOENT;
	if (i < 0)
		return NULL;
	if (i < (int)n->nspaces && n->rounds[i] == n->round)
		return n->spaces[i];
	s = sample_new(n, pid, netns);
	if (!s)
		return NULL; /* it is ending; the next one in the namespace may have more luck */
	if (i == (int)n->nspaces)
		n->nspaces++;
	else
		netdev_sample__put(n->spaces[i]);
	n->spaces[i] = s;
	n->rounds[i] = n->round;
	return s;
}

/* ---- The CPUs' share --------------------------------------------------------------------------- */

/* Room for CPU `cpu`, of which nothing is known yet. */
static bool cpus_grow(struct netdev_sampler *n, uint32_t cpu)
{
	struct netdev_cpu *cpus;

	if (cpu < n->ncpus)
		return true;
	cpus = cpu < NETDEV_CPUS_MAX ? realloc(n->cpus, (cpu + 1) * sizeof(*cpus)) : NULL;
	if (!cpus)
		return false;
	memset(cpus + n->ncpus, 0, (cpu + 1 - n->ncpus) * sizeof(*cpus));
	n->cpus = cpus;
	n->ncpus = cpu + 1;
	return true;
}

static void softnet_add(struct netdev_softnet *sum, struct netdev_cpu *cpu,
			const struct netdev_cpu *now)
{
	if (cpu->known) {
		sum->processed += now->processed - cpu->processed; /* modulo 2^32, all of them */
		sum->dropped += now->dropped - cpu->dropped;
		sum->squeezed += now->squeezed - cpu->squeezed;
		sum->flow_limit += now->flow_limit - cpu->flow_limit;
	}
	*cpu = *now;
}

static uint32_t count_lines(const char *text, size_t len)
{
	const char *end = text + len, *line;
	uint32_t n = 0;

	while (take_line(&text, end, &line, &len))
		n++;
	return n;
}

int netdev__round(struct netdev_sampler *n)
{
	ssize_t len = text_read(n, "/proc/net/softnet_stat");
	const char *at = n->text, *line;
	struct netdev_cpu now;
	uint32_t nr, cpu, lines;
	size_t line_len;

	drop_old(n);
	n->round++;
	if (len < 0)
		return (int)len;
	lines = count_lines(n->text, (size_t)len);
	for (nr = 0; take_line(&at, n->text + len, &line, &line_len); nr++) {
		cpu = UINT32_MAX;
		if (!netdev_parse_softnet(line, line_len, &now, &cpu))
			continue;
		if (cpu == UINT32_MAX && lines != n->nlines && nr < n->ncpus)
			n->cpus[nr].known = false; /* a CPU came or went: lines are others */
		if (cpu == UINT32_MAX)
			cpu = nr;
		if (!cpus_grow(n, cpu))
			continue;
		softnet_add(&n->softnet, &n->cpus[cpu], &now);
		n->softnet.known = true;
	}
	n->nlines = lines;
	return 0;
}
