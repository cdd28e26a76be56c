// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends and Recvs into operations; see report.h. Those of a rank that are in one group are executed together, and each waits for its
 * other end, which has a group of its own: groups that are tied together so are one operation, as NCCL's SendRecv, be it a message
 * from one stage of a pipeline to the next or all that an AlltoAll is made of. Nothing numbers messages, but those from one rank to
 * another are received in the order in which they are sent. Memory is bounded by how many parts may wait (report_join.c), and
 * connections by CONNS_MAX.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "report_priv.h"

#define WAITS_MAX 65536 /* connections of which waits are kept, in 200 bytes each */
#define RANKS_MAX 4096	/* pairs of ranks that are compared before groups are tied together */
#define CONNS_MAX (1u << 18)
#define EVERY_NS  INT64_C(100000000) /* all that wait are looked through */
#define LINKS	  32		     /* of a rank in an operation, to peers that are told apart */

/* One end of a message, while the other one has not come. */
struct report_message {
	struct side *side;
	struct report_conn *conn;
	int64_t called, start, stop; /* of its process' clock */
	uint32_t life;		     /* of its rank */
	int32_t peer;
	struct report_message *prev, *next;	      /* in its connection's queue */
	struct report_message *side_prev, *side_next; /* of its side */
};

struct conn_key {
	uint64_t comm;
	int32_t from, to;
	uint32_t window, zero;
};

/* From one rank to another. */
struct report_conn {
	struct conn_key key;
	struct report_message *waiting; /* owned; in order, all of them sent or all received */
	bool sends;
	bool paired; /* the last one was: then the next ones belong together, too */
	const struct report_proc *proc[2]; /* who receives, sends; another one counts anew */
	uint32_t life[2];		   /* so many processes were that */
	uint64_t n[2];			   /* received, sent */
	struct report_waits *waits;	   /* owned; NULL: none yet */
	UT_hash_handle hh;
};

struct side_key {
	uint64_t comm, group;
	int32_t rank;
	uint32_t proc; /* its index: other processes may have the same ids */
};

/* What a rank has in an operation. */
struct side {
	struct side_key key;
	struct report_exchange *in;
	struct report_part *part; /* owned */
	uint64_t sent, received;  /* bytes */
	uint32_t nsent, nreceived;
	bool known;			/* it is in the table: more of its group may come */
	struct report_message *waiting; /* for their other end; owned by their connections */
	struct side *prev, *next;
	UT_hash_handle hh;
};

/* Groups that are tied together. */
struct report_exchange {
	uint64_t comm;
	struct side *sides;	  /* owned */
	struct report_conn *conn; /* of its messages the first, by ranks; NULL: none has room */
	uint32_t nsides;
	uint64_t ranks[16]; /* bits of some of them: if none are in common, no ranks are */
	uint32_t waits;	    /* messages, for their other end */
	uint64_t seq;	    /* the least of its messages', each by its connection and direction */
	struct report_awaited awaited;
	int64_t newest; /* by the real clock */
	int64_t since;	/* report_waits_since(), of its parts the last */
	struct report_exchange *prev, *next;
};

static uint64_t side_bytes(const struct side *s)
{
	return sizeof(*s) + sizeof(struct report_exchange) + report_part_bytes(s->part);
}

/* ---- Groups --------------------------------------------------------------------------------------------- */

static struct report_exchange **list_of(struct report *r, const struct report_exchange *x)
{
	return x->waits ? &r->awaiting : &r->settling;
}

static void add_waits(struct report *r, struct report_exchange *x, int32_t n)
{
	struct report_exchange **before = list_of(r, x), **now;

	x->waits += (uint32_t)n;
	now = list_of(r, x);
	if (now == before)
		return;
	DL_DELETE(*before, x);
	DL_APPEND(*now, x);
}

static struct side *new_side(struct report *r, const struct side_key *key, struct report_part *part)
{
	struct side *s = calloc(1, sizeof(*s));
	struct report_exchange *x = calloc(1, sizeof(*x));

	if (s)
		s->key = *key;
	if (s && x && key->group) {
		HASH_ADD(hh, r->sides, key, sizeof(s->key), s);
		s->known = HASH_ADDED(hh, s);
	}
	if (!s || !x || (key->group && !s->known)) {
		free(s);
		free(x);
		free(part);
		r->err = -ENOMEM;
		return NULL;
	}
	s->in = x;
	s->part = part;
	x->comm = key->comm;
	x->nsides = 1;
	x->ranks[key->rank / 64 % 16] |= UINT64_C(1) << key->rank % 64;
	x->seq = UINT64_MAX;
	x->newest = x->since = INT64_MIN;
	DL_APPEND(x->sides, s);
	DL_APPEND(r->settling, x);
	r->npending++;
	r->waiting_bytes += side_bytes(s);
	return s;
}

/* Of those to other peers, for which there is no room any more; the least bad one joins them, if it is less bad than @l. */
static struct report_link *overflow(struct report_part *p, const struct report_link *l)
{
	struct report_link *rest = NULL, *least_bad = NULL, *i;

	for (i = p->link; i < p->link + p->nlinks; i++) {
		if (i->send != l->send)
			continue;
		if (i->peer < 0)
			rest = i;
		else if (!least_bad || report_link_badness(i) < report_link_badness(least_bad))
			least_bad = i;
	}
	if (!rest || !least_bad || report_link_badness(l) <= report_link_badness(least_bad))
		return rest;
	report_link_merge(rest, least_bad);
	*least_bad = (struct report_link){.peer = l->peer, .send = l->send};
	return least_bad;
}

static struct report_link *link_for(struct report_part *p, const struct report_link *l)
{
	struct report_link *of = report_link_of(p->link, p->nlinks, l->peer, l->send);

	if (!of && report_links_full(p->link, p->nlinks, LINKS, l->send))
		of = overflow(p, l);
	return of ? of : report_link_to(p->link, &p->nlinks, LINKS, l->peer, l->send);
}

static void take_links(struct report *r, struct side *s, const struct report_part *more)
{
	uint32_t old = s->part->nlinks, n = (uint32_t)least(old + more->nlinks, LINKS), i;
	struct report_part *p = s->part;
	uint64_t before = side_bytes(s);

	if (n > old) {
		p = realloc(p, sizeof(*p) + n * sizeof(p->link[0]));
		if (!p) {
			r->err = -ENOMEM;
			return;
		}
		memset(p->link + old, 0, (n - old) * sizeof(p->link[0]));
		s->part = p;
	}
	for (i = 0; i < more->nlinks; i++)
		report_link_merge(link_for(p, &more->link[i]), &more->link[i]);
	r->waiting_bytes += side_bytes(s) - before;
}

/* When anything of it moved last. */
static int64_t moved(const struct report_part *p)
{
	return p->stop - p->quiet;
}

/* Its messages are under way side by side: what a port counted for one of them it has mostly counted for the others too. */
static void take_moved(struct report_moved *moved, const struct report_moved *more)
{
	int sign;

	for (sign = 0; sign < NR_SIGNS; sign++)
		if (more[sign].n > moved[sign].n)
			moved[sign] = more[sign];
}

/* What threads did is that of the one that took longest, as they served all at once. Takes @more over. */
static void take_more(struct report *r, struct side *s, struct report_part *more)
{
	struct report_part *p = s->part;
	int64_t last = most(moved(p), moved(more));
	int64_t end = most(p->stop + p->beyond, more->stop + more->beyond);

	if (part_ns(more) > part_ns(p)) {
		p->app = more->app;
		p->proxy = more->proxy;
	}
	if (more->start < p->start) {
		p->before = more->before;
		p->tid = more->tid;
	}
	/* a message to itself, by no proxy, has no end that is known */
	if (more->known)
		p->stop = p->known ? most(p->stop, more->stop) : more->stop;
	p->known |= more->known;
	p->start = least(p->start, more->start);
	p->stop = least(most(p->stop, p->start), p->start + REPORT_SPAN_MAX);
	p->quiet = most(0, p->stop - last);
	p->beyond = most(0, end - p->stop);
	p->unfinished |= more->unfinished;
	p->loss_near += more->loss_near;
	report_receiving_add(&p->receiving, &more->receiving);
	take_moved(p->moved, more->moved);
	p->kernel = report_first_kernel(p->kernel, more->kernel);
	p->after = most(p->after, more->after);
	take_links(r, s, more);
	free(more);
}

/* Takes the part over. */
static struct side *side_of(struct report *r, const struct report_op_info *info,
			    struct report_part *part)
{
	struct side_key key;
	struct side *s;

	memset(&key, 0, sizeof(key));
	key.comm = info->comm;
	key.group = info->group;
	key.rank = part->rank;
	key.proc = part->proc->index;
	HASH_FIND(hh, r->sides, &key, sizeof(key), s);
	if (s && s->part->known && !s->waiting &&
	    part->start > s->part->stop) { /* the id of a group that is over */
		HASH_DEL(r->sides, s);
		s->known = false;
		s = NULL;
	}
	if (s)
		take_more(r, s, part);
	else
		s = new_side(r, &key, part);
	return s;
}

/* Or may have: of many that is not looked up. */
static bool have_rank_in_common(const struct report_exchange *a, const struct report_exchange *b)
{
	const struct side *i, *k;
	bool may = false;
	uint32_t n;

	for (n = 0; n < 16; n++)
		may |= (a->ranks[n] & b->ranks[n]) != 0;
	if (!may || a->nsides * b->nsides > RANKS_MAX)
		return may;
	for (i = a->sides; i; i = i->next)
		for (k = b->sides; k; k = k->next)
			if (i->key.rank == k->key.rank)
				return true;
	return false;
}

static void await(struct report_awaited *a, int32_t rank)
{
	if (a->n < REPORT_AWAITED)
		a->rank[a->n] = rank;
	a->n++;
}

static void await_all(struct report_awaited *a, const struct report_awaited *more)
{
	uint32_t known = (uint32_t)least(more->n, REPORT_AWAITED), i;

	for (i = 0; i < known; i++)
		await(a, more->rank[i]);
	a->n += more->n - known;
}

static struct report_conn *first_conn(struct report_conn *a, struct report_conn *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->key.from != b->key.from)
		return a->key.from < b->key.from ? a : b;
	return a->key.to < b->key.to ? a : b;
}

/* Two groups of one rank never become one: each waits for the one before. */
static void tie(struct report *r, struct report_exchange *a, struct report_exchange *b)
{
	struct report_exchange **list, *less = a->nsides < b->nsides ? a : b,
				       *more = less == a ? b : a;
	struct side *s, *tmp;
	uint32_t i;

	if (a == b || a->nsides + b->nsides > REPORT_LATE || have_rank_in_common(less, more))
		return;
	list = list_of(r, less);
	DL_DELETE(*list, less);
	list = list_of(r, more);
	DL_DELETE(*list, more);
	for (s = less->sides; s; s = tmp) {
		tmp = s->next;
		DL_DELETE(less->sides, s);
		s->in = more;
		DL_APPEND(more->sides, s);
	}
	for (i = 0; i < 16; i++)
		more->ranks[i] |= less->ranks[i];
	more->conn = first_conn(more->conn, less->conn);
	more->nsides += less->nsides;
	more->waits += less->waits;
	more->seq = more->seq < less->seq ? more->seq : less->seq;
	more->newest = most(more->newest, less->newest);
	more->since = most(more->since, less->since);
	await_all(&more->awaited, &less->awaited);
	free(less);
	list = list_of(r, more);
	DL_APPEND(*list, more);
}

/* ---- Messages --------------------------------------------------------------------------------------------- */

static struct report_conn *conn_of(struct report *r, const struct report_op_info *info,
				   int32_t rank, uint32_t window)
{
	struct conn_key key = {.comm = info->comm,
			       .from = info->send ? rank : info->peer,
			       .to = info->send ? info->peer : rank,
			       .window = window};
	struct report_conn *c;

	HASH_FIND(hh, r->conns, &key, sizeof(key), c);
	if (c || HASH_COUNT(r->conns) >= CONNS_MAX)
		return c;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->key = key;
		HASH_ADD(hh, r->conns, key, sizeof(key), c);
	}
	if (!c || !HASH_ADDED(hh, c)) {
		free(c);
		r->err = -ENOMEM;
		return NULL;
	}
	return c;
}

/* It waits no longer. */
static void forget_message(struct report *r, struct report_message *m)
{
	DL_DELETE(m->conn->waiting, m);
	DL_DELETE2(m->side->waiting, m, side_prev, side_next);
	add_waits(r, m->side->in, -1);
	r->nmessages--;
	free(m);
}

/* Its other end is not in the input. */
static void give_up(struct report *r, struct report_message *m)
{
	m->conn->paired = false;
	await(&m->side->in->awaited, m->peer);
	forget_message(r, m);
}

/* Another process is that rank now: what the one before has sent, or waited for, is over. */
static void new_life(struct report *r, struct report_conn *c, bool send,
		     const struct report_proc *proc)
{
	struct report_message *m, *next;

	if (c->proc[send] == proc)
		return;
	for (m = c->sends == send ? c->waiting : NULL; m; m = next) {
		next = m->next;
		give_up(r, m);
	}
	c->paired = false;
	c->proc[send] = proc;
	c->life[send]++;
}

/* Which of two ends came too early to be of the same message as the other: <0 the one sent, >0 the one received, 0 neither. */
static int too_early(const struct report_conn *c, const struct report_message *sent,
		     const struct report_message *got)
{
	const struct report_proc *a = sent->side->part->proc, *b = got->side->part->proc;
	int64_t doubt = report_clocks_doubt(a, b);

	if (sent->life != got->life)
		return sent->life < got->life ? -1 : 1;
	if (a->clock != b->clock)
		return 0;
	if (got->stop + doubt < sent->start)
		return 1;
	/* bytes may wait for their receiver; but the first ones that are recorded do not wait for its call, as both make the connection */
	return !c->paired && sent->stop + doubt < got->called ? -1 : 0;
}

/* The one that waits for @m; NULL: none does, or (@alone) none can come. What cannot have an other end any more is given up. */
static struct report_message *other_end(struct report *r, struct report_conn *c, bool send,
					const struct report_message *m, bool *alone)
{
	struct report_message *o, *next;
	int early;

	*alone = false;
	for (o = c->sends != send ? c->waiting : NULL; o; o = next) {
		next = o->next;
		early = send ? too_early(c, m, o) : too_early(c, o, m);
		if (!early)
			return o;
		c->paired = false;
		if ((early < 0) == send) {
			*alone = true;
			return NULL;
		}
		give_up(r, o);
	}
	return NULL;
}

static void wait_for(struct report *r, bool send, const struct report_message *m)
{
	struct report_message *kept = malloc(sizeof(*kept));

	if (!kept) {
		r->err = -ENOMEM;
		return;
	}
	*kept = *m;
	m->conn->sends = send;
	DL_APPEND(m->conn->waiting, kept);
	DL_APPEND2(m->side->waiting, kept, side_prev, side_next);
	r->nmessages++;
	add_waits(r, m->side->in, 1);
}

static void add_message(struct report *r, bool send, const struct report_message *m)
{
	struct report_exchange *x = m->side->in;
	struct report_conn *c = m->conn;
	struct report_message *other;
	struct side *side;
	bool alone;

	x->conn = first_conn(x->conn, c);
	x->seq = x->seq < c->n[send] ? x->seq : c->n[send];
	c->n[send]++;
	other = other_end(r, c, send, m, &alone);
	if (alone)
		await(&x->awaited, m->peer);
	else if (!other)
		wait_for(r, send, m);
	if (!other)
		return;
	side = other->side;
	c->paired = true;
	forget_message(r, other);
	tie(r, m->side->in, side->in);
}

void report_p2p_add(struct report *r, const struct report_op_info *info, struct report_part *part,
		    int64_t start)
{
	struct report_message m = {
		.called = info->called, .start = start, .stop = part->stop, .peer = info->peer};
	int64_t at = part->stop + part->beyond + part->proc->offset,
		since = report_waits_since(part);
	bool sure = !part->loss_near; /* else one before it may have been lost */
	struct report_proc *proc = part->proc;
	int32_t rank = part->rank;

	m.side = side_of(r, info, part);
	if (!m.side)
		return;
	m.side->in->newest = most(m.side->in->newest, at);
	m.side->in->since = most(m.side->in->since, since);
	*(info->send ? &m.side->sent : &m.side->received) += info->bytes;
	*(info->send ? &m.side->nsent : &m.side->nreceived) += 1;
	m.conn = conn_of(r, info, rank, report_window_of(r, proc, at));
	if (!m.conn) {
		await(&m.side->in->awaited, m.peer);
		return;
	}
	new_life(r, m.conn, info->send, proc);
	m.life = m.conn->life[info->send];
	m.conn->paired &= sure;
	add_message(r, info->send, &m);
}

/* ---- Operations ---------------------------------------------------------------------------------------------- */

/*
 * Each with each, as in an AlltoAll, or each with as many as the others, as around a ring: who comes late holds up the others, as in a
 * collective. A pipeline has ends. Of two nobody knows.
 */
static bool is_of_all(const struct report_exchange *x, const struct report_comm *c)
{
	uint32_t one = x->sides ? x->sides->nsent : 0;
	bool each = true, alike = one > 0;
	const struct side *s;

	for (s = x->sides; s; s = s->next) {
		each &= s->nsent + 1 >= x->nsides && s->nreceived + 1 >= x->nsides;
		alike &= s->nsent == one && s->nreceived == one;
	}
	return (each || alike) && x->nsides > 2 && x->nsides >= HASH_COUNT(c->members);
}

static struct report_waits *waits_of(struct report *r, struct report_conn *c)
{
	if (!c || c->waits || r->nwaits == WAITS_MAX)
		return c ? c->waits : NULL;
	c->waits = calloc(1, sizeof(*c->waits));
	if (c->waits)
		r->nwaits++;
	else
		r->err = -ENOMEM;
	return c->waits;
}

static struct report_op *op_of(struct report *r, const struct report_exchange *x)
{
	struct report_op_info info = {.comm = x->comm, .seq = x->seq};
	const struct side *s;
	struct report_op *op;

	info.func = names__get(r->names, "SendRecv", 8);
	for (s = x->sides; s; s = s->next) {
		info.bytes = s->sent > info.bytes ? s->sent : info.bytes;
		info.bytes = s->received > info.bytes ? s->received : info.bytes;
	}
	op = report_op_new(r, &info);
	if (!op)
		return NULL;
	op->p2p = true;
	op->loose = x->awaited.n || !is_of_all(x, op->comm);
	op->waits = op->loose ? waits_of(r, x->conn) : NULL;
	op->awaited = x->awaited;
	return op;
}

static void free_sides(struct report *r, struct report_exchange *x)
{
	struct side *s, *tmp;

	for (s = x->sides; s; s = tmp) {
		tmp = s->next;
		if (s->known)
			HASH_DEL(r->sides, s);
		free(s->part);
		free(s);
	}
}

static void give_up_all(struct report *r, struct side *s)
{
	struct report_message *m, *next;

	for (m = s->waiting; m; m = next) {
		next = m->side_next;
		give_up(r, m);
	}
}

/* No more of it comes, or nobody waits for that. */
static void complete(struct report *r, struct report_exchange *x)
{
	struct report_exchange **list;
	struct report_op *op;
	struct side *s;

	for (s = x->sides; s; s = s->next) {
		give_up_all(r, s);
		r->waiting_bytes -= side_bytes(s);
	}
	list = list_of(r, x);
	DL_DELETE(*list, x);
	r->npending -= x->nsides;
	op = op_of(r, x);
	for (s = x->sides; s; s = s->next) {
		if (!op || report_op_add(r, op, s->part))
			continue;
		s->part = NULL;
	}
	free_sides(r, x);
	if (op)
		report_ready(r, op, x->newest);
	free(x);
}

/* Whether the input has a rank that it waits for, or may have it. */
static bool may_come(struct report *r, const struct report_exchange *x)
{
	const struct report_comm *c = report_comm(r, x->comm);
	const struct report_message *m;
	const struct side *s;

	for (s = x->sides; s; s = s->next)
		for (m = s->waiting; m; m = m->side_next)
			if (c && report_member_of(c, m->peer))
				return true;
	return false;
}

void report_p2p_expire(struct report *r, int64_t ns)
{
	struct report_exchange *x, *tmp;

	if (ns - r->p2p_seen < EVERY_NS)
		return;
	r->p2p_seen = ns;
	for (x = r->settling; x; x = tmp) {
		tmp = x->next;
		if (x->newest + REPORT_SETTLED < ns)
			complete(r, x);
	}
	for (x = r->awaiting; x; x = tmp) {
		tmp = x->next;
		if (x->since + REPORT_WAIT_NS < ns &&
		    (x->since + REPORT_GIVE_UP_NS < ns || !may_come(r, x)))
			complete(r, x);
	}
}

bool report_p2p_oldest(struct report *r, bool awaiting)
{
	struct report_exchange *x = awaiting ? r->awaiting : r->settling;

	if (x)
		complete(r, x);
	return x;
}

static void free_conn(struct report_conn *c)
{
	struct report_message *m, *next;

	for (m = c->waiting; m; m = next) {
		next = m->next;
		free(m);
	}
	free(c->waits);
	free(c);
}

void report_p2p_free(struct report *r)
{
	struct report_exchange *x, *tmp;
	struct report_conn *c, *ctmp;

	DL_CONCAT(r->settling, r->awaiting);
	for (x = r->settling; x; x = tmp) {
		tmp = x->next;
		free_sides(r, x);
		free(x);
	}
	HASH_ITER (hh, r->conns, c, ctmp) {
		HASH_DEL(r->conns, c);
		free_conn(c);
	}
}
