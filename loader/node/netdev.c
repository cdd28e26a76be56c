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

/* ---- Parsing ----------------------------------------------------------------------------------- */

/* "  eth0: 1 2 3 ..."; the two lines of the heading have no colon. */
static bool parse_dev(struct text line, struct netdev_dev *dev)
{
	const char *colon;
	int i;

	while (line.at < line.end && *line.at == ' ')
		line.at++;
	colon = memchr(line.at, ':', (size_t)(line.end - line.at));
	if (!colon || colon == line.at || colon - line.at >= NETDEV_NAME_MAX ||
	    memchr(line.at, 0, (size_t)(colon - line.at)))
		return false;
	memset(dev->name, 0, sizeof(dev->name));
	memcpy(dev->name, line.at, (size_t)(colon - line.at));
	line.at = colon + 1;
	for (i = 0; i < NETDEV_FIELDS; i++)
		if (!text__take(&line, 10, &dev->v[i]))
			return false;
	return true;
}

uint32_t netdev_parse(const char *text, size_t len, struct netdev_dev *devs, uint32_t max,
		      bool *cut)
{
	struct text left = text_of(text, len), line;
	struct netdev_dev dev;
	uint32_t n = 0;

	*cut = false;
	while (!*cut && text__line(&left, &line)) {
		if (!parse_dev(line, &dev))
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
	struct text left = text_of(line, len);
	uint64_t v[WORDS];
	int n = 0;

	while (n < WORDS && text__take(&left, 16, &v[n]) && v[n] <= UINT32_MAX)
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
	struct text digits = text_of(link, len);
	uint64_t nr;

	if (len < sizeof(head) || memcmp(link, head, sizeof(head) - 1) || *--digits.end != ']')
		return 0;
	digits.at += sizeof(head) - 1;
	return text__number(&digits, 10, &nr) ? nr : 0;
}

/* ---- Reading ----------------------------------------------------------------------------------- */

/* What of a file there is room for, in whole lines. 0 or -errno. */
static int lines_read(struct netdev_sampler *n, const char *name)
{
	int err = text_file__read(&n->text, n->root, name, TEXT_MAX);
	const char *nl;

	if (!err && n->text.len == TEXT_MAX) {
		nl = memrchr(n->text.at, '\n', n->text.len);
		n->text.len = nl ? (size_t)(nl + 1 - n->text.at) : n->text.len;
	}
	return err;
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
	text_file__free(&n->text);
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

	snprintf(name, sizeof(name), "/proc/%d/net/dev", pid);
	if (lines_read(n, name) || !n->text.len)
		return NULL;
	s = malloc(sizeof(*s) + NETDEV_DEVICES_MAX * sizeof(s->devs[0]));
	if (!s)
		return NULL;
	*s = (struct netdev_sample){.refs = 1, .now_ns = now_ns, .netns = netns};
	s->n = netdev_parse(n->text.at, n->text.len, s->devs, NETDEV_DEVICES_MAX, &s->cut);
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

static uint32_t count_lines(struct text text)
{
	struct text line;
	uint32_t n = 0;

	while (text__line(&text, &line))
		n++;
	return n;
}

int netdev__round(struct netdev_sampler *n)
{
	int err = lines_read(n, "/proc/net/softnet_stat");
	struct text left, line;
	struct netdev_cpu now;
	uint32_t nr, cpu, lines;

	drop_old(n);
	n->round++;
	if (err)
		return err;
	left = text_of(n->text.at, n->text.len);
	lines = count_lines(left);
	for (nr = 0; text__line(&left, &line); nr++) {
		cpu = UINT32_MAX;
		if (!netdev_parse_softnet(line.at, (size_t)(line.end - line.at), &now, &cpu))
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
