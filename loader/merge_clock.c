// SPDX-License-Identifier: BSD-2-Clause
/*
 * Clocks of nodes, from messages; see merge_clock.h. With x what is to be added to a node's times, a message says
 *
 *	x[from] + sent <= x[to] + arrived,  or  x[from] - x[to] <= arrived - sent
 *
 * and of all messages between two nodes the least difference says it all. Such bounds add up along ways between nodes, so the
 * shortest ways from the reference to a node and back bound what that node's x may be (Bellman-Ford). The middle of the two is
 * taken, which keeps all messages in order at once.
 *
 * Clocks drift. So the same is done for pieces of time as well (windows), some eight of them whatever the whole is, so that each has
 * many messages: how far the windows' bounds go is how far x may be off, and by how much a bound moves from one to the next is by how
 * much the clock may have moved within one. Where no one x is right for all messages, it is the middle of what the windows say.
 * Messages of one piece of time may contradict each other then, too (a circle of ways shorter than none): each is given the same
 * slack, as little as will do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hash.h"
#include "merge_clock.h"

#define WINDOW_NS   INT64_C(50000000) /* at first; they are made longer as time goes on */
#define WINDOWS_MAX 64
#define WINDOWS	    8		/* of which several may be taken together */
#define ALL_TIME    INT64_C(-1) /* the window of everything */
#define LINKS_MAX   (1u << 20)	/* beyond it there are no new ones */
#define NONE	    INT64_MAX
/* 3 days: what is further apart is not of one time, and sums fit. */
#define APART_MAX  (INT64_C(1) << 48)
#define SLACK_MAX  (INT64_C(1) << 49)
#define TIME_LIMIT (INT64_C(1) << 61)
/* Windows count that are at most so much wider than the narrowest of a node: in others its traffic was too little, or too slow. */
#define WIDER	 2
#define WIDER_NS 10000

struct link_key {
	int64_t window;
	uint32_t from, to;
};

struct link {
	struct link_key key;
	int64_t least; /* arrived - sent */
	UT_hash_handle hh;
};

struct merge_clock {
	struct link *links;
	int64_t window_ns, first, last; /* windows */
};

/* How far a node may be from the reference: low <= x <= high, after so many messages. */
struct bounds {
	int64_t low, high; /* -NONE, NONE: not bounded */
	uint32_t low_hops, high_hops;
};

struct merge_clock *merge_clock__new(void)
{
	struct merge_clock *c = calloc(1, sizeof(*c));

	if (c)
		*c = (struct merge_clock){
			.window_ns = WINDOW_NS, .first = INT64_MAX, .last = INT64_MIN};
	return c;
}

void merge_clock__free(struct merge_clock *c)
{
	if (!c)
		return;
	HASH_FREE_ALL(c->links);
	free(c);
}

/* ---- Messages -------------------------------------------------------------------------------------------- */

static int add(struct merge_clock *c, struct link_key key, int64_t least)
{
	struct link *l;

	HASH_FIND(hh, c->links, &key, sizeof(key), l);
	if (!l && HASH_COUNT(c->links) >= LINKS_MAX)
		return 0;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		l->key = key;
		l->least = least;
		HASH_ADD(hh, c->links, key, sizeof(key), l);
		if (!HASH_ADDED(hh, l)) {
			free(l);
			return -ENOMEM;
		}
	}
	if (least < l->least)
		l->least = least;
	return 0;
}

/* Two windows become one each time. */
static int longer_windows(struct merge_clock *c)
{
	struct link *old = c->links, *l, *tmp;
	struct link_key key;
	int err = 0;

	c->links = NULL;
	c->window_ns *= 2;
	c->first /= 2;
	c->last /= 2;
	HASH_ITER (hh, old, l, tmp) {
		key = l->key;
		key.window = key.window == ALL_TIME ? ALL_TIME : key.window / 2;
		err = err ?: add(c, key, l->least);
		HASH_DEL(old, l);
		free(l);
	}
	return err;
}

int merge_clock__message(struct merge_clock *c, uint32_t from, int64_t sent, uint32_t to,
			 int64_t arrived)
{
	struct link_key key;
	int err;

	if (sent < 0 || sent > TIME_LIMIT || arrived < 0 || arrived > TIME_LIMIT ||
	    llabs(arrived - sent) > APART_MAX)
		return 0;
	memset(&key, 0, sizeof(key));
	key.from = from;
	key.to = to;
	key.window = ALL_TIME;
	err = add(c, key, arrived - sent);
	/* by the same one's clock on the way back */
	key.window = (from < to ? sent : arrived) / c->window_ns;
	c->first = key.window < c->first ? key.window : c->first;
	c->last = key.window > c->last ? key.window : c->last;
	err = err ?: add(c, key, arrived - sent);
	while (!err && c->last - c->first >= WINDOWS_MAX)
		err = longer_windows(c);
	return err;
}

/* ---- One window ------------------------------------------------------------------------------------------ */

static bool lower_high(struct bounds *b, const struct link *l, int64_t slack)
{
	struct bounds *from = &b[l->key.from], *to = &b[l->key.to];

	if (to->high == NONE || to->high + l->least + slack >= from->high)
		return false;
	from->high = to->high + l->least + slack;
	from->high_hops = to->high_hops + 1;
	return true;
}

static bool raise_low(struct bounds *b, const struct link *l, int64_t slack)
{
	struct bounds *from = &b[l->key.from], *to = &b[l->key.to];

	if (from->low == -NONE || from->low - l->least - slack <= to->low)
		return false;
	to->low = from->low - l->least - slack;
	to->low_hops = from->low_hops + 1;
	return true;
}

/* Whether there is an end to it: false where messages contradict each other by more than @slack each. */
static bool shortest(struct link *const *links, uint32_t nlinks, uint32_t n, uint32_t ref,
		     int64_t slack, struct bounds *b)
{
	bool again = true;
	uint32_t round, i;

	for (i = 0; i < n; i++)
		b[i] = (struct bounds){.low = -NONE, .high = NONE};
	b[ref] = (struct bounds){0};
	for (round = 0; again && round <= n; round++) {
		again = false;
		for (i = 0; i < nlinks; i++) {
			again |= lower_high(b, links[i], slack);
			again |= raise_low(b, links[i], slack);
		}
	}
	return !again;
}

/* The bounds, and as little slack as will do for them, which makes them wider; returns it. */
static int64_t solve_window(struct link *const *links, uint32_t nlinks, uint32_t n, uint32_t ref,
			    struct bounds *b)
{
	int64_t least = 0, most = 1, mid;
	uint32_t i;

	if (shortest(links, nlinks, n, ref, 0, b))
		return 0;
	while (most < SLACK_MAX && !shortest(links, nlinks, n, ref, most, b)) {
		least = most;
		most *= 2;
	}
	while (most - least > 1) {
		mid = least + (most - least) / 2;
		if (shortest(links, nlinks, n, ref, mid, b))
			most = mid;
		else
			least = mid;
	}
	shortest(links, nlinks, n, ref, most, b);
	for (i = 0; i < n; i++) {
		mid = most * (b[i].low_hops + b[i].high_hops) / 2;
		b[i].low -= b[i].low == -NONE ? 0 : mid;
		b[i].high += b[i].high == NONE ? 0 : mid;
	}
	return most;
}

/* ---- All of them ------------------------------------------------------------------------------------------ */

/* What a node's windows say together. */
struct sum {
	int64_t narrowest;
	struct bounds last, all;     /* of the last window that counts, of all of them */
	int64_t low_step, high_step; /* the most by which the next one's bounds were others */
	bool any;
};

static bool is_bounded(const struct bounds *b)
{
	return b->low != -NONE && b->high != NONE;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void take_window(struct sum *s, const struct bounds *b)
{
	if (b->high - b->low > WIDER * s->narrowest + WIDER_NS)
		return;
	if (!s->any) {
		s->all = *b;
	} else {
		s->low_step = most(s->low_step, llabs(b->low - s->last.low));
		s->high_step = most(s->high_step, llabs(b->high - s->last.high));
		s->all.low = least(s->all.low, b->low);
		s->all.high = most(s->all.high, b->high);
	}
	s->last = *b;
	s->any = true;
}

static int64_t window_of(const struct merge_clock *c, const struct link *l)
{
	return (l->key.window - c->first) / ((c->last - c->first) / WINDOWS + 1);
}

/* Windows are looked at twice: how narrow they get has to be known before it is known which ones count. */
static void sum_window(struct sum *s, const struct bounds *b, bool again)
{
	if (!is_bounded(b))
		return;
	if (again)
		take_window(s, b);
	else
		s->narrowest = least(s->narrowest, b->high - b->low);
}

static void sum_windows(const struct merge_clock *c, struct link **links, uint32_t nlinks,
			uint32_t n, uint32_t ref, struct bounds *b, struct sum *sums, bool again)
{
	uint32_t at, end, i;

	for (at = 0; at < nlinks; at = end) {
		for (end = at; end < nlinks && window_of(c, links[end]) == window_of(c, links[at]);)
			end++;
		solve_window(links + at, end - at, n, ref, b);
		for (i = 0; i < n; i++)
			sum_window(&sums[i], &b[i], again);
	}
}

static int64_t middle(const struct bounds *b)
{
	return b->low + (b->high - b->low) / 2;
}

/* @b: of all time, without any slack if @one: there is one x for all messages. */
static void make_fit(const struct sum *s, const struct bounds *b, bool one, struct merge_fit *fit)
{
	/* No message came and went: their own clocks have to do, as far as messages do not speak against it. */
	if (!is_bounded(b)) {
		fit->add = b->low > 0 ? b->low : b->high < 0 ? b->high : 0;
		fit->error = -1;
		return;
	}
	fit->add = middle(one || !s->any ? b : &s->all);
	fit->error = b->high - fit->add;
	if (s->any)
		fit->error = most(s->all.high - fit->add, fit->add - s->all.low) +
			     least(s->low_step, s->high_step);
}

static int by_window(const void *a, const void *b)
{
	const struct link *x = *(struct link *const *)a, *y = *(struct link *const *)b;
	const struct link_key *p = &x->key, *q = &y->key;

	if (p->window != q->window)
		return p->window < q->window ? -1 : 1;
	if (p->from != q->from)
		return p->from < q->from ? -1 : 1;
	return p->to < q->to ? -1 : p->to > q->to;
}

/* Those between nodes that there are, by windows. NULL: no memory. */
static struct link **sorted(const struct merge_clock *c, uint32_t n, uint32_t *count)
{
	struct link **links = calloc(HASH_COUNT(c->links) + 1, sizeof(struct link *)), *l, *tmp;

	*count = 0;
	if (!links)
		return NULL;
	HASH_ITER (hh, c->links, l, tmp)
		if (l->key.from < n && l->key.to < n)
			links[(*count)++] = l;
	qsort(links, *count, sizeof(struct link *), by_window);
	return links;
}

static uint32_t all_time(struct link *const *links, uint32_t nlinks)
{
	uint32_t n = 0;

	while (n < nlinks && links[n]->key.window == ALL_TIME)
		n++;
	return n;
}

int merge_clock__solve(const struct merge_clock *c, uint32_t n, uint32_t ref,
		       struct merge_fit *fits)
{
	struct bounds *b = calloc(n, sizeof(*b));
	struct sum *sums = calloc(n, sizeof(*sums));
	struct link **links;
	uint32_t nlinks, always, i;
	bool one;

	links = sorted(c, n, &nlinks);
	if (b && sums && links) {
		for (i = 0; i < n; i++)
			sums[i].narrowest = NONE;
		always = all_time(links, nlinks);
		sum_windows(c, links + always, nlinks - always, n, ref, b, sums, false);
		sum_windows(c, links + always, nlinks - always, n, ref, b, sums, true);
		one = !solve_window(links, always, n, ref, b);
		for (i = 0; i < n; i++)
			make_fit(&sums[i], &b[i], one, &fits[i]);
		fits[ref] = (struct merge_fit){0};
	}
	i = b && sums && links;
	free(links);
	free(sums);
	free(b);
	return i ? 0 : -ENOMEM;
}
