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
 * Clocks drift, so what is right for all of the time may not be so for each piece of it. The same is done for pieces (windows), and from
 * them comes by how much a clock can have drifted in a second: no more than what is between the bounds of two windows, far apart. What a
 * window's time can have been right for is then what its own bounds, and those of others as far as they are away, leave; and the
 * error is how far the one x is from any of that, also where no messages were. Until all is read a piece is one of a node's own clock,
 * which may be wrong by hours; the x of all of the time puts the nodes' pieces side by side.
 *
 * Where no one x is right for all messages, it is the middle of what the windows say. Messages of one window may contradict each other
 * then, too (a circle of ways shorter than none): each is given the same slack, about as little as will do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hash.h"
#include "merge_clock.h"

#define WINDOW_NS   INT64_C(50000000) /* at first; they are made longer as time goes on */
#define WINDOWS_MAX 64
#define ALL_TIME    INT64_C(-1) /* the window of everything */
#define LINKS_MAX   (1u << 20)	/* beyond it there are no new ones */
#define NONE	    INT64_MAX
/* 3 days: what is further apart is not of one time; and sums over MERGE_NODES_MAX nodes fit. */
#define APART_MAX  (INT64_C(1) << 48)
#define SLACK_MAX  (INT64_C(1) << 49)
#define TIME_LIMIT (INT64_C(1) << 61)
/* In ns a ms, 100 ppm: more is taken for possible only where messages show it. Crystals are off by half of that at most. */
#define DRIFT_MAX 100.0

struct link_key {
	int64_t window;
	uint32_t from, to;
};

struct link {
	struct link_key key;
	int64_t least; /* arrived - sent */
	int64_t at; /* while it is solved: the window by the reference's clock; NONE: it bounds nothing */
	UT_hash_handle hh;
};

/* Of what windows of its clock a node tells. */
struct range {
	uint32_t node;
	int64_t first, last;
	UT_hash_handle hh;
};

struct merge_clock {
	struct link *links;
	struct range *ranges;
	int64_t window_ns;
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
		c->window_ns = WINDOW_NS;
	return c;
}

void merge_clock__free(struct merge_clock *c)
{
	if (!c)
		return;
	HASH_FREE_ALL(c->links);
	HASH_FREE_ALL(c->ranges);
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
	struct range *r, *next;
	struct link_key key;
	int err = 0;

	c->links = NULL;
	c->window_ns *= 2;
	HASH_ITER (hh, c->ranges, r, next) {
		r->first /= 2;
		r->last /= 2;
	}
	HASH_ITER (hh, old, l, tmp) {
		key = l->key;
		key.window = key.window == ALL_TIME ? ALL_TIME : key.window / 2;
		err = err ?: add(c, key, l->least);
		HASH_DEL(old, l);
		free(l);
	}
	return err;
}

static struct range *range_of(struct merge_clock *c, uint32_t node)
{
	struct range *r;

	HASH_FIND(hh, c->ranges, &node, sizeof(node), r);
	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct range){.node = node, .first = INT64_MAX, .last = INT64_MIN};
	HASH_ADD(hh, c->ranges, node, sizeof(node), r);
	if (HASH_ADDED(hh, r))
		return r;
	free(r);
	return NULL;
}

/* Windows up to that one. */
static int reach(struct merge_clock *c, uint32_t node, int64_t window)
{
	struct range *r = range_of(c, node);
	int err = r ? 0 : -ENOMEM;

	if (!r)
		return err;
	r->first = window < r->first ? window : r->first;
	r->last = window > r->last ? window : r->last;
	while (!err && r->last - r->first >= WINDOWS_MAX)
		err = longer_windows(c);
	return err;
}

int merge_clock__time(struct merge_clock *c, uint32_t node, int64_t ns)
{
	return ns < 0 || ns > TIME_LIMIT ? 0 : reach(c, node, ns / c->window_ns);
}

/* By whose clock the windows between two nodes are: on the way back by the same one's. */
static uint32_t clock_of(const struct link_key *key)
{
	return key->from < key->to ? key->from : key->to;
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
	key.window = (clock_of(&key) == from ? sent : arrived) / c->window_ns;
	err = err ?: add(c, key, arrived - sent);
	return err ?: reach(c, clock_of(&key), key.window);
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

/*
 * Whether there is an end to it: false where messages contradict each other by more than @slack each. That shows in a way from the
 * reference to itself that is shorter than none, or in one over more nodes than there are.
 */
static bool shortest(struct link *const *links, uint32_t nlinks, uint32_t n, uint32_t ref,
		     int64_t slack, struct bounds *b)
{
	bool again = true;
	uint32_t i;

	for (i = 0; i < n; i++)
		b[i] = (struct bounds){.low = -NONE, .high = NONE};
	b[ref] = (struct bounds){0};
	while (again) {
		again = false;
		for (i = 0; i < nlinks; i++) {
			again |= lower_high(b, links[i], slack);
			again |= raise_low(b, links[i], slack);
			if (b[links[i]->key.from].high_hops > n || b[links[i]->key.to].low_hops > n)
				return false;
		}
		if (b[ref].high < 0 || b[ref].low > 0)
			return false;
	}
	return true;
}

/* A slack that will do and is little more than the least one; @guess is tried first. */
static int64_t find_slack(struct link *const *links, uint32_t nlinks, uint32_t n, uint32_t ref,
			  int64_t guess, struct bounds *b)
{
	int64_t least = 0, most = guess > 1 ? guess : 1, mid;

	while (most < SLACK_MAX && !shortest(links, nlinks, n, ref, most, b)) {
		least = most;
		most *= 4;
	}
	while (most - least > 1 + most / 16) {
		mid = least + (most - least) / 2;
		if (shortest(links, nlinks, n, ref, mid, b))
			most = mid;
		else
			least = mid;
	}
	return most < SLACK_MAX ? most : SLACK_MAX;
}

/* The bounds; returns the slack that they needed, which makes them wider. @guess: what another window needed. */
static int64_t solve_window(struct link *const *links, uint32_t nlinks, uint32_t n, uint32_t ref,
			    int64_t guess, struct bounds *b)
{
	int64_t slack, more;
	uint32_t i;

	if (shortest(links, nlinks, n, ref, 0, b))
		return 0;
	slack = find_slack(links, nlinks, n, ref, guess, b);
	shortest(links, nlinks, n, ref, slack, b);
	for (i = 0; i < n; i++) {
		more = slack * (b[i].low_hops + b[i].high_hops) / 2;
		b[i].low -= b[i].low == -NONE ? 0 : more;
		b[i].high += b[i].high == NONE ? 0 : more;
	}
	return slack;
}

/* ---- One node, by all windows ------------------------------------------------------------------------------------------ */

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

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

/* What a node's windows say, from the first one of all to the last. */
struct history {
	struct bounds at[WINDOWS_MAX];
	uint32_t n;
	double window_ms;
	double beside; /* windows: how far what is in one may be from any time of it */
};

/* In ns a ms: by how much its clock can have drifted, by the two windows that leave least room for that; or has, by any two. */
static double drift_of(const struct history *h)
{
	double can = DRIFT_MAX, has = 0, ms;
	const struct bounds *a, *b;
	uint32_t i, k;

	for (i = 0; i < h->n; i++)
		for (k = i + 1; k < h->n; k++) {
			a = &h->at[i];
			b = &h->at[k];
			if (!is_bounded(a) || !is_bounded(b))
				continue;
			ms = (k - i) * h->window_ms;
			has = greater(has, (double)most(b->low - a->high, a->low - b->high) / ms);
			ms -= (2 * h->beside - 1) * h->window_ms;
			if (ms < h->window_ms / 2) /* their messages may be next to each other */
				continue;
			can = lesser(can, (double)most(b->high - a->low, a->high - b->low) / ms);
		}
	return greater(can, has);
}

/* What was right in window @w, by all windows; those further away say less. false: none says anything. */
static bool right_in(const struct history *h, uint32_t w, double drift, struct bounds *b)
{
	int64_t apart, low;
	uint32_t i;

	*b = (struct bounds){.low = -NONE, .high = NONE};
	for (i = 0; i < h->n; i++) {
		if (!is_bounded(&h->at[i]))
			continue;
		apart = (int64_t)(drift * h->window_ms * ((i > w ? i - w : w - i) + h->beside));
		b->low = most(b->low, h->at[i].low - apart);
		b->high = least(b->high, h->at[i].high + apart);
	}
	low = b->low;
	if (low > b->high) { /* it has not drifted evenly: somewhere between them */
		b->low = b->high;
		b->high = low;
	}
	return low != -NONE;
}

static int64_t middle(const struct bounds *b)
{
	return b->low + (b->high - b->low) / 2;
}

/* What went and what came were never in one window: each message on the way was right at some time of all of it. */
static struct bounds of_any_time(const struct history *h, const struct bounds *all, double drift)
{
	uint32_t hops = all->low_hops > all->high_hops ? all->low_hops : all->high_hops;
	int64_t apart = (int64_t)(drift * h->window_ms * h->n * hops);

	return (struct bounds){.low = all->low - apart, .high = all->high + apart};
}

/* @all: of all time, without any slack if @one: there is one x for all messages. */
static void make_fit(const struct history *h, const struct bounds *all, bool one,
		     struct merge_fit *fit)
{
	struct bounds b, sum = {.low = NONE, .high = -NONE};
	double drift = drift_of(h);
	uint32_t w;

	/* No message came and went: their own clocks have to do, as far as messages do not speak against it. */
	if (!is_bounded(all)) {
		fit->add = most(all->low, least(all->high, fit->add));
		fit->error = -1;
		return;
	}
	for (w = 0; w < h->n && right_in(h, w, drift, &b); w++) {
		sum.low = least(sum.low, b.low);
		sum.high = most(sum.high, b.high);
	}
	fit->add = middle(one || !w ? all : &sum);
	if (!w)
		sum = of_any_time(h, all, drift);
	fit->error = most(sum.high - fit->add, fit->add - sum.low);
}

/* ---- Windows side by side ------------------------------------------------------------------------------------ */

/* By the reference's clock. */
struct timeline {
	int64_t begin, window_ns;
	uint32_t n;
	bool moved; /* what was in one window may be half of one beside it */
};

/* A time of the node whose x is between these bounds. */
static int64_t moved(const struct bounds *all, int64_t ns)
{
	return ns + middle(all);
}

/* Nodes that no message went to and came from bound nobody. */
static struct timeline timeline_of(const struct merge_clock *c, uint32_t n,
				   const struct bounds *all)
{
	struct timeline t = {.begin = INT64_MAX, .window_ns = c->window_ns};
	const struct range *r, *next;
	int64_t end = INT64_MIN;

	HASH_ITER (hh, c->ranges, r, next) {
		if (r->node >= n || !is_bounded(&all[r->node]))
			continue;
		t.moved |= llabs(middle(&all[r->node])) > c->window_ns / 2;
		t.begin = least(t.begin, moved(&all[r->node], r->first * c->window_ns));
		end = most(end, moved(&all[r->node], r->last * c->window_ns + c->window_ns / 2));
	}
	if (end == INT64_MIN)
		return t;
	while ((end - t.begin) / t.window_ns >= WINDOWS_MAX)
		t.window_ns *= 2;
	t.n = (uint32_t)((end - t.begin) / t.window_ns) + 1;
	return t;
}

static void place(const struct merge_clock *c, const struct timeline *t, const struct bounds *all,
		  struct link *l)
{
	const struct bounds *of = &all[clock_of(&l->key)];
	int64_t ns = l->key.window * c->window_ns + c->window_ns / 2;

	l->at = NONE;
	if (is_bounded(&all[l->key.from]) && is_bounded(&all[l->key.to]))
		l->at = (moved(of, ns) - t->begin) / t->window_ns;
}

static int by_window(const void *a, const void *b)
{
	const struct link *x = *(struct link *const *)a, *y = *(struct link *const *)b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->key.from != y->key.from)
		return x->key.from < y->key.from ? -1 : 1;
	return x->key.to < y->key.to ? -1 : x->key.to > y->key.to;
}

/* Those between nodes that there are, those of all time first. NULL: no memory. */
static struct link **sorted(const struct merge_clock *c, uint32_t n, uint32_t *count)
{
	struct link **links = calloc(HASH_COUNT(c->links) + 1, sizeof(struct link *)), *l, *tmp;

	*count = 0;
	if (!links)
		return NULL;
	HASH_ITER (hh, c->links, l, tmp) {
		l->at = l->key.window == ALL_TIME ? ALL_TIME : NONE;
		if (l->key.from < n && l->key.to < n)
			links[(*count)++] = l;
	}
	qsort(links, *count, sizeof(struct link *), by_window);
	return links;
}

/* Up to where links from @at on are of one window. */
static uint32_t end_of(struct link *const *links, uint32_t nlinks, uint32_t at)
{
	uint32_t end = at;

	while (end < nlinks && links[end]->at == links[at]->at)
		end++;
	return end;
}

static void begin_history(const struct timeline *t, struct history *h)
{
	uint32_t at;

	h->n = t->n;
	h->window_ms = (double)t->window_ns / 1e6;
	h->beside = t->moved ? 1.5 : 1;
	for (at = 0; at < WINDOWS_MAX; at++)
		h->at[at] = (struct bounds){.low = -NONE, .high = NONE};
}

/* What it was like in each window; @slack: what all of the time needed. @b: to work with. */
static void solve_windows(struct link *const *links, uint32_t nlinks, uint32_t n, uint32_t ref,
			  int64_t slack, struct bounds *b, struct history *h)
{
	uint32_t at, end, i;

	for (at = 0; at < nlinks && links[at]->at != NONE; at = end) {
		end = end_of(links, nlinks, at);
		slack = solve_window(links + at, end - at, n, ref, slack, b);
		for (i = 0; i < n; i++)
			h[i].at[links[at]->at] = b[i];
	}
}

/* @b: of @n nodes, twice. */
static void solve(const struct merge_clock *c, struct link **links, uint32_t nlinks, uint32_t n,
		  uint32_t ref, struct bounds *b, struct history *h, struct merge_fit *fits)
{
	uint32_t always = end_of(links, nlinks, 0), i;
	int64_t slack = solve_window(links, always, n, ref, 0, b);
	struct timeline t = timeline_of(c, n, b);

	for (i = always; i < nlinks; i++)
		place(c, &t, b, links[i]);
	qsort(links + always, nlinks - always, sizeof(struct link *), by_window);
	for (i = 0; i < n; i++)
		begin_history(&t, &h[i]);
	solve_windows(links + always, nlinks - always, n, ref, slack, b + n, h);
	for (i = 0; i < n; i++)
		make_fit(&h[i], &b[i], !slack, &fits[i]);
	fits[ref] = (struct merge_fit){0};
}

int merge_clock__solve(const struct merge_clock *c, uint32_t n, uint32_t ref,
		       struct merge_fit *fits)
{
	struct bounds *b = calloc(n, 2 * sizeof(*b));
	struct history *h = calloc(n, sizeof(*h));
	struct link **links;
	uint32_t nlinks, i;
	int err;

	links = sorted(c, n, &nlinks);
	err = b && h && links ? 0 : -ENOMEM;
	if (!err && nlinks)
		solve(c, links, nlinks, n, ref, b, h, fits);
	for (i = 0; !err && !nlinks && i < n; i++)
		fits[i].error = i == ref ? 0 : -1;
	free(links);
	free(h);
	free(b);
	return err;
}
