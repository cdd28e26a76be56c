// SPDX-License-Identifier: BSD-2-Clause
/* The process that reads RDMA ports: a thread for each device, as any of them may hang in its driver. See rdma_sampler.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "pid_stat.h"
#include "rdma_sampler.h"
#include "thread.h"

#define LOOK_MS 250 /* whether one hangs is looked at so often */

/* What of a question is one device's. */
struct order {
	uint32_t recording, now;
	uint32_t share;
	bool wanted;
	char name[RDMA_NAME_MAX];
};

/* Who reads one. */
struct reader {
	uint32_t place;
	uint32_t seen; /* of questions; under the lock */
	struct order order;
	struct rdma r; /* of one device */

	/* Its word to who looks: */
	_Atomic uint64_t busy_ns; /* since when it reads; 0: it does not */
	atomic_int tid;

	/* Whose own these are: */
	pthread_t thread;
	bool started;
	uint64_t told_ns; /* busy_ns that was told to hang, */
	uint32_t told_in; /* in which recording */
};

static struct {
	int fd;
	const char *root;
	pthread_mutex_t lock;
	pthread_cond_t asked;
	struct rdma_question question;
	uint32_t questions;
	struct reader readers[RDMA_DEVICES_MAX];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .asked = PTHREAD_COND_INITIALIZER};

/* ---- Saying it --------------------------------------------------------------------------------- */

/* Nobody there to take it: then our time is over. */
static void say(const void *letter, size_t size)
{
	if (send(all.fd, letter, size, MSG_NOSIGNAL) != (ssize_t)size)
		_exit(0);
}

/* What is new of a port, at `in`; the end of it. */
static const char *put_port(struct rdma_port *p, struct input_port *in)
{
	const struct rdma_row *row = p->nrows != p->told_rows ? rdma_port__last(p) : NULL;
	struct input_counter *c = (struct input_counter *)(in + 1);
	uint32_t i;

	*in = (struct input_port){.moves = p->moves,
				  .nr = p->nr,
				  .place = p->place,
				  .ncounters = p->ncounters,
				  .first_new = p->told};
	memcpy(in->device, p->device, sizeof(in->device));
	for (i = p->told; i < p->ncounters; i++, c++) {
		memset(c, 0, sizeof(*c));
		snprintf(c->name, sizeof(c->name), "%s", rdma_counter__name(&p->counters[i]));
		c->hw = p->counters[i].hw;
	}
	p->told = p->ncounters;
	if (!row)
		return (const char *)c;
	p->told_rows = p->nrows;
	in->flags = INPUT_PORT_ROW;
	in->begin_ns = row->begin_ns;
	in->end_ns = row->end_ns;
	memcpy(c, row->total, p->ncounters * sizeof(uint64_t));
	return (const char *)((uint64_t *)c + p->ncounters);
}

/* All ports, also where nothing is new of one: what is not told of is not there any more. */
static void tell(struct reader *d, uint64_t begin_ns, uint64_t took_ns, bool any)
{
	union rdma_letter letter;
	const struct rdma_message head = {.recording = d->order.recording, .place = d->place};
	uint32_t i;

	for (i = 0; i < d->r.nports; i++) {
		letter.m = head;
		letter.m.kind = RDMA_PORT;
		say(&letter, (size_t)(put_port(d->r.ports[i], &letter.port) - letter.bytes));
	}
	letter.m = head;
	letter.m.kind = RDMA_READ;
	letter.m.now = d->order.now;
	letter.m.begin_ns = begin_ns;
	letter.m.took_ns = took_ns;
	letter.m.any = any;
	letter.m.cut = d->r.cut;
	say(&letter, sizeof(letter.m));
}

/* ---- One device -------------------------------------------------------------------------------- */

/* Has the lock. Until there is another question, or it is time. */
static void wait_turn(struct reader *d)
{
	const struct timespec due = monotonic_until(d->r.next_ns);
	int err = 0;

	while (d->seen == all.questions && !err) {
		if (d->order.wanted || d->r.nports)
			err = pthread_cond_clockwait(&all.asked, &all.lock, CLOCK_MONOTONIC, &due);
		else
			err = pthread_cond_wait(&all.asked, &all.lock);
	}
}

/* Has the lock. */
static struct order order_of(struct reader *d)
{
	const struct rdma_question *q = &all.question;
	struct order o = {.recording = q->recording,
			  .now = q->now,
			  .share = (uint32_t)__builtin_popcountll(q->devices) ?: 1,
			  .wanted = q->devices >> d->place & 1};

	d->seen = all.questions;
	memcpy(o.name, q->names[d->place], sizeof(o.name));
	return o;
}

static void obey(struct reader *d, const struct order *o)
{
	struct rdma_device *dev = &d->r.devices[d->place];
	bool begins = o->recording != d->order.recording;

	if (begins) {
		rdma__free(&d->r);
		rdma__init(&d->r, all.root);
	}
	if (!d->r.root) /* it is gone: no device is in use */
		return;
	if (o->wanted && (begins || !d->order.wanted || strcmp(o->name, dev->name)))
		d->r.next_scan_ns = 0;
	if (o->now != d->order.now)
		d->r.next_ns = 0;
	memcpy(dev->name, o->name, sizeof(dev->name));
	dev->until_ns = o->wanted ? UINT64_MAX : 0;
	d->r.share = o->share;
}

static void read_device(struct reader *d, const struct order *o)
{
	uint64_t begin_ns = monotonic_ns(), took_ns;
	bool due, any;

	d->busy_ns = begin_ns;
	obey(d, o);
	d->order = *o;
	due = begin_ns >= d->r.next_ns;
	any = due && rdma__sample(&d->r);
	took_ns = monotonic_ns() - begin_ns;
	d->busy_ns = 0;
	if (due)
		tell(d, begin_ns, took_ns, any);
}

static void *reader_main(void *arg)
{
	struct reader *d = arg;
	struct order o;

	d->tid = gettid();
	for (;;) {
		pthread_mutex_lock(&all.lock);
		wait_turn(d);
		o = order_of(d);
		pthread_mutex_unlock(&all.lock);
		read_device(d, &o);
	}
	return NULL;
}

/* ---- All of them ------------------------------------------------------------------------------- */

static void tell_hangs(struct reader *d, uint64_t since_ns, int err)
{
	const struct rdma_message m = {.kind = RDMA_HANGS,
				       .recording = all.question.recording,
				       .place = d->place,
				       .begin_ns = since_ns,
				       .err = err};

	d->told_ns = since_ns;
	d->told_in = all.question.recording;
	say(&m, sizeof(m));
}

/* One that runs, or waits for a CPU, does not hang. */
static bool runs(const struct reader *d)
{
	struct pid_stat st;

	return !pid_stat__read(d->tid, &st) && st.state == 'R';
}

static void look(void)
{
	uint64_t now = monotonic_ns(), busy_ns;
	struct reader *d;

	for (d = all.readers; d < all.readers + RDMA_DEVICES_MAX; d++) {
		busy_ns = d->busy_ns;
		if (!busy_ns || now < busy_ns + RDMA_PATIENCE_NS ||
		    (d->told_ns == busy_ns && d->told_in == all.question.recording) || runs(d))
			continue;
		tell_hangs(d, busy_ns, -ETIMEDOUT);
	}
}

static void start_readers(void)
{
	struct reader *d;
	uint32_t i;
	int err;

	for (i = 0; i < RDMA_DEVICES_MAX; i++) {
		d = &all.readers[i];
		if (d->started || !(all.question.devices >> i & 1))
			continue;
		d->place = i;
		err = thread__start(&d->thread, reader_main, d, "ncclscope-rdma");
		d->started = !err;
		if (err)
			tell_hangs(d, monotonic_ns(), err);
	}
}

static void take_question(void)
{
	struct rdma_question q;

	if (recv(all.fd, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
		_exit(0);
	pthread_mutex_lock(&all.lock);
	all.question = q;
	all.questions++;
	pthread_cond_broadcast(&all.asked);
	pthread_mutex_unlock(&all.lock);
	start_readers();
}

void rdma_reader__run(int fd, const char *root)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	all.fd = fd;
	all.root = root;
	for (;;) {
		if (poll(&p, 1, all.question.devices ? LOOK_MS : -1) > 0)
			take_question();
		look();
	}
}
