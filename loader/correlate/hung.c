// SPDX-License-Identifier: BSD-2-Clause
/* Events that do not move; see hung.h. */
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "correlate.h"
#include "less.h"
#include "nccl_profiler.h"

#define SLOT_SHIFT 26	/* 67 ms a slot, */
#define SLOTS	   1024 /* and 68 s in all: longer than anything waits */
#define YOUNG_NS                                                                                   \
	(NSEC_PER_SEC / 2) /* after it came; later than it happened by less than HUNG_QUIET_NS */
#define PASS_NS	  (10 * 1000000ull)
#define AGAIN_NS  (2 * NSEC_PER_SEC)
#define AGAIN_MAX (60 * NSEC_PER_SEC)
#define LEVELS                                                                                     \
	8 /* GroupApi, CollApi, Coll, ProxyOp, ProxyStep, NetPlugin; a job may make up more */

_Static_assert(AGAIN_MAX < (uint64_t)(SLOTS - 2) << SLOT_SHIFT, "what waits fits the wheel");

static struct corr_event *parent_of(const struct correlate *c, const struct corr_event *ev)
{
	return ev->linked ? correlate__find(c, ev->start.s.parent) : NULL;
}

/* ---- Lists ------------------------------------------------------------------------------------- */

static void link_at(struct corr_event **head, struct corr_event *ev)
{
	ev->hung.at = head;
	ev->hung.next = *head;
	if (*head)
		(*head)->hung.at = &ev->hung.next;
	*head = ev;
}

static void unlink_ev(struct correlate *c, struct corr_event *ev)
{
	if (!ev->hung.at)
		return;
	c->hung.ndue -= ev->hung.watch >= HUNG_DUE;
	*ev->hung.at = ev->hung.next;
	if (ev->hung.next)
		ev->hung.next->hung.at = ev->hung.at;
	ev->hung.at = NULL;
}

/* Onto the wheel; without memory for one nothing is told. */
static void wait_until(struct correlate *c, struct corr_event *ev, uint64_t ns, enum hung_watch why)
{
	uint64_t slot = ns >> SLOT_SHIFT;

	ev->hung.watch = why;
	if (!c->hung.wheel) {
		c->hung.wheel = calloc(SLOTS, sizeof(struct corr_event *));
		c->hung.slot = c->now_ns >> SLOT_SHIFT;
	}
	if (!c->hung.wheel)
		return;
	if (slot < c->hung.slot)
		slot = c->hung.slot;
	link_at(&c->hung.wheel[slot % SLOTS], ev);
}

/* ---- Movement ---------------------------------------------------------------------------------- */

static void note_quiet(struct correlate *c, const struct corr_event *ev, uint64_t until_ns)
{
	uint64_t quiet = less(until_ns, ev->hung.moved_ns);

	if (ev->hung.told && quiet > c->hung.longest_ns)
		c->hung.longest_ns = quiet;
}

/* Parents are told of it every PASS_NS at most: a look-up for each of many states would cost too much. */
void hung__moved(struct correlate *c, struct corr_event *ev, uint64_t ts_ns)
{
	int i;

	for (i = 0; ev && i < LEVELS; i++, ev = parent_of(c, ev)) {
		note_quiet(c, ev, ts_ns);
		if (ts_ns > ev->hung.moved_ns)
			ev->hung.moved_ns = ts_ns;
		if (ev->hung.begun && ev->comm && ts_ns > ev->comm->moved_ns)
			ev->comm->moved_ns = ts_ns;
		if (ev->hung.watch > HUNG_SOON) {
			unlink_ev(c, ev);
			ev->hung.told = 0;
			wait_until(c, ev, ev->hung.moved_ns + HUNG_QUIET_NS, HUNG_SOON);
		}
		if (ts_ns < ev->hung.passed_ns + PASS_NS)
			return;
		ev->hung.passed_ns = ts_ns;
	}
}

static bool is_work(uint32_t what)
{
	return what != SCOPE_GROUP_API && what != SCOPE_COLL_API && what != SCOPE_P2P_API &&
	       what != SCOPE_KERNEL_LAUNCH && what != SCOPE_GROUP && what != SCOPE_COLL &&
	       what != SCOPE_P2P && what != SCOPE_PROXY_OP && what != SCOPE_PROXY_CTRL;
}

static bool is_queued(const struct corr_event *ev)
{
	return !ev->hung.begun &&
	       (ev->what == SCOPE_COLL || ev->what == SCOPE_P2P || ev->what == SCOPE_PROXY_OP);
}

void hung__child(struct correlate *c, struct corr_event *parent, struct corr_event *ev)
{
	struct corr_event *op;

	for (op = parent; ev->hung.begun && op && is_queued(op); op = parent_of(c, op))
		op->hung.begun = true;
	ev->hung.passed_ns = ev->hung.moved_ns;
	hung__moved(c, parent, ev->hung.moved_ns);
}

/* ---- Watching ---------------------------------------------------------------------------------- */

void hung__opened(struct correlate *c, struct corr_event *ev)
{
	ev->hung.moved_ns = ev->start_ns;
	ev->hung.begun = is_work(ev->what);
	if (!c->hung.young)
		c->hung.young = ev;
}

void hung__closed(struct correlate *c, const struct corr_event *ev)
{
	if (c->hung.young == ev)
		c->hung.young = ev->next;
}

/* Not an operation whose children have all stopped, nor a progress thread that has nothing to do. */
static bool may_hang(const struct corr_event *ev)
{
	if (ev->outside) /* not recorded */
		return false;
	if (ev->stopped)
		return ev->open_children;
	return ev->what != SCOPE_PROXY_CTRL || ev->last_state != ncclProfilerProxyCtrlSleep;
}

static bool is_kernel(uint32_t what)
{
	return what == SCOPE_KERNEL_CH || what == SCOPE_KERNEL_PHASE;
}

/* It may have moved with others. */
static void refresh(const struct correlate *c, struct corr_event *ev)
{
	uint64_t moved_ns = ev->hung.moved_ns;
	const struct corr_event *up = ev;
	int i;

	for (i = 0; up && is_kernel(up->what) && i < LEVELS; i++) {
		up = parent_of(c, up);
		if (up && up->hung.moved_ns > moved_ns)
			moved_ns = up->hung.moved_ns;
	}
	if (is_queued(ev) && ev->comm && ev->comm->moved_ns > moved_ns)
		moved_ns = ev->comm->moved_ns;
	if (moved_ns > ev->hung.told_ns)
		ev->hung.told = 0;
	ev->hung.moved_ns = moved_ns;
}

static uint64_t due_ns(const struct corr_event *ev)
{
	uint64_t again = AGAIN_NS << ev->hung.told >> 1;

	if (!ev->hung.told)
		return ev->hung.moved_ns + HUNG_QUIET_NS;
	return ev->hung.told_ns + (again < AGAIN_MAX ? again : AGAIN_MAX);
}

/* Its time may have come. */
static void look(struct correlate *c, struct corr_event *ev, uint64_t now_ns)
{
	uint64_t state = correlate__settle(c, ev, now_ns), due;

	refresh(c, ev);
	due = may_hang(ev) ? due_ns(ev) : UINT64_MAX;
	if (due <= now_ns) {
		ev->hung.watch = HUNG_DUE;
		link_at(&c->hung.due, ev);
		c->hung.ndue++;
	} else if (due == UINT64_MAX && state == UINT64_MAX) {
		ev->hung.watch = HUNG_IDLE;
	} else {
		wait_until(c, ev, due < state ? due : state,
			   ev->hung.told ? HUNG_LATER : HUNG_SOON);
	}
}

void hung__watch(struct correlate *c, struct corr_event *ev, uint64_t now_ns)
{
	if (ev->hung.watch == HUNG_NONE)
		look(c, ev, now_ns);
}

void hung__forget(struct correlate *c, struct corr_event *ev, uint64_t ts_ns)
{
	note_quiet(c, ev, ts_ns);
	unlink_ev(c, ev);
	ev->hung.watch = HUNG_NONE;
	ev->hung.told = 0;
}

void hung__tick(struct correlate *c, uint64_t now_ns)
{
	uint64_t end = now_ns >> SLOT_SHIFT;
	struct corr_event *ev, *list;

	while ((ev = c->hung.young) && less(now_ns, ev->list_ns) >= YOUNG_NS) {
		c->hung.young = ev->next;
		hung__watch(c, ev, now_ns);
	}
	if (!c->hung.wheel)
		return;
	if (end > c->hung.slot + SLOTS)
		c->hung.slot = end - SLOTS;
	while (c->hung.slot < end) {
		list = c->hung.wheel[c->hung.slot % SLOTS];
		c->hung.wheel[c->hung.slot++ % SLOTS] = NULL;
		if (list)
			list->hung.at = &list;
		while ((ev = list)) {
			unlink_ev(c, ev);
			look(c, ev, now_ns);
		}
	}
}

/* ---- Telling ----------------------------------------------------------------------------------- */

bool hung__due(const struct correlate *c)
{
	return c->hung.ndue;
}

struct picks {
	struct corr_event *at[HUNG_TOLD_MAX];
	uint32_t n;
};

/* Keeps the oldest, in order. */
static void pick(struct picks *p, struct corr_event *ev)
{
	uint32_t lo = 0, hi = p->n, mid;

	if (p->n == HUNG_TOLD_MAX && ev->start_ns >= p->at[p->n - 1]->start_ns)
		return;
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (p->at[mid]->start_ns <= ev->start_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	p->n -= p->n == HUNG_TOLD_MAX;
	memmove(&p->at[lo + 1], &p->at[lo], (p->n - lo) * sizeof(p->at[0]));
	p->at[lo] = ev;
	p->n++;
}

/* It and those above it that are due, the uppermost first; if there is room for all of them. */
static void pick_chain(const struct correlate *c, struct picks *told, struct corr_event *ev)
{
	struct corr_event *up[LEVELS];
	uint32_t n = 0;

	for (; ev && ev->hung.watch == HUNG_DUE && n < LEVELS; ev = parent_of(c, ev)) {
		ev->hung.watch = HUNG_PICKED;
		up[n++] = ev;
	}
	if (told->n + n > HUNG_TOLD_MAX) {
		while (n)
			up[--n]->hung.watch = HUNG_DUE;
		return;
	}
	while (n)
		told->at[told->n++] = up[--n];
}

static void pick_all(const struct correlate *c, struct picks *told, bool deepest)
{
	struct picks oldest = {.n = 0};
	struct corr_event *ev;
	uint32_t i;

	for (ev = c->hung.due; ev; ev = ev->hung.next)
		if (ev->hung.watch == HUNG_DUE && !(deepest && ev->open_children))
			pick(&oldest, ev);
	for (i = 0; i < oldest.n; i++)
		pick_chain(c, told, oldest.at[i]);
}

/* Since it was found to be due, others may have moved with which it does. */
static void look_again(struct correlate *c)
{
	struct corr_event *ev, *list = c->hung.due;

	c->hung.due = NULL;
	if (list)
		list->hung.at = &list;
	while ((ev = list)) {
		unlink_ev(c, ev);
		look(c, ev, c->now_ns);
	}
}

/* All that are due. */
static void tell(struct correlate *c)
{
	struct picks told = {.n = 0};
	struct corr_event *ev;
	uint32_t left = c->hung.ndue, i;

	pick_all(c, &told, true);
	pick_all(c, &told, false);
	left -= told.n;
	for (i = 0; c->sink.open && i < told.n; i++) {
		correlate__settle(c, told.at[i], UINT64_MAX);
		c->sink.open(c->sink.arg, told.at[i], i + 1 == told.n ? left : 0);
	}
	while ((ev = c->hung.due)) {
		unlink_ev(c, ev);
		c->hung.events += !ev->hung.counted;
		ev->hung.counted = true;
		ev->hung.told_ns = c->now_ns;
		ev->hung.told += ev->hung.told < 16;
		note_quiet(c, ev, c->now_ns);
		wait_until(c, ev, due_ns(ev), HUNG_LATER);
	}
}

void hung__tell(struct correlate *c)
{
	look_again(c);
	tell(c);
}

/* Nothing was told yet of what is told to be so old now. */
static bool is_news(const struct correlate *c, const struct corr_event *ev)
{
	return ev->hung.told && may_hang(ev) && c->now_ns > ev->hung.told_ns;
}

void hung__end(struct correlate *c)
{
	struct corr_event *ev, *next;
	uint32_t i;

	for (i = 0; c->hung.wheel && i < SLOTS; i++) {
		for (ev = c->hung.wheel[i]; ev; ev = next) {
			next = ev->hung.next;
			refresh(c, ev);
			if (!is_news(c, ev))
				continue;
			unlink_ev(c, ev);
			ev->hung.watch = HUNG_DUE;
			link_at(&c->hung.due, ev);
			c->hung.ndue++;
		}
	}
	tell(c);
}

void hung__free(struct correlate *c)
{
	free(c->hung.wheel);
	memset(&c->hung, 0, sizeof(c->hung));
}
