// SPDX-License-Identifier: BSD-2-Clause
/* What the process that reads RDMA ports has told; see rdma_sampler.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "aside.h"
#include "clock.h"
#include "rdma_sampler.h"

#define AGE_NS (20 * 1000000ull) /* what drivers tell of their ports may be so old */

/* ---- Its life ---------------------------------------------------------------------------------- */

int rdma_sampler__start(struct rdma_sampler *s, const char *root)
{
	*s = (struct rdma_sampler){.fd = -1};
	return aside__start(&s->fd, &s->pid, "ncclscope-rdma", rdma_reader__run, root);
}

static void forget_ports(struct rdma_sampler *s)
{
	while (s->nports)
		free(s->ports[--s->nports].news);
}

void rdma_sampler__stop(struct rdma_sampler *s)
{
	aside__stop(&s->fd, &s->pid);
	forget_ports(s);
	*s = (struct rdma_sampler){.fd = -1};
}

static void lost(struct rdma_sampler *s)
{
	aside__stop(&s->fd, &s->pid);
	s->died = true;
}

/* ---- Questions --------------------------------------------------------------------------------- */

/* Where there is no room for it, which hardly can be, with the next turn. */
static void ask(struct rdma_sampler *s)
{
	s->asked = send(s->fd, &s->question, sizeof(s->question), MSG_DONTWAIT | MSG_NOSIGNAL) ==
		   (ssize_t)sizeof(s->question);
}

void rdma_sampler__reset(struct rdma_sampler *s)
{
	struct rdma_reading *d;

	for (d = s->devices; d < s->devices + RDMA_DEVICES_MAX; d++) {
		d->begin_ns = 0;
		d->now = 0;
		d->err = 0;
		d->hangs = false;
	}
	forget_ports(s);
	s->question.recording++;
	s->question.devices = 0;
	s->changed = s->cut = false;
	s->letter_size = 0;
	s->rdma_ns = s->after_ns = s->samples = s->cost_ns = s->max_cost_ns = 0;
	if (s->fd >= 0)
		ask(s);
}

/* Whether it is to be read. What is not there to be read is told of. */
static bool wants(struct rdma_reading *d, const struct rdma_device *dev, uint64_t now_ns)
{
	if (!dev->name[0] || now_ns >= dev->until_ns)
		return false;
	if (dev->elsewhere && strcmp(d->troubled, dev->name))
		d->err = -ENODEV;
	return !dev->elsewhere;
}

void rdma_sampler__ask(struct rdma_sampler *s, const struct rdma *r, uint64_t now_ns)
{
	struct rdma_question *q = &s->question;
	uint64_t devices = 0;
	uint32_t i;

	if (s->fd < 0)
		return;
	for (i = 0; i < RDMA_DEVICES_MAX; i++) {
		if (wants(&s->devices[i], &r->devices[i], now_ns))
			devices |= 1ull << i;
		if (!strcmp(q->names[i], r->devices[i].name))
			continue;
		memcpy(q->names[i], r->devices[i].name, sizeof(q->names[i]));
		s->devices[i].begin_ns = 0;
		s->asked = false;
	}
	if (q->devices == devices && s->asked)
		return;
	q->devices = devices;
	ask(s);
}

void rdma_sampler__ask_now(struct rdma_sampler *s)
{
	if (s->fd < 0 || !s->question.devices)
		return;
	s->question.now++;
	ask(s);
}

static bool has_answered(const struct rdma_sampler *s)
{
	uint64_t left = s->question.devices;
	const struct rdma_reading *d;

	for (; left; left &= left - 1) {
		d = &s->devices[__builtin_ctzll(left)];
		if (!d->hangs && d->now != s->question.now)
			return false;
	}
	return true;
}

bool rdma_sampler__wait(struct rdma_sampler *s, uint64_t until_ns)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	uint64_t now = monotonic_ns();

	if (s->fd < 0 || !s->asked || now >= until_ns || has_answered(s))
		return false;
	poll(&p, 1, (int)((until_ns - now) / 1000000) + 1);
	return true;
}

/* ---- Answers ----------------------------------------------------------------------------------- */

/* False: nothing more has come. */
static bool receive(struct rdma_sampler *s)
{
	ssize_t n;

	if (s->letter_size)
		return true;
	if (s->fd < 0)
		return false;
	do
		n = recv(s->fd, &s->letter, sizeof(s->letter), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < (ssize_t)sizeof(s->letter.m) || s->letter.m.place >= RDMA_DEVICES_MAX) {
		lost(s);
		return false;
	}
	s->letter_size = (size_t)n;
	return true;
}

static bool is_port(const struct rdma_sampler *s)
{
	const struct input_port *in = &s->letter.port;
	size_t size = sizeof(s->letter.m) + sizeof(*in);

	if (s->letter_size < size || in->place != s->letter.m.place ||
	    in->ncounters > RDMA_COUNTERS_MAX || in->first_new > in->ncounters ||
	    !memchr(in->device, 0, sizeof(in->device)))
		return false;
	size += (in->ncounters - in->first_new) * sizeof(struct input_counter);
	size += in->flags & INPUT_PORT_ROW ? in->ncounters * sizeof(uint64_t) : 0;
	return s->letter_size == size;
}

static struct input_port without_news(const struct input_port *in)
{
	struct input_port port = *in;

	port.first_new = port.ncounters;
	port.flags = 0;
	port.begin_ns = port.end_ns = 0;
	return port;
}

/* Made if need be, behind those of its device and of places before; NULL: there are too many. */
static struct rdma_told *port_of(struct rdma_sampler *s, const struct input_port *in)
{
	struct rdma_told *p = s->ports, *end = s->ports + s->nports;

	for (; p < end && p->port.place <= in->place; p++)
		if (p->port.place == in->place && p->port.nr == in->nr &&
		    !strcmp(p->port.device, in->device))
			return p;
	if (s->nports == RDMA_PORTS_MAX) {
		s->cut = true;
		return NULL;
	}
	memmove(p + 1, p, (size_t)((char *)end - (char *)p));
	*p = (struct rdma_told){.port = without_news(in)};
	s->nports++;
	s->changed = true;
	return p;
}

/* False: the port has news already, which go first. */
static bool take_port(struct rdma_sampler *s)
{
	const struct input_port *in = &s->letter.port;
	struct rdma_told *p = port_of(s, in);

	if (!p)
		return true;
	p->named = true;
	if (in->first_new == in->ncounters && !(in->flags & INPUT_PORT_ROW))
		return true;
	if (p->news)
		return false;
	p->size = s->letter_size - sizeof(s->letter.m);
	p->news = malloc(p->size);
	if (!p->news)
		return true;
	memcpy(p->news, in, p->size);
	if (p->news->flags & INPUT_PORT_ROW && p->news->end_ns <= s->after_ns)
		p->news->end_ns = s->after_ns + 1;
	p->port = without_news(in);
	return true;
}

/* Its ports that were not told of are not there any more. */
static void forget_unnamed(struct rdma_sampler *s, uint32_t place)
{
	struct rdma_told *p;
	uint32_t i, kept = 0;

	for (i = 0; i < s->nports; i++) {
		p = &s->ports[i];
		if (p->port.place == place && !p->named) {
			free(p->news);
			s->changed = true;
			continue;
		}
		if (p->port.place == place)
			p->named = false;
		s->ports[kept++] = *p;
	}
	s->nports = kept;
}

static void take_reading(struct rdma_sampler *s, const struct rdma_message *m)
{
	struct rdma_reading *d = &s->devices[m->place];

	d->hangs = false;
	d->err = 0;
	d->now = m->now;
	s->cut |= m->cut;
	forget_unnamed(s, m->place);
	d->begin_ns = m->any ? m->begin_ns : 0; /* what has no ports is not waited for */
	if (!m->any)
		return;
	s->samples++;
	s->cost_ns += m->took_ns;
	if (m->took_ns > s->max_cost_ns)
		s->max_cost_ns = m->took_ns;
}

static void take_trouble(struct rdma_sampler *s, const struct rdma_message *m)
{
	struct rdma_reading *d = &s->devices[m->place];

	d->hangs = true;
	if (strcmp(d->troubled, s->question.names[m->place]))
		d->err = m->err;
}

/* False: it has to wait. */
static bool take(struct rdma_sampler *s)
{
	const struct rdma_message *m = &s->letter.m;

	if (m->recording != s->question.recording)
		return true;
	if (m->kind == RDMA_READ)
		take_reading(s, m);
	else if (m->kind == RDMA_HANGS)
		take_trouble(s, m);
	else if (is_port(s))
		return take_port(s);
	else
		lost(s);
	return true;
}

/* ---- As an input ------------------------------------------------------------------------------- */

/* Devices that hang, or of which nothing has come yet, are not waited for. */
static uint64_t read_until(const struct rdma_sampler *s)
{
	uint64_t left = s->question.devices, ns = UINT64_MAX;
	const struct rdma_reading *d;

	for (; left; left &= left - 1) {
		d = &s->devices[__builtin_ctzll(left)];
		if (!d->hangs && d->begin_ns && d->begin_ns < ns)
			ns = d->begin_ns;
	}
	return ns != UINT64_MAX && ns - AGE_NS > s->rdma_ns ? ns - AGE_NS : s->rdma_ns;
}

static struct input_port *put(struct rdma_sampler *s, struct rdma_told *p, struct input_port *at)
{
	const struct input_port *in = p->news ?: &p->port;
	size_t size = p->news ? p->size : sizeof(p->port);

	memcpy(at, in, size);
	at->flags |= strcmp(s->question.names[at->place], at->device) ? 0 : INPUT_PORT_HERE;
	free(p->news);
	p->news = NULL;
	return (struct input_port *)((char *)at + size);
}

struct input_rdma *rdma_sampler__next(struct rdma_sampler *s, size_t *size)
{
	struct input_rdma *in;
	struct input_port *at;
	uint64_t until_ns;
	uint32_t i, n = 0;

	while (receive(s) && take(s))
		s->letter_size = 0;
	*size = sizeof(*in);
	for (i = 0; i < s->nports; i++) {
		n += s->ports[i].news != NULL;
		*size += s->ports[i].news ? s->ports[i].size : sizeof(s->ports[i].port);
	}
	until_ns = read_until(s);
	if (!n && !s->changed && until_ns == s->rdma_ns)
		return NULL;
	in = malloc(*size);
	if (!in)
		return NULL;
	*in = (struct input_rdma){.rdma_ns = until_ns, .nports = s->nports};
	for (i = 0, at = (struct input_port *)(in + 1); i < s->nports; i++)
		at = put(s, &s->ports[i], at);
	s->rdma_ns = until_ns;
	s->changed = false;
	return in;
}

void rdma_sampler__after(struct rdma_sampler *s, uint64_t ns)
{
	s->after_ns = ns;
}

/* ---- What to tell ------------------------------------------------------------------------------ */

const char *rdma_sampler__trouble(struct rdma_sampler *s, int *err)
{
	struct rdma_reading *d;
	bool died = s->died;

	s->died = false;
	*err = 0;
	for (d = s->devices; d < s->devices + RDMA_DEVICES_MAX && !died; d++) {
		if (!d->err)
			continue;
		*err = d->err;
		d->err = 0;
		memcpy(d->troubled, s->question.names[d - s->devices], sizeof(d->troubled));
		return d->troubled;
	}
	return died ? "" : NULL;
}
