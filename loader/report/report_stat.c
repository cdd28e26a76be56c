// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations into classes and findings; see report.h. Memory is bounded by how many communicators, names and culprits there
 * may be, and by room for classes and for the operations that these hold.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "clock.h"
#include "nccl_names.h"
#include "report_priv.h"
#include "report_text_priv.h"

#define NAMES_MAX 65536
#define NAME_LEN  159
#define COMMS_MAX 65536
#define FINDS_MAX 131072
#define KINDS_ROOM                                                                                 \
	(UINT64_C(512) << 20) /* bytes, half of it for what they were found to have typically */
#define HELD_ROOM    (UINT64_C(384) << 20) /* bytes: 262,144 parts of a ring */
#define OPEN_ROOM    (UINT64_C(1) << 30)   /* bytes: 0.25 MB of each of 4,096 files */
#define WAITING_ROOM (UINT64_C(1) << 30)   /* bytes: REPORT_PARTS_MAX parts of a ring */
#define HUNG_ROOM    (UINT64_C(256) << 20)
#define MEMBERS_ROOM (1u << 20) /* of 0.3 KiB */
#define LIVES	     64		/* of a rank that are told apart: the last ones */
#define HUNG_NS	     NSEC_PER_SEC
#define ENOUGH	     8 /* operations that say what is usual for RDMA ports */

/* ---- Names ------------------------------------------------------------------------------------------------ */

struct name {
	UT_hash_handle hh;
	uint32_t id;
	char text[];
};

struct names {
	struct name *table;
	struct name **at; /* by number */
	uint32_t n, cap, max;
};

static struct name *add_name(struct names *n, const char *s, size_t len)
{
	struct name *name = calloc(1, sizeof(*name) + len + 1), **at;

	if (!name)
		return NULL;
	memcpy(name->text, s, len);
	name->id = n->n;
	if (n->n == n->cap) {
		at = reallocarray(n->at, n->cap * 2, sizeof(*at));
		if (!at) {
			free(name);
			return NULL;
		}
		n->at = at;
		n->cap *= 2;
	}
	HASH_ADD_KEYPTR(hh, n->table, name->text, len, name);
	if (!HASH_ADDED(hh, name)) {
		free(name);
		return NULL;
	}
	n->at[n->n++] = name;
	return name;
}

struct names *names__new(void)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->cap = 64;
	n->max = NAMES_MAX;
	n->at = calloc(n->cap, sizeof(*n->at));
	if (n->at && add_name(n, "", 0) && add_name(n, "(others)", 8))
		return n;
	names__free(n);
	return NULL;
}

void names__free(struct names *n)
{
	if (!n)
		return;
	HASH_FREE_ALL(n->table);
	free(n->at);
	free(n);
}

uint32_t names__get(struct names *n, const char *s, size_t len)
{
	struct name *name;

	if (len > NAME_LEN)
		for (len = NAME_LEN; len && ((unsigned char)s[len] & 0xc0) == 0x80; len--)
			; /* not amid a character */
	if (!len || memchr(s, 0, len))
		return 0;
	HASH_FIND(hh, n->table, s, len, name);
	if (!name && n->n < n->max)
		name = add_name(n, s, len);
	return name ? name->id : NAMES_OTHERS;
}

void names__more(struct names *n, uint32_t more)
{
	n->max += more;
}

uint32_t names__printf(struct names *n, const char *fmt, ...)
{
	char text[NAME_LEN + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return names__get(n, text, strlen(text));
}

const char *names__text(const struct names *n, uint32_t id)
{
	return id < n->n ? n->at[id]->text : "";
}

/* ---- Quantiles -------------------------------------------------------------------------------------------- */

/* HIST_SUB buckets for each power of two; below that one for each ns. */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t shift = 0;

	if (ns < 2 * HIST_SUB)
		return (uint32_t)ns;
	shift = 63 - (uint32_t)__builtin_clzll(ns) - 5;
	shift = shift * HIST_SUB + (uint32_t)(ns >> shift);
	return shift < HIST_BUCKETS ? shift : HIST_BUCKETS - 1;
}

/* The middle of a bucket. */
static int64_t bucket_ns(uint32_t b)
{
	uint32_t shift;

	if (b < 2 * HIST_SUB)
		return b;
	shift = b / HIST_SUB - 1;
	return ((int64_t)(b % HIST_SUB + HIST_SUB) << shift) + (INT64_C(1) << shift) / 2;
}

void hist__add(struct hist *h, int64_t ns)
{
	if (ns < 0)
		ns = 0;
	h->n++;
	h->sum += (uint64_t)ns;
	if (ns > h->max)
		h->max = ns;
	h->count[bucket_of((uint64_t)ns)]++;
}

void hist__merge(struct hist *h, const struct hist *more)
{
	uint32_t b;

	h->n += more->n;
	h->sum += more->sum;
	h->max = most(h->max, more->max);
	for (b = 0; b < HIST_BUCKETS; b++)
		h->count[b] += more->count[b];
}

int64_t hist__quantile(const struct hist *h, double q)
{
	double rank = q * (double)h->n;
	uint64_t want = (uint64_t)rank, seen = 0;
	uint32_t b;

	if ((double)want < rank - 1e-6 || !want)
		want++;
	for (b = 0; h->n && b < HIST_BUCKETS; b++) {
		seen += h->count[b];
		if (seen >= want)
			return bucket_ns(b) < h->max ? bucket_ns(b) : h->max;
	}
	return h->n ? h->max : 0;
}

/* ---- Communicators ------------------------------------------------------------------------------------------ */

struct report_comm *report_comm(struct report *r, uint64_t hash)
{
	struct report_comm *c;

	HASH_FIND(hh, r->comms, &hash, sizeof(hash), c);
	if (c)
		return c;
	if (HASH_COUNT(r->comms) >= COMMS_MAX)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->hash = hash;
		c->max_rank = -1;
		HASH_ADD(hh, r->comms, hash, sizeof(hash), c);
	}
	if (!c || !HASH_ADDED(hh, c)) {
		free(c);
		r->err = -ENOMEM;
		return NULL;
	}
	return c;
}

int32_t report_rank_in(const struct report_comm *c, int32_t rank)
{
	const struct report_member *m = report_member_of(c, rank);

	return m ? report_rank(m->proc, rank) : rank;
}

static void name_rank(const struct report_comm *c, int32_t rank, struct report_proc *p)
{
	int32_t of = c->nranks > 0 ? c->nranks : (int32_t)most(c->max_rank, rank) + 1;

	if (p->within == c->hash) {
		p->of = of;
		p->several |= p->rank != rank;
	} else if (!p->within || of > p->of) {
		p->rank = rank;
		p->of = of;
		p->within = c->hash;
		p->several = false;
	}
}

/* What is known of ranks is the process' that was it before. */
static void give_member(struct report_member *m, struct report_proc *p)
{
	struct report_comm *c = m->comm;

	if (m->proc == p)
		return;
	if (m->proc) {
		c->killed -= m->proc->killed;
		DL_DELETE(m->proc->in, m);
	}
	c->killed += p->killed;
	c->lag = most(c->lag, p->lag);
	m->proc = p;
	m->forgot = c->forgot;
	DL_PREPEND(p->in, m);
}

void report_killed(struct report_proc *p, bool killed)
{
	struct report_member *m;

	if (p->killed == killed)
		return;
	p->killed = killed;
	for (m = p->in; m; m = m->next)
		m->comm->killed += killed ? 1 : -1;
}

/* Above all that began before it; @newest: the rank's last life so far. False: there is no memory. */
static bool add_life(struct report_comm *c, struct report_member *newest, struct report_member *m,
		     const struct report_proc *p)
{
	struct report_member *later = newest;

	c->restarted |= newest != NULL;
	if (newest && report_begin(newest->proc) >= report_begin(p)) {
		while (later->before && report_begin(later->before->proc) >= report_begin(p))
			later = later->before;
		m->before = later->before;
		later->before = m;
		return true;
	}
	HASH_ADD(hh, c->members, rank, sizeof(m->rank), m);
	if (!HASH_ADDED(hh, m))
		return false;
	m->before = newest;
	if (newest)
		HASH_DEL(c->members, newest);
	return true;
}

/* The oldest one goes, if there are too many. */
static void limit_lives(struct report *r, struct report_member *newest)
{
	struct report_member **at = &newest, *m;
	uint32_t n;

	for (n = 0; *at && n < LIVES; n++)
		at = &(*at)->before;
	m = *at;
	if (!m)
		return;
	*at = NULL;
	m->comm->killed -= m->proc->killed;
	DL_DELETE(m->proc->in, m);
	free(m);
	r->nmembers--;
}

void report_member(struct report *r, struct report_comm *c, int32_t rank, struct report_proc *p)
{
	struct report_member *newest = report_member_of(c, rank), *m = report_life_of(newest, p);

	c->first = c->first ?: p;
	name_rank(c, rank, p);
	if (p->self != p)
		name_rank(c, rank, p->self);
	if (m)
		give_member(m, p); /* its newest recording: how that ended is how it did */
	/* where no communicator is known, others may be that rank as well, of another one */
	if (m || (newest && !c->hash))
		return;
	if ((!newest && HASH_COUNT(c->members) >= REPORT_PARTS) || r->nmembers >= r->members_room) {
		r->totals.strangers++;
		return;
	}
	m = calloc(1, sizeof(*m));
	if (m) {
		m->rank = rank;
		m->comm = c;
	}
	if (!m || !add_life(c, newest, m, p)) {
		free(m);
		r->err = -ENOMEM;
		return;
	}
	give_member(m, p);
	r->nmembers++;
	if (rank > c->max_rank)
		c->max_rank = rank;
	if (newest)
		limit_lives(r, report_member_of(c, rank));
}

static void add_class(struct report_comm *c, struct report_class *k)
{
	k->comm = c;
	if (c->last_class)
		c->last_class->next = k;
	else
		c->classes = k;
	c->last_class = k;
}

struct report_class *report_class_of(struct report *r, struct report_comm *c,
				     const struct report_op_info *info)
{
	struct report_class_key key;
	struct report_class *k;

	memset(&key, 0, sizeof(key));
	key.comm = info->comm;
	key.func = info->func;
	key.algo = info->algo;
	key.proto = info->proto;
	key.size = report_log2(info->bytes);
	HASH_FIND(hh, r->classes, &key, sizeof(key), k);
	if (k || r->kinds_bytes + sizeof(*k) > r->kinds_room / 2)
		return k;
	k = calloc(1, sizeof(*k));
	if (k) {
		k->key = key;
		k->min_bytes = UINT64_MAX;
		HASH_ADD(hh, r->classes, key, sizeof(key), k);
	}
	if (!k || !HASH_ADDED(hh, k)) {
		free(k);
		r->err = -ENOMEM;
		return NULL;
	}
	add_class(c, k);
	r->kinds_bytes += sizeof(*k);
	return k;
}

/* ---- Findings -------------------------------------------------------------------------------------------------- */

/* @comm: of the operation; NULL: of none. Of a process that is several ranks, those of two communicators may not be the same. */
static struct report_find *find_of(struct report *r, const struct report_comm *comm,
				   const struct report_cause *c)
{
	struct report_find_key key;
	struct report_find *f;

	memset(&key, 0, sizeof(key));
	key.code = c->code;
	key.proc = c->proc ? c->proc->self->index : UINT32_MAX;
	key.culprit = c->culprit;
	key.rank = !c->proc || c->proc->several ? c->rank : -1;
	key.comm = comm && c->proc && c->proc->several ? comm->hash : 0;
	HASH_FIND(hh, r->finds, &key, sizeof(key), f);
	if (f || HASH_COUNT(r->finds) >= FINDS_MAX)
		return f;
	f = calloc(1, sizeof(*f));
	if (f) {
		f->key = key;
		f->who = c->proc ? c->proc->self : NULL;
		HASH_ADD(hh, r->finds, key, sizeof(key), f);
	}
	if (!f || !HASH_ADDED(hh, f)) {
		free(f);
		r->err = -ENOMEM;
		return NULL;
	}
	return f;
}

static void keep_worst(struct report_find *f, const struct report_op *op,
		       const struct report_verdict *v, int64_t by)
{
	if (by <= f->worst)
		return;
	f->worst = by;
	f->comm = op->comm;
	memcpy(f->evidence, v->evidence, sizeof(f->evidence));
}

/* Its place among the slow ones of its class, longest first. */
static void note_slow(const struct report_op *op, const struct report_verdict *v, int64_t expected,
		      bool hung)
{
	struct report_class *k = op->class;
	uint32_t i = k->nslow;

	k->all_slow++;
	if (i == REPORT_SLOW && k->slow[i - 1].duration >= v->duration)
		return;
	if (i < REPORT_SLOW)
		k->nslow++;
	else
		i--;
	for (; i > 0 && k->slow[i - 1].duration < v->duration; i--)
		k->slow[i] = k->slow[i - 1];
	k->slow[i] = (struct report_slow){.seq = op->seq,
					  .func = op->func,
					  .who = v->cause.proc,
					  .rank = v->cause.rank,
					  .culprit = v->cause.culprit,
					  .code = v->cause.code,
					  .duration = v->duration,
					  .expected = expected,
					  .confidence = v->confidence,
					  .hung = hung};
}

/* Of a hang only what RDMA ports count: none of it is usual, and they go on counting. */
static void set_typical(const struct report_class *k, bool hung, struct report_typical *typical)
{
	double n = k->not_long ? (double)k->not_long : 1;
	int i;

	for (i = 0; i < NR_CODES && !hung; i++)
		if (k->typical[i])
			typical->ns[i] = hist__quantile(k->typical[i], 0.5);
	if (k->stall && !hung)
		typical->stall = hist__quantile(k->stall, 0.5);
	for (i = 0; i < NR_SIGNS; i++) {
		typical->share[i] = (double)k->counted[i] / n;
		if (k->counted[i])
			typical->rate[i] = k->rate[i] ? hist__quantile(k->rate[i], 0.5) : INT64_MAX;
	}
	if (k->not_long >= ENOUGH)
		typical->window = k->window / n;
}

static void slow_verdict(struct report *r, const struct report_op *op,
			 const struct report_cause *causes, uint32_t n, int64_t expected, bool hung)
{
	struct report_typical typical = {.stall = 0};
	int64_t duration = op->own;
	/* of what is slow only by what was asked for, all of it is */
	bool all = hung || (r->opt.slower_than && duration < 2 * expected);
	struct report_verdict v;
	struct report_find *f;

	set_typical(op->class, hung, &typical);
	report_judge(op, causes, n, all ? duration : duration - expected, &typical, r->names, &v);
	note_slow(op, &v, expected, hung);
	f = find_of(r, op->comm, &v.cause);
	if (!f)
		return;
	f->slow++;
	f->hung += hung;
	f->slow_ns += v.cause.code == CODE_UNKNOWN ? v.excess : v.explained;
	if (v.cause.code == CODE_UNKNOWN) {
		op->comm->whole.unknown++;
		op->comm->whole.unknown_ns += v.excess;
	}
	f->slow_conf += v.confidence;
	f->loss_near += report_losses_near(op);
	report_gpu_note(r, f, op, v.cause.part);
	keep_worst(f, op, &v, v.excess);
}

static void sum_odd(struct report *r, const struct report_op *op, const struct report_cause *c)
{
	static const struct report_typical none;
	struct report_find *f = find_of(r, op->comm, c);
	struct report_verdict v;

	if (!f)
		return;
	f->ops++;
	f->odd_ns += c->odd_ns;
	op->comm->whole.odd_ns[c->code] += c->odd_ns;
	report_gpu_note(r, f, op, c->part);
	if (c->odd_ns <= f->worst)
		return;
	report_judge(op, c, 1, c->odd_ns, &none, r->names, &v);
	keep_worst(f, op, &v, c->odd_ns);
	f->confidence = v.confidence;
}

/*
 * What takes much of the time of operations that are no slower than the others, as all of them suffer. Interrupts take a
 * little of each, and make other things worse: they count where they are not the most of it, too.
 */
static void odd_causes(struct report *r, const struct report_op *op,
		       const struct report_cause *causes, uint32_t n)
{
	const struct report_cause *c = report_primary(causes, n);
	uint32_t i;

	if (c)
		sum_odd(r, op, c);
	for (i = 0; i < n; i++)
		if (&causes[i] != c && causes[i].code == CODE_INTERRUPTS && causes[i].odd_ns > 0)
			sum_odd(r, op, &causes[i]);
}

/* ---- Operations ---------------------------------------------------------------------------------------------- */

uint64_t report_op_bytes(const struct report_op *op)
{
	uint64_t bytes = sizeof(*op) + (op->cap + 3ull * op->nparts) * sizeof(struct report_part *);
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		bytes += report_part_bytes(op->parts[i]);
	return bytes;
}

void report_op_free(struct report_op *op)
{
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		free(op->parts[i]);
	free(op->parts);
	free(op->index);
	free(op);
}

static double share_of(const struct report_part *p, bool send)
{
	double part = 0, whole = 0;
	uint32_t i;

	for (i = 0; i < p->nlinks; i++) {
		if (p->link[i].send != send)
			continue;
		part += (double)(send ? p->link[i].no_room : p->link[i].no_data);
		whole += (double)p->link[i].dur;
	}
	return whole > 0 ? part < whole ? part / whole : 1 : 0;
}

/* What the others had its rank wait: for data, or before all had come. */
static int64_t wait_of(const struct report_part *p)
{
	double ns = (double)p->receiving.ns, share = ns > 0 ? (double)p->receiving.wait / ns : 0;

	return most((int64_t)((share < 1 ? share : 1) * (double)part_ns(p)),
		    least(p->last_start - p->start, part_ns(p)));
}

static bool has_flows(const struct report_part *p)
{
	uint32_t i;

	for (i = 0; i < p->nlinks; i++)
		if (p->link[i].tcp)
			return true;
	return false;
}

static void sum_kind(struct report_class *k, const struct report_part *p)
{
	k->flows |= has_flows(p);
	k->op_span += part_ns(p);
	k->late += least(p->last_start - p->start, part_ns(p));
	k->no_data += (int64_t)(share_of(p, false) * (double)part_ns(p));
	k->on += p->proxy.on;
	k->runq += p->proxy.runq;
	k->blocked += p->proxy.blocked;
	k->proxy_span += p->proxy.span;
}

static void sum_proc(struct report *r, struct report_part *p)
{
	struct report_proc *proc = p->proc->self;
	int64_t wait = wait_of(p);
	double gpu = 0, dur = 0;
	uint32_t i;

	for (i = 0; i < p->nlinks; i++) {
		gpu += (double)p->link[i].gpu;
		dur += (double)p->link[i].dur;
	}
	proc->flows |= has_flows(p);
	proc->op_ns += part_ns(p);
	proc->on += p->proxy.on;
	proc->runq += p->proxy.runq;
	proc->blocked += p->proxy.blocked;
	proc->irq += p->proxy.irq;
	proc->throttled += p->proxy.throttled;
	proc->wait_peer += wait;
	proc->wait_net += (int64_t)(share_of(p, true) * (double)part_ns(p));
	proc->wait_gpu += dur > 0 ? (int64_t)(gpu / dur * (double)part_ns(p)) : 0;
	report_heat_add(r, p, wait);
}

/* NULL: there is no room. So many operations @before had nothing of it. */
static struct hist *new_typical(struct report *r, uint64_t before)
{
	struct hist *h;

	if (r->typical_bytes + sizeof(*h) > r->kinds_room / 2)
		return NULL;
	h = calloc(1, sizeof(*h));
	if (!h) {
		r->err = -ENOMEM;
		return NULL;
	}
	r->typical_bytes += sizeof(*h);
	h->n = before;
	h->count[0] = (uint32_t)before;
	return h;
}

static void learn_one(struct report *r, struct hist **h, uint64_t before, int64_t v)
{
	if (v && !*h)
		*h = new_typical(r, before);
	if (*h)
		hist__add(*h, v);
}

static int64_t expected_of(const struct report_class *k)
{
	return hist__quantile(&k->time, 0.5);
}

static bool is_long(const struct report_op *op, int64_t expected)
{
	return (double)op->own > REPORT_TOO_LONG * (double)expected;
}

/* What ports count while operations do not take long: that does not make them so. All of their times are known by now, or many. */
static void learn_ports(struct report *r, const struct report_op *op, int64_t expected)
{
	struct report_class *k = op->class;
	int64_t rate;
	int i;

	if (is_long(op, expected))
		return;
	learn_one(r, &k->stall, k->not_long, report_stall(op));
	for (i = 0; i < NR_SIGNS; i++) {
		rate = report_sign_rate(op, i);
		k->counted[i] += rate > 0;
		learn_one(r, &k->rate[i], k->not_long, rate);
	}
	k->window += (double)report_ports_window(op);
	k->not_long++;
}

/* What of each kind operations of the class have; a slow one is held against that. */
static void learn(struct report *r, const struct report_op *op)
{
	int64_t duration = op->own;
	int64_t longest[NR_CODES] = {0};
	struct report_cause causes[REPORT_CAUSES];
	struct report_class *k = op->class;
	uint32_t n = report_causes(op, r->names, causes), i;

	hist__add(&k->time, duration);
	for (i = 0; i < n; i++)
		if (causes[i].ns > longest[causes[i].code])
			longest[causes[i].code] = causes[i].ns;
	for (i = 0; i < NR_CODES; i++)
		learn_one(r, &k->typical[i], k->time.n - 1, longest[i]);
}

static void judge(struct report *r, const struct report_op *op, int64_t expected)
{
	struct report_cause causes[REPORT_CAUSES];
	int64_t d = op->own;
	bool slow = r->opt.slower_than ? d > r->opt.slower_than : is_long(op, expected);
	uint32_t n = report_causes(op, r->names, causes);

	r->judged++;
	/* the first operation makes connections and threads: it is no measure, and no wonder if it is slow */
	if (op->seq || r->opt.slower_than) {
		op->comm->whole.ns += d;
		op->comm->whole.ops++;
		odd_causes(r, op, causes, n);
	}
	if (slow && (op->seq || r->opt.slower_than))
		slow_verdict(r, op, causes, n, expected, false);
}

static void warm_up(struct report *r, struct report_class *k)
{
	int64_t expected;
	uint32_t i;

	for (i = 0; i < k->nheld; i++)
		learn(r, k->held[i]);
	expected = expected_of(k);
	for (i = 0; i < k->nheld; i++)
		learn_ports(r, k->held[i], expected);
	for (i = 0; i < k->nheld; i++) {
		judge(r, k->held[i], expected);
		r->held_bytes -= report_op_bytes(k->held[i]);
		report_op_free(k->held[i]);
	}
	k->nheld = 0;
	k->warm = true;
}

/*
 * They hold more than there is room for: those that have most operations wait for no more, as their median is as good as any. A quarter
 * at a time, so that they are not looked through for each.
 */
static void warm_up_some(struct report *r)
{
	struct report_class *k, *tmp;
	uint32_t longest = 0;

	HASH_ITER (hh, r->classes, k, tmp)
		longest = k->nheld > longest ? k->nheld : longest;
	HASH_ITER (hh, r->classes, k, tmp) {
		if (k->nheld && k->nheld >= longest - longest / 4)
			warm_up(r, k);
		if (r->held_bytes <= r->held_room - r->held_room / 4)
			return;
	}
}

/* It waits for the first median of its class. */
static void hold(struct report *r, struct report_class *k, struct report_op *op)
{
	k->held[k->nheld++] = op;
	r->held_bytes += report_op_bytes(op);
	if (k->nheld == REPORT_HELD)
		warm_up(r, k);
	while (r->held_bytes > r->held_room)
		warm_up_some(r);
}

static bool was_reset_in(const struct report_part *p)
{
	return p->proc->reset_ns && p->proc->reset_ns >= p->start;
}

bool report_stands_still(const struct report_op *op)
{
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		if (op->parts[i]->unfinished &&
		    (op->parts[i]->quiet + op->parts[i]->beyond >= HUNG_NS ||
		     was_reset_in(op->parts[i])))
			return true;
	return false;
}

/* Whether one of its ranks is, in the life that it is of. */
static bool has_killed(const struct report_op *op)
{
	struct report_member *m, *tmp;
	int64_t until;

	if (!op->comm->killed || !op->comm->restarted)
		return op->comm->killed;
	until = report_open_until(op);
	HASH_ITER (hh, op->comm->members, m, tmp)
		if (report_member_in(op, m, until)->proc->killed)
			return true;
	return false;
}

bool report_is_hung(const struct report_op *op)
{
	return report_stands_still(op) || has_killed(op);
}

void report_judge_hung(struct report *r, const struct report_op *op, struct report_verdict *v)
{
	struct report_cause causes[REPORT_CAUSES];
	uint32_t n = report_causes(op, r->names, causes);
	struct report_typical typical = {.stall = 0};

	set_typical(op->class, true, &typical);
	report_judge(op, causes, n, op->own, &typical, r->names, v);
}

static void judge_hung(struct report *r, const struct report_op *op)
{
	struct report_cause causes[REPORT_CAUSES];
	uint32_t n = report_causes(op, r->names, causes), i;

	r->judged++;
	for (i = 0; i < op->nparts; i++)
		report_judged_with(r, op->parts[i]->proc)->of_job.hangs = true;
	slow_verdict(r, op, causes, n, expected_of(op->class), true);
}

/* It is the first one of its rank, which is not in the one that is told of. */
static bool hangs_apart(const struct report_comm *c, const struct report_op *op,
			const struct report_part *p)
{
	const struct report_member *m = report_member_as(c, p);

	return m && m->hung == op && !report_part_of(c->hung, p->rank);
}

/* It has been judged by the last word of it; its rank was in it for as long as its recording goes on. */
static void go_on(struct report_part *p)
{
	p->stop += p->beyond;
	p->quiet += p->beyond;
	p->beyond = 0;
}

/* Up to when they were seen last. Those that came after them, and wait behind them, would be the same time again. */
static void sum_hung(struct report *r, const struct report_comm *c)
{
	struct report_op *op;
	uint32_t i;

	for (op = c->hung; op; op = op->next)
		for (i = 0; i < op->nparts; i++)
			if (op == c->hung || hangs_apart(c, op, op->parts[i])) {
				go_on(op->parts[i]);
				sum_proc(r, op->parts[i]);
			}
}

/* Remembers when a process was stopped: it may be late for the next operation because of that. */
static void note_stop(const struct report *r, struct report_part *p)
{
	const struct report_who *longest = NULL, *in;
	uint32_t i;

	for (i = 0; i < 2 * REPORT_WHO; i++) {
		in = i < REPORT_WHO ? &p->proxy.in[i] : &p->app.in[i - REPORT_WHO];
		if ((!longest || in->ns > longest->ns) && report_is_stop(r->names, in->name))
			longest = in;
	}
	if (!longest || longest->ns <= p->proc->stop_ns)
		return;
	p->proc->stop_ns = longest->ns;
	p->proc->stop_why = longest->name;
	p->proc->stop_from = p->start;
	p->proc->stop_to = p->stop;
}

void report_finish(struct report *r, struct report_op *op)
{
	struct report_class *k = op->class;
	bool known = false, open = false;
	int64_t expected;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		known |= op->parts[i]->known;
		open |= op->parts[i]->unfinished;
		note_stop(r, op->parts[i]);
	}
	r->totals.ops++;
	k->n++;
	op->comm->ops++;
	if (open && report_is_hung(op)) {
		report_hung_take(r, op);
		return;
	}
	if (!open && known) {
		k->bytes += (double)op->bytes;
		for (i = 0; i < op->nparts; i++) {
			sum_kind(k, op->parts[i]);
			sum_proc(r, op->parts[i]);
		}
		if (k->warm) {
			learn(r, op);
			expected = expected_of(k);
			learn_ports(r, op, expected);
			judge(r, op, expected);
		} else {
			hold(r, k, op);
			return;
		}
	}
	k->unknown_time += !known;
	report_op_free(op);
}

/* ---- The end ---------------------------------------------------------------------------------------------------------- */

/* In the table, of which its seat is the key; NULL: none, or several. */
static const struct report_proc *only_at(const struct report_proc *seats, struct report_seat seat)
{
	const struct report_proc *p;

	HASH_FIND(seat_hh, seats, &seat, sizeof(seat), p);
	return p && !p->shares_seat ? p : NULL;
}

/* Which processes are at the other ends of resets. */
static void meet_resets(struct report *r)
{
	struct report_proc *seats = NULL, *p, *other;

	for (p = r->procs; p; p = p->next) {
		if (p->self != p)
			continue;
		p->seat = (struct report_seat){p->host, p->pid};
		HASH_FIND(seat_hh, seats, &p->seat, sizeof(p->seat), other);
		if (other)
			other->shares_seat = true;
		else
			HASH_ADD(seat_hh, seats, seat, sizeof(p->seat), p);
	}
	for (p = r->procs; p; p = p->next)
		if (p->reset_ns && p->reset_pid >= 0)
			p->reset_by = only_at(seats, (struct report_seat){p->reset_host ?: p->host,
									  p->reset_pid});
	HASH_CLEAR(seat_hh, seats);
}

#define FAILED_CONF 0.8 /* a reset or a crash, and then a job that failed */
#define EXITED_CONF 0.5 /* what one exits of may be what the others do, too */

/* A finding that is of no operation: of how the job failed. */
static struct report_find *failure(struct report *r, enum report_code code,
				   const struct report_proc *p, uint32_t culprit, double sure)
{
	const struct report_cause cause = {
		.code = code, .proc = p, .rank = p->rank, .culprit = culprit};
	struct report_find *f = find_of(r, NULL, &cause);

	if (f)
		f->failed = sure;
	return f;
}

/* When the first process failed, in whatever way. */
static int64_t first_failure(const struct report_proc *failed)
{
	const struct report_proc *p;
	int64_t first = INT64_MAX;

	for (p = failed; p; p = p->failed_next)
		first = least(first, p->died);
	return first;
}

/*
 * Any connection of a process may be reset and no harm done. It failed of that if no operation of it ended after it; or if it did
 * so soon after, as operations under way end. Not if it had been sent the signal of its end before: who ends a job breaks its connections.
 */
static bool failed_of_reset(const struct report *r, const struct report_proc *p, int64_t failure)
{
	return p->reset_ns && p->reset_ns + p->offset <= report_died_at(p, r->names) &&
	       (p->op_ended <= p->reset_ns || failure - p->reset_ns - p->offset <= REPORT_FAILS);
}

static const struct report_proc *first_reset(const struct report *r,
					     const struct report_proc *failed, int64_t failure)
{
	const struct report_proc *p, *first = NULL;

	for (p = failed; p; p = p->failed_next)
		if (failed_of_reset(r, p, failure) &&
		    (!first || p->reset_ns + p->offset < first->reset_ns + first->offset))
			first = p;
	return first;
}

static const struct report_proc *first_crash(const struct report *r,
					     const struct report_proc *failed, int64_t *when)
{
	const struct report_proc *p, *first = NULL;
	int64_t at;

	for (p = failed; p; p = p->failed_next)
		if (p->of > 1 && report_has_crashed(r, p, &at) && (!first || at < *when)) {
			first = p;
			*when = at;
		}
	return first;
}

/* A rank of several that crashed, and then the others failed. */
static void tell_crash(struct report *r, const struct report_proc *p)
{
	struct report_find *f = failure(r, CODE_MISSING, p, 0, FAILED_CONF);

	if (!f)
		return;
	snprintf(f->evidence[0], sizeof(f->evidence[0]),
		 "its process ended by %.40s, and no operation was seen under way",
		 names__text(r->names, p->end));
	report_tell_end(p, r->names, f->evidence[1], sizeof(f->evidence[1]));
}

/* How many of its job failed soon after it, and by when (the last of them). */
static uint32_t failed_after(const struct report_proc *first, int64_t *last)
{
	const struct report_proc *p;
	uint32_t n = 0;

	*last = first->died;
	for (p = first->job->of_job.failed; p; p = p->failed_next) {
		if (p->self == first->self || p->job != first->job || p->died < first->died ||
		    p->died - first->died > REPORT_FAILS)
			continue;
		n++;
		*last = most(*last, p->died);
	}
	return n;
}

/* A rank of several that exited with an error status before any other failed, and then others did. */
static const struct report_proc *first_exit(const struct report *r,
					    const struct report_proc *failed)
{
	const struct report_proc *p, *first = NULL;
	int64_t last;

	for (p = failed; p; p = p->failed_next)
		if (p->of > 1 && !p->along && report_has_exited(r, p) && failed_after(p, &last) &&
		    (!first || p->died < first->died))
			first = p;
	return first;
}

static void tell_exit(struct report *r, const struct report_proc *p)
{
	struct report_find *f = failure(r, CODE_MISSING, p, 0, EXITED_CONF);
	int64_t last;
	uint32_t n;

	if (!f)
		return;
	n = failed_after(p, &last);
	snprintf(f->evidence[0], sizeof(f->evidence[0]),
		 "it was the first of %u processes to fail, within %s, and no operation was seen "
		 "under way",
		 n + 1, words__span(last - p->died));
	report_tell_failed(p, r->names, f->evidence);
}

/* A job that failed after a connection was reset may have had no operation under way just then. */
static void tell_reset(struct report *r, const struct report_proc *p)
{
	struct report_find *f = failure(r, CODE_RESET, p, p->reset_flow, FAILED_CONF);

	if (!f)
		return;
	snprintf(f->evidence[0], sizeof(f->evidence[0]),
		 "a connection was reset (%.20s), then the job failed",
		 names__text(r->names, p->reset_why));
	report_tell_reset(p, r->names, f->evidence[1], sizeof(f->evidence[1]));
}

/* What came first: others follow from it. The connections of who exits break as it does, and its last record comes after that. */
static void judge_failure(struct report *r, const struct report_proc *failed)
{
	int64_t failure = first_failure(failed), when = 0;
	const struct report_proc *reset = first_reset(r, failed, failure),
				 *exited = first_exit(r, failed),
				 *crash = first_crash(r, failed, &when);

	if (crash && when <= failure && (!reset || when <= reset->reset_ns + reset->offset))
		tell_crash(r, crash);
	else if (exited && (!reset || reset->reset_by == exited->self ||
			    exited->died <= reset->reset_ns + reset->offset))
		tell_exit(r, exited);
	else if (reset)
		tell_reset(r, reset);
}

/* Each job by itself: others end whenever they do. One that hangs has its verdict. */
static void judge_failures(struct report *r)
{
	struct report_proc *p;

	for (p = r->procs; p; p = p->next)
		if (p->failed)
			DL_APPEND2(report_judged_with(r, p)->of_job.failed, p, failed_prev,
				   failed_next);
	for (p = r->procs; p; p = p->next)
		if (p->of_job.failed && !p->of_job.hangs)
			judge_failure(r, p->of_job.failed);
}

static int cmp_proc(const void *a, const void *b)
{
	const struct report_proc *x = *(struct report_proc *const *)a,
				 *y = *(struct report_proc *const *)b;
	int order = report_compare_groups(x, y);

	if (order)
		return order;
	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : x->index < y->index ? -1 : 1;
}

/* For people: ranks in order. */
static void sort_procs(struct report *r)
{
	struct report_proc **list = calloc(r->nprocs + 1, sizeof(*list)), *p;
	uint32_t i, n = 0;

	if (!list)
		return; /* in the order of their files, then */
	for (p = r->procs; p; p = p->next)
		list[n++] = p;
	qsort(list, n, sizeof(*list), cmp_proc);
	for (i = 0; i < n; i++)
		list[i]->next = list[i + 1];
	r->procs = list[0];
	free(list);
}

void report_times(const struct report *r, int64_t *first, int64_t *last)
{
	const struct report_proc *p;

	*first = INT64_MAX;
	*last = 0;
	for (p = r->procs; p; p = p->next) {
		if (p->last && p->first + p->offset < *first)
			*first = p->first + p->offset;
		if (p->last && p->last + p->offset > *last)
			*last = p->last + p->offset;
	}
}

uint32_t report_partial(const struct report *r, const struct report_comm **worst)
{
	const struct report_comm *c, *tmp;
	uint32_t n = 0;

	*worst = NULL;
	if (r->totals.strangers)
		return 0; /* who is not known may be here all the same */
	HASH_ITER (hh, r->comms, c, tmp) {
		/* a communicator without numbers of operations has no members */
		if (!c->ops || !c->members || report_nranks(c) <= (int32_t)HASH_COUNT(c->members))
			continue;
		n++;
		if (!*worst || report_nranks(c) > report_nranks(*worst))
			*worst = c;
	}
	return n;
}

void report_end(struct report *r)
{
	struct report_class *k, *ktmp;
	struct report_comm *c, *ctmp;

	report_join_end(r);
	HASH_ITER (hh, r->classes, k, ktmp)
		warm_up(r, k);
	meet_resets(r);
	report_note_jobs(r);
	report_note_ops(r);
	report_note_deaths(r);
	report_hung_end(r);
	HASH_ITER (hh, r->comms, c, ctmp)
		if (c->hung && !c->follows)
			judge_hung(r, c->hung);
	judge_failures(r);
	report_weigh(r);
	HASH_ITER (hh, r->comms, c, ctmp)
		sum_hung(r, c);
	sort_procs(r);
	report_ports_end(r);
	report_gpus_end(r);
	report_kmsg_end(r);
	report_heat_end(r->heat);
}

static int cmp_cost(const void *a, const void *b)
{
	const struct report_find *x = *(struct report_find *const *)a,
				 *y = *(struct report_find *const *)b;
	bool x_ended = x->hung || x->failed > 0, y_ended = y->hung || y->failed > 0;

	/* what holds the job up for good costs most */
	if (x_ended != y_ended)
		return x_ended ? -1 : 1;
	return x->cost < y->cost ? 1 : x->cost > y->cost ? -1 : 0;
}

struct report_find **report_findings(const struct report *r, uint32_t *n)
{
	struct report_find **list = calloc(HASH_COUNT(r->finds) + 1, sizeof(*list)), *f, *tmp;

	*n = 0;
	if (!list)
		return NULL;
	HASH_ITER (hh, r->finds, f, tmp)
		if (f->named)
			list[(*n)++] = f;
	qsort(list, *n, sizeof(*list), cmp_cost);
	return list;
}

static void free_procs(struct report *r)
{
	struct report_proc *p, *next;

	HASH_CLEAR(hh, r->selves);
	free(r->windows);
	for (p = r->procs; p; p = next) {
		next = p->next;
		HASH_FREE_ALL(p->threads);
		report_gpus_told_free(p);
		free(p);
	}
}

static void free_lives(struct report_member *m)
{
	struct report_member *before;

	for (; m; m = before) {
		before = m->before;
		free(m);
	}
}

static void free_comms(struct report *r)
{
	struct report_member *m, *mtmp;
	struct report_comm *c, *ctmp;

	HASH_ITER (hh, r->comms, c, ctmp) {
		HASH_ITER (hh, c->members, m, mtmp)
			free_lives(m->before);
		HASH_FREE_ALL(c->members);
		report_hung_free(r, c);
		HASH_DEL(r->comms, c);
		free(c);
	}
}

static void free_class(struct report_class *k)
{
	uint32_t i;

	for (i = 0; i < k->nheld; i++)
		report_op_free(k->held[i]);
	for (i = 0; i < NR_CODES; i++)
		free(k->typical[i]);
	for (i = 0; i < NR_SIGNS; i++)
		free(k->rate[i]);
	free(k->stall);
	free(k);
}

void report_free(struct report *r)
{
	struct report_class *k, *ktmp;
	struct report_port *port, *ptmp;
	struct report_gpu *gpu, *gtmp;

	report_join_free(r);
	HASH_ITER (hh, r->classes, k, ktmp) {
		HASH_DEL(r->classes, k);
		free_class(k);
	}
	HASH_FREE_ALL(r->finds);
	HASH_ITER (hh, r->ports, port, ptmp)
		free(port->told.at);
	HASH_FREE_ALL(r->ports);
	HASH_FREE_ALL(r->kmsg);
	HASH_ITER (hh, r->gpus, gpu, gtmp)
		free(gpu->told.at);
	HASH_FREE_ALL(r->gpus);
	HASH_FREE_ALL(r->losses);
	free_comms(r);
	free_procs(r);
	report_heat_free(r->heat);
	copies__free(&r->copies);
	names__free(r->names);
}

int report_init(struct report *r)
{
	r->last_proc = &r->procs;
	r->kinds_room = KINDS_ROOM;
	r->held_room = HELD_ROOM;
	r->open_room = OPEN_ROOM;
	r->waiting_room = WAITING_ROOM;
	r->hung_room = HUNG_ROOM;
	r->members_room = MEMBERS_ROOM;
	r->names = names__new();
	r->heat = report_heat_new();
	if (r->names && r->heat)
		return 0;
	report_free(r);
	return -ENOMEM;
}

/* ---- Bandwidth, as nccl-tests define it ----------------------------------------------------------------------------------- */

const char *report_func_text(const struct report *r, const struct report_class *c)
{
	return names__text(r->names, c->key.func);
}

double report_algbw(const struct report *r, const struct report_class *c)
{
	const char *func = report_func_text(r, c);

	return c->time.sum ? c->bytes * nccl_size_factor(func, report_nranks(c->comm)) /
				     (double)c->time.sum
			   : 0;
}

double report_busbw(const struct report *r, const struct report_class *c)
{
	return report_algbw(r, c) * nccl_bus_factor(report_func_text(r, c), report_nranks(c->comm));
}

uint64_t report_size(const struct report *r, const struct report_class *c, bool largest)
{
	uint64_t bytes = largest ? c->max_bytes : c->min_bytes;

	return bytes == UINT64_MAX
		       ? 0
		       : (uint64_t)((double)bytes * nccl_size_factor(report_func_text(r, c),
								     report_nranks(c->comm)));
}
