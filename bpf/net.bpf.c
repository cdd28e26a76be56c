// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * TCP connections of recorded processes: who moves bytes over them, and what the network does to them. Calls are
 * folded into bursts, so that there is a record or two for a step of NCCL's; all other sockets of the node
 * leave after a look-up.
 */
#include "vmlinux.h"
#include "scope.bpf.h"
#include "tuple.bpf.h"
#include <bpf/bpf_endian.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EAGAIN	     11
#define MSG_PEEK     0x2
#define MSG_ERRQUEUE 0x2000
#define ETH_P_IP     0x0800
#define ETH_P_IPV6   0x86dd
#define SOCKFS_MAGIC 0x534f434b
#define UINT_MAX     0xffffffffu

#define SMALL_BYTES 256	      /* at most: NCCL's header of a message, with its inline data */
#define BURST_NS    5000000   /* a burst does not last longer */
#define FIRST_BYTES (1 << 18) /* at most: what one packet brings */

/* ---- Flows ------------------------------------------------------------------------------------- */

/* One direction of a flow. One thread at a time moves bytes, as NCCL's do; if not, the counts may miss some. */
struct scope_side {
	__u64 first_ns; /* of the burst that is not over, as far as we know, if it has calls */
	__u64 last_ns;
	__u64 nvcsw; /* of its thread: how often it had gone to sleep */
	__u64 total;
	__u64 empty_ns;
	__u64 empty_since_ns;
	__u32 seq; /* odd while a call changes this */
	__u32 bytes;
	__u32 calls;
	__u32 tgid;
	__u32 tid;
	__u32 copied; /* of `uses`, up to this number: they are in the ring */
	struct scope_tcp_use tcp;
	struct scope_ev_uses uses; /* that gather; n 0: none, and nr is the next one's */
};

enum flow_stage {
	FLOW_NEW,     /* somebody is filling it in */
	FLOW_OPENING, /* connect(2) has been called */
	FLOW_READY,
};

struct scope_flow {
	__u64 sk; /* its key, as a number that the verifier lets us hand to anybody */
	__u64 since_ns;
	__u64 addrs; /* the socket's, as it has them, to know it again */
	__u32 ports;
	__u32 at[2]; /* sequence numbers up to which bytes are counted: a call that we miss is made good by the next */
	__u32 tgid;
	__u32 tid; /* who opened it */
	__u32 uid;
	__u32 netns;
	__u32 lost;
	__u32 recs;
	__u32 place; /* in scope_socks */
	__u8 why;    /* how it began */
	__u8 told;   /* and that is in the ring */
	__u8 closed; /* `last` counts, whatever its socket does from here on */
	__u8 stage;  /* enum flow_stage */
	struct scope_tuple tuple;
	struct scope_side side[2]; /* by enum scope_dir */
	struct scope_tcp last;
};

/*
 * By address of the struct sock. Programs insert at connect(2) or first sight, and delete when the kernel destroys
 * the socket. Full means: further connections have no context; they are counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct scope_flow);
} scope_flows SEC(".maps");

/*
 * The flow of a packet: tuple -> sock, of whatever network namespace. Written together with scope_flows. Full means:
 * drops of further connections are not seen.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct scope_tuple);
	__type(value, __u64);
} scope_tuples SEC(".maps");

/* So many bits that tell numbers apart. */
static __always_inline __u32 hash_bits(__u64 value, __u32 bits)
{
	return value * 0x9e3779b97f4a7c15 >> (64 - bits);
}

/*
 * The sockets of scope_flows, for the loader to find without walking a table of nearly nothing: each in one of some places that
 * its flow's beginning says, 0 is a free one. BPF writes it, all of it. Where two take a place at the same time, the other is found to be missing when
 * it is told of next, or a burst of it is over, and takes another.
 */
#define SOCKS_BITS  15
#define SOCKS_TRIES 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << SOCKS_BITS);
	__type(key, __u32);
	__type(value, __u64);
} scope_socks SEC(".maps");

/*
 * Sides of flows that were found empty and have not moved bytes since, by hash: nearly all calls of NCCL's threads find
 * nothing, over and over, and need no more than this look. One that is here has its empty_since_ns; one whose slot is
 * another's by now goes the long way. BPF writes it: when a call finds nothing, after one has moved bytes, and when a socket
 * is another flow. A side whose calls come in by another way than sock_called() is never here.
 */
#define EMPTY_BITS 12

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << EMPTY_BITS);
	__type(key, __u32);
	__type(value, __u64);
} scope_empty SEC(".maps");

/* The socket and the direction as a number: the verifier lets nobody calculate with a pointer, but for a difference of two. */
static __always_inline __u64 side_of(struct sock *sk, __u32 dir)
{
	__u64 side = (__u64)sk - (__u64)&scope_sched;

	barrier_var(side);
	return side + dir;
}

static __always_inline __u64 *empty_slot(__u64 side)
{
	__u32 slot = hash_bits(side, EMPTY_BITS);

	return bpf_map_lookup_elem(&scope_empty, &slot);
}

static __always_inline void empty_forget(__u64 side)
{
	__u64 *slot = empty_slot(side);

	if (slot && *slot == side)
		*slot = 0;
}

/* Both sides: the socket is another flow from now on. */
static __always_inline void empties_forget(struct sock *sk)
{
	empty_forget(side_of(sk, SCOPE_TX));
	empty_forget(side_of(sk, SCOPE_RX));
}

/*
 * What a new flow is made of, by connect(2) and otherwise. No scratch of the CPU's: a program of a tracepoint may be preempted by another
 * from Linux 7.0 on.
 */
static const struct scope_flow new_flow, opening_flow = {.stage = FLOW_OPENING};

/* A field of a socket: a plain load where the verifier knows that it is one; bpf_probe_read_kernel() costs 24 ns. */
#define GET(trusted, p, field) ((trusted) ? (p)->field : BPF_CORE_READ(p, field))

#define SOCK(field) inet_conn.icsk_inet.sk.field

/* Runs on from chrono_start: the kernel's chronometer that is on. */
#define CHRONO_BUSY   1
#define CHRONO_RWND   2
#define CHRONO_SNDBUF 3

static __always_inline void use_fill(struct scope_tcp_use *o, struct tcp_sock *tp, bool trusted)
{
	__u32 run = (__u32)bpf_jiffies64() - GET(trusted, tp, chrono_start);
	__u32 type = trusted ? BPF_CORE_READ_BITFIELD(tp, chrono_type)
			     : BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type);

	o->total_retrans = GET(trusted, tp, total_retrans);
	o->lost = GET(trusted, tp, lost);
	o->rcv_ooopack = GET(trusted, tp, rcv_ooopack);
	o->dsack_dups = GET(trusted, tp, dsack_dups);
	o->srtt_us = GET(trusted, tp, srtt_us);
	o->rtt_min_us = GET(trusted, tp, rtt_min.s[0].v);
	o->snd_cwnd = GET(trusted, tp, snd_cwnd);
	o->rwnd_limited = GET(trusted, tp, chrono_stat[1]) + (type == CHRONO_RWND ? run : 0);
	o->sndbuf_limited = GET(trusted, tp, chrono_stat[2]) + (type == CHRONO_SNDBUF ? run : 0);
	o->busy = GET(trusted, tp, chrono_stat[0]) + (type == CHRONO_BUSY ? run : 0) +
		  o->rwnd_limited + o->sndbuf_limited;
}

static __always_inline void tcp_fill(struct scope_tcp *o, struct tcp_sock *tp)
{
	o->bytes_acked = BPF_CORE_READ(tp, bytes_acked);
	o->bytes_received = BPF_CORE_READ(tp, bytes_received);
	use_fill(&o->use, tp, false);
	o->mdev_us = BPF_CORE_READ(tp, mdev_us);
	o->ssthresh = BPF_CORE_READ(tp, snd_ssthresh);
	o->mss = BPF_CORE_READ(tp, mss_cache);
	o->rate_delivered = BPF_CORE_READ(tp, rate_delivered);
	o->rate_interval_us = BPF_CORE_READ(tp, rate_interval_us);
	o->reordering = BPF_CORE_READ(tp, reordering);
	o->state = BPF_CORE_READ(tp, SOCK(__sk_common.skc_state));
	o->pad = 0;
}

/* Whether there is a part of the ring for a record of f. */
static __always_inline bool rec_may(struct scope_flow *f, __u32 size)
{
	return !scope_ring_is_filling() || scope_share_take(f->tgid, f->uid, size, SHARE_CONTEXT);
}

/* n of f found no room. */
static __always_inline void rec_lost(struct scope_flow *f, __u32 n)
{
	__sync_fetch_and_add(&f->lost, n);
	scope_count(SCOPE_STAT_NET_LOST, n);
}

static __always_inline void rec_told(struct scope_flow *f)
{
	scope_count(SCOPE_STAT_NET, 1);
	f->recs++;
}

/* Room for a record of f, its head filled; NULL: the ring is full, or f's process has its share, and that is counted. */
static __always_inline void *rec_reserve(struct scope_flow *f, __u16 kind, __u32 size, __u64 ts_ns)
{
	struct scope_ev_short *h = NULL;

	if (rec_may(f, size))
		h = bpf_ringbuf_reserve(&scope_ring, size, 0);
	if (!h) {
		rec_lost(f, 1);
		return NULL;
	}
	rec_told(f);
	h->abi = SCOPE_ABI;
	h->kind = kind;
	h->size = size;
	h->ts_ns = ts_ns;
	return h;
}

/* A socket that is closed may forget its counters, before it is destroyed or connects to another. */
static __always_inline void flow_tcp(struct scope_tcp *o, __u64 sk, struct scope_flow *f)
{
	if (f->closed)
		*o = f->last;
	else
		tcp_fill(o, (struct tcp_sock *)sk);
}

static __noinline int place_take(__u64 sk, struct scope_flow *f)
{
	__u32 hash = hash_bits(f->since_ns, 32), at = hash >> (32 - SOCKS_BITS), i;
	__u64 *place;

	for (i = 0; i < SOCKS_TRIES; i++, at += hash | 1) {
		at %= 1 << SOCKS_BITS;
		place = bpf_map_lookup_elem(&scope_socks, &at);
		if (!place || *place)
			continue;
		f->place = at;
		smp_barrier(); /* what is in a place that f does not say is left over */
		*place = sk;
		return 0;
	}
	scope_count(SCOPE_STAT_FLOWS_FULL, 1);
	return 0;
}

/* Before a flow is told, or a burst of it gathers: so that the loader finds it. */
static __always_inline void place_keep(__u64 sk, struct scope_flow *f)
{
	__u64 *place = bpf_map_lookup_elem(&scope_socks, &f->place);

	if (place && *place != sk)
		place_take(sk, f);
}

static __always_inline void place_leave(__u64 sk, struct scope_flow *f)
{
	__u64 *place = bpf_map_lookup_elem(&scope_socks, &f->place);

	if (place && *place == sk)
		*place = 0;
}

/*
 * `state`: what it is in from now on; 0: what the socket says. Like others that take numbers only it is not static: then the
 * verifier looks at it once for each program, and not wherever it is called.
 */
__noinline int scope_flow_tell(__u64 sk, __u32 why, __u32 state, __u32 tid)
{
	struct scope_flow *f = bpf_map_lookup_elem(&scope_flows, &sk);
	struct scope_ev_flow *e;

	if (!f)
		return 0;
	place_keep(sk, f);
	e = rec_reserve(f, SCOPE_EV_FLOW, sizeof(*e), bpf_ktime_get_ns());
	if (!e)
		return 0;
	f->told = 1;
	e->sk = sk;
	e->since_ns = f->since_ns;
	e->total[SCOPE_TX] = f->side[SCOPE_TX].total;
	e->total[SCOPE_RX] = f->side[SCOPE_RX].total;
	e->tgid = f->tgid;
	e->tid = tid;
	e->netns = f->netns;
	e->lost = f->lost;
	e->why = why;
	e->tuple = f->tuple;
	flow_tcp(&e->tcp, sk, f);
	if (state)
		e->tcp.state = state;
	bpf_ringbuf_submit(e, scope_wake_rarely(f->recs));
	return 0;
}

/* From now on f is this connection of its socket's. `state` as above. */
static __noinline int flow_begin(__u64 sk, struct scope_flow *f, __u32 why, __u32 state)
{
	struct sock *s = (struct sock *)sk;

	f->why = why;
	f->netns = BPF_CORE_READ(s, __sk_common.skc_net.net, ns.inum);
	f->addrs = BPF_CORE_READ(s, __sk_common.skc_addrpair);
	f->ports = BPF_CORE_READ(s, __sk_common.skc_portpair);
	f->at[SCOPE_TX] = BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	f->at[SCOPE_RX] = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
	tuple_fill(&f->tuple, s);
	if (bpf_map_update_elem(&scope_tuples, &f->tuple, &sk, BPF_ANY))
		scope_count(SCOPE_STAT_FLOWS_FULL, 1);
	f->since_ns = bpf_ktime_get_ns();
	scope_flow_tell(f->sk, why, state, f->tid);
	smp_barrier();
	f->stage = FLOW_READY; /* last: now others may use it */
	return 0;
}

/* NULL: no room; or another thread has just found the same, and whoever was first fills it in. */
static __always_inline struct scope_flow *flow_add(__u64 sk, const struct scope_flow *from,
						   __u32 tgid, __u32 tid, __u32 uid)
{
	struct scope_flow *f;

	if (bpf_map_update_elem(&scope_flows, &sk, from, BPF_NOEXIST)) {
		if (!bpf_map_lookup_elem(&scope_flows, &sk))
			scope_count(SCOPE_STAT_FLOWS_FULL, 1);
		return NULL;
	}
	f = bpf_map_lookup_elem(&scope_flows, &sk);
	if (!f)
		return NULL;
	f->sk = sk;
	f->tgid = tgid;
	f->tid = tid;
	f->uid = uid;
	return f;
}

static __noinline int flow_forget(__u64 sk, struct scope_flow *f)
{
	__u64 *of = bpf_map_lookup_elem(&scope_tuples, &f->tuple);

	if (of && *of == sk)
		bpf_map_delete_elem(&scope_tuples, &f->tuple);
	place_leave(sk, f);
	bpf_map_delete_elem(&scope_flows, &sk);
	return 0;
}

/*
 * Is f still the connection that its socket has? The kernel may have skipped us when it destroyed the one before. A
 * socket that was closed has given its port back, but there may be data left to read.
 */
static __always_inline bool flow_is(struct scope_flow *f, struct sock *sk, bool trusted)
{
	if (f->addrs != GET(trusted, sk, __sk_common.skc_addrpair))
		return false;
	return f->ports == GET(trusted, sk, __sk_common.skc_portpair) ||
	       (f->closed && !GET(trusted, sk, __sk_common.skc_num));
}

/*
 * The socket of a call that is not a known flow: of one that was opened or accepted earlier, or whose beginning we
 * missed, or in the place of another's. 1: it is known now, and it was us who found it.
 */
static __noinline int flow_see(__u64 sk, __u32 tgid, __u32 tid, __u32 uid)
{
	struct scope_flow *f = bpf_map_lookup_elem(&scope_flows, &sk);
	__u32 why = SCOPE_FLOW_FOUND;

	if (f) {
		if (f->stage == FLOW_NEW)
			return 0;
		if (f->stage == FLOW_OPENING)
			why = SCOPE_FLOW_OPEN;
		flow_forget(sk, f);
	}
	f = flow_add(sk, &new_flow, tgid, tid, uid);
	if (!f)
		return 0;
	flow_begin(sk, f, why, 0);
	return 1;
}

/* ---- Calls that move bytes --------------------------------------------------------------------- */

/*
 * Those of a side that gather. The loader may be copying them on another CPU: it sees by nr that they have been told, before
 * their places hold others.
 */
__noinline int scope_uses_tell(__u64 sk, __u32 dir)
{
	struct scope_flow *f = bpf_map_lookup_elem(&scope_flows, &sk);
	struct scope_ev_uses *r;
	struct scope_side *s;
	__u32 n, size, copied;

	if (!f)
		return 0;
	s = &f->side[dir & 1];
	r = &s->uses;
	n = r->n;
	if (!n || n > SCOPE_USES)
		return 0;
	copied = s->copied - r->nr; /* of these */
	if (copied > n)
		copied = 0;
	size = SCOPE_USES_SIZE(n);
	r->h.size = size;
	r->lost = f->lost;
	if (rec_may(f, size) &&
	    !bpf_ringbuf_output(&scope_ring, r, size, scope_wake_rarely(f->recs + 1)))
		rec_told(f);
	else
		rec_lost(f, n - copied);
	r->n = 0;
	smp_barrier();
	r->nr += n;
	smp_barrier();
	return 0;
}

/* For the loader, which looks at the flow now. Whose they are goes on meanwhile, and tells them once more when they are enough. */
static __noinline int uses_copy(struct scope_flow *f, __u32 dir)
{
	struct scope_side *s = &f->side[dir & 1];
	struct scope_ev_uses *r = &s->uses, *e = NULL;
	__u32 nr = *(volatile __u32 *)&r->nr, n;

	smp_barrier();
	n = *(volatile __u32 *)&r->n;
	if (!n || n > SCOPE_USES || s->copied == nr + n)
		return 0;
	if (rec_may(f, sizeof(*e)))
		e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);
	if (!e) /* nothing is lost yet: the next look tries again, and they are told */
		return 0;
	*e = *r;
	smp_barrier();
	if (*(volatile __u32 *)&r->nr != nr ||
	    *(volatile __u64 *)&f->since_ns != e->since_ns) { /* told, or another flow by now */
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	e->h.size = SCOPE_USES_SIZE(n);
	e->lost = f->lost;
	e->n = n;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	s->copied = nr + n;
	rec_told(f);
	return 0;
}

/* Whether this use is like those that gather: of their thread, while the connection counted nothing but its round trips. */
static __always_inline bool use_fits(const struct scope_ev_uses *r, const struct scope_side *s)
{
	const struct scope_tcp_use *a = &r->tcp, *b = &s->tcp;

	return r->tid == s->tid && s->last_ns - r->h.ts_ns <= UINT_MAX &&
	       s->total - r->total <= UINT_MAX && s->empty_ns - r->empty_ns <= UINT_MAX &&
	       !((a->total_retrans ^ b->total_retrans) | (a->lost ^ b->lost) |
		 (a->rcv_ooopack ^ b->rcv_ooopack) | (a->dsack_dups ^ b->dsack_dups) |
		 (a->rtt_min_us ^ b->rtt_min_us) | (a->snd_cwnd ^ b->snd_cwnd) |
		 (a->busy ^ b->busy) | (a->rwnd_limited ^ b->rwnd_limited) |
		 (a->sndbuf_limited ^ b->sndbuf_limited));
}

static __always_inline void uses_begin(struct scope_flow *f, struct scope_side *s, __u32 dir)
{
	struct scope_ev_uses *r = &s->uses;

	r->h.abi = SCOPE_ABI;
	r->h.kind = SCOPE_EV_USES;
	r->h.ts_ns = s->last_ns;
	r->sk = f->sk;
	r->since_ns = f->since_ns;
	r->total = s->total;
	r->empty_ns = s->empty_ns;
	r->tgid = s->tgid;
	r->tid = s->tid;
	r->dir = dir & 1;
	r->tcp = s->tcp;
}

/* The calls so far are a use. */
static __noinline int use_end(__u64 sk, struct scope_flow *f, __u32 dir)
{
	struct scope_side *s = &f->side[dir & 1];
	struct scope_ev_uses *r = &s->uses;
	struct scope_use *u;
	__u32 n;

	if (!f->told)
		scope_flow_tell(f->sk, f->why, 0, f->tid);
	if (r->n && !use_fits(r, s))
		scope_uses_tell(f->sk, dir);
	n = r->n;
	if (!n) {
		place_keep(sk, f);
		uses_begin(f, s, dir);
	}
	if (n >= SCOPE_USES) /* two threads are in here */
		return 0;
	u = &r->at[n];
	u->after_ns = s->last_ns - r->h.ts_ns;
	u->dur_ns = s->last_ns - s->first_ns;
	u->bytes = s->bytes;
	u->total = s->total - r->total;
	u->empty_ns = s->empty_ns - r->empty_ns;
	u->srtt_us = s->tcp.srtt_us;
	smp_barrier();
	r->n = n + 1;
	if (n + 1 == SCOPE_USES)
		scope_uses_tell(f->sk, dir);
	return 0;
}

/* How often this thread has gone to sleep so far: a helper thread does between two tasks, and polls within them. */
static __always_inline __u64 nvcsw_now(void)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
		return bpf_get_current_task_btf()->nvcsw;
	return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), nvcsw);
}

/* A small call begins one: it tells where a message begins, which the data may follow by other sockets or by this one. */
static __always_inline bool burst_ends(struct scope_side *s, __u32 tid, __u64 nvcsw, __u32 bytes,
				       __u64 now)
{
	return bytes <= SMALL_BYTES || tid != s->tid || nvcsw != s->nvcsw ||
	       now - s->first_ns > BURST_NS;
}

static __always_inline void side_lock(struct scope_side *s)
{
	s->seq |= 1;
	smp_barrier();
}

/* Also where two threads are in here at a time, seq is even behind the last. */
static __always_inline void side_unlock(struct scope_side *s)
{
	smp_barrier();
	s->seq = (s->seq | 1) + 1;
}

/* `ids`: whose call it is, as bpf_get_current_pid_tgid() has it. True: the side had been found empty. */
static __always_inline bool used(struct tcp_sock *tp, struct scope_flow *f, __u64 ids, __u32 dir,
				 __u32 bytes, bool trusted)
{
	__u64 now = bpf_ktime_get_ns(), nvcsw = nvcsw_now();
	struct scope_side *s = &f->side[dir];
	__u64 empty;

	if (s->calls && burst_ends(s, ids, nvcsw, bytes, now)) {
		use_end((__u64)tp, f, dir);
		s->calls = 0; /* after that: whoever samples finds it here or there */
	}
	side_lock(s);
	if (!s->calls) {
		s->first_ns = now;
		s->nvcsw = nvcsw;
		s->bytes = 0;
		s->tgid = ids >> 32;
		s->tid = ids;
	}
	s->calls++;
	s->bytes += bytes;
	s->total += bytes;
	s->last_ns = now;
	empty = s->empty_since_ns;
	if (empty) {
		if (now > empty) /* another thread may have found it empty just now */
			s->empty_ns += now - empty;
		s->empty_since_ns = 0;
	}
	use_fill(&s->tcp, tp, trusted);
	side_unlock(s);
	return empty;
}

/*
 * A call on a flow: counts what has been moved since the last. `ret`: bytes that the call itself moved, 0 where that
 * is not known; the end of a stream, taken together with the last bytes, is one more.
 */
static __always_inline bool moved(struct tcp_sock *tp, struct scope_flow *f, __u64 ids, __u32 dir,
				  __u32 ret, bool trusted)
{
	__u32 at = dir == SCOPE_TX ? GET(trusted, tp, write_seq) : GET(trusted, tp, copied_seq);
	__u32 bytes = at - f->at[dir];

	f->at[dir] = at;
	if (ret && bytes == ret + 1)
		bytes = ret;
	return (__s32)bytes > 0 && used(tp, f, ids, dir, bytes, trusted);
}

/* The poll of a non-blocking socket that found nothing, or no room. */
static __always_inline void found_none(struct scope_flow *f, __u32 dir)
{
	struct scope_side *s = &f->side[dir];

	if (f->stage == FLOW_READY && !s->empty_since_ns)
		s->empty_since_ns = bpf_ktime_get_ns();
}

static __always_inline bool is_connected(struct tcp_sock *tp, bool trusted)
{
	return (1 << GET(trusted, tp, SOCK(__sk_common.skc_state))) &
	       (1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 |
		1 << TCP_CLOSE_WAIT);
}

/* First use: its bytes count. Where a read does not say how many, all that have been read, if they can be the first. */
static __always_inline void count_first(struct tcp_sock *tp, struct scope_flow *f, __u32 dir,
					__u32 ret)
{
	__u32 begin;

	if (ret) {
		f->at[dir] -= ret;
		return;
	}
	begin = BPF_CORE_READ(tp, rcv_nxt) - (__u32)BPF_CORE_READ(tp, bytes_received);
	if (dir == SCOPE_RX && f->at[dir] - begin <= FIRST_BYTES)
		f->at[dir] = begin;
}

/* What a call has found out about its side. */
enum called {
	CALLED_FRESH = 1, /* its flow was not known so far */
	CALLED_EMPTY = 2, /* it had been found empty, or may have been */
};

/* A call by this thread on a TCP socket: ret bytes, 0 if that is not known, or -EAGAIN. enum called. */
static __always_inline __u32 called(struct tcp_sock *tp, __u64 ids, int ret, __u32 dir,
				    bool trusted)
{
	__u64 sk = (__u64)tp;
	struct scope_flow *f = bpf_map_lookup_elem(&scope_flows, &sk);
	__u32 found = 0;

	if (!f || f->stage != FLOW_READY || (ret >= 0 && !flow_is(f, (struct sock *)tp, trusted))) {
		if (ret < 0 && !is_connected(tp, trusted))
			return CALLED_EMPTY;
		if (!flow_see(sk, ids >> 32, ids, bpf_get_current_uid_gid()))
			return CALLED_EMPTY; /* the next call makes it good */
		found = CALLED_FRESH;
		f = bpf_map_lookup_elem(&scope_flows, &sk);
		if (!f)
			return found;
		if (ret >= 0)
			count_first(tp, f, dir, ret);
	}
	if (ret < 0)
		found_none(f, dir);
	else if (moved(tp, f, ids, dir, ret, trusted))
		found |= CALLED_EMPTY;
	return found;
}

/* Bytes, or the poll of a non-blocking socket; anything else moves nothing and waits for nothing. */
static __always_inline bool counts(int ret)
{
	return ret > 0 || ret == -EAGAIN;
}

static __always_inline bool is_ours(__u64 ids)
{
	return scope_is_recorded(ids >> 32);
}

/* true: there is no more to it than that it found nothing. */
static __always_inline bool still_empty(struct sock *sk, __u64 side, __u32 dir)
{
	__u64 key = (__u64)sk, *slot = empty_slot(side);
	struct scope_flow *f;

	/* First, and before asking whose call it is: nearly all calls end here. */
	if (!slot || *slot == side || !is_ours(bpf_get_current_pid_tgid()))
		return true;
	f = bpf_map_lookup_elem(&scope_flows, &key);
	if (!f)
		return false;
	if (f->stage == FLOW_READY)
		*slot = side; /* first: another thread's call may have bytes now, and takes it back */
	found_none(f, dir);
	return true;
}

static __always_inline int sock_called(struct sock *sk, int ret, __u32 dir)
{
	__u64 side = side_of(sk, dir), ids;
	struct tcp_sock *tp;
	__u32 found;

	if (!counts(ret) || (ret < 0 && still_empty(sk, side, dir)))
		return 0;
	ids = bpf_get_current_pid_tgid();
	if (!is_ours(ids))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	found = called(tp, ids, ret, dir, true);
	if (found & CALLED_FRESH)
		empties_forget(sk);
	else if (found & CALLED_EMPTY)
		empty_forget(side);
	return 0;
}

/* A look at what is there, or at errors, takes nothing. */
static __always_inline int sock_read(struct sock *sk, int ret, int flags)
{
	return flags & (MSG_PEEK | MSG_ERRQUEUE) ? 0 : sock_called(sk, ret, SCOPE_RX);
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(scope_net_send, struct sock *sk, int ret, int flags)
{
	return sock_called(sk, ret, SCOPE_TX);
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(scope_net_recv, struct sock *sk, int ret, int flags)
{
	return sock_read(sk, ret, flags);
}

/* Before 6.3. */
SEC("?fexit/tcp_recvmsg")
int BPF_PROG(scope_recvmsg_f, struct sock *sk, struct msghdr *msg, size_t len, int flags,
	     int *addr_len, int ret)
{
	return sock_read(sk, ret, flags);
}

/* Before 5.19, which has moved MSG_DONTWAIT into flags. */
SEC("?fexit/tcp_recvmsg")
int BPF_PROG(scope_recvmsg_f6, struct sock *sk, struct msghdr *msg, size_t len, int nonblock,
	     int flags, int *addr_len, int ret)
{
	return sock_read(sk, ret, flags);
}

/* Where there is no fexit: when bytes have been copied to a reader. Nobody tells of one that finds none. */
SEC("?tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(scope_net_adj, struct sock *sk)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct tcp_sock *tp;

	if (!is_ours(ids))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		called(tp, ids, 0, SCOPE_RX, true);
	return 0;
}

SEC("?fexit/tcp_sendmsg")
int BPF_PROG(scope_sendmsg_f, struct sock *sk, struct msghdr *msg, size_t size, int ret)
{
	return sock_called(sk, ret, SCOPE_TX);
}

/*
 * Where there is no fexit: the socket that a thread is sending on, by tid. Inserted at entry, deleted at return. Full
 * means: bytes of threads beyond count with the next call.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} scope_sending SEC(".maps");

SEC("?kprobe/tcp_sendmsg")
int BPF_KPROBE(scope_sendmsg_k, struct sock *sk)
{
	__u64 ids = bpf_get_current_pid_tgid(), at = (__u64)sk;
	__u32 tid = ids;

	if (scope_is_recorded(ids >> 32))
		bpf_map_update_elem(&scope_sending, &tid, &at, BPF_ANY);
	return 0;
}

SEC("?kretprobe/tcp_sendmsg")
int BPF_KRETPROBE(scope_sendmsg_r, int ret)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tid = ids;
	__u64 *at = bpf_map_lookup_elem(&scope_sending, &tid), sk;

	if (!at)
		return 0;
	sk = *at;
	bpf_map_delete_elem(&scope_sending, &tid);
	if (counts(ret) && is_ours(ids))
		called((struct tcp_sock *)sk, ids, ret, SCOPE_TX, false);
	return 0;
}

/* ---- Beginning and end ------------------------------------------------------------------------- */

/* The socket is no flow any more, or another one. */
static __always_inline int flow_drop(struct sock *sk, struct scope_flow *f)
{
	empties_forget(sk);
	return flow_forget((__u64)sk, f);
}

/* connect(2): who opens a flow is known here only, what comes next comes from the network. */
static __always_inline int opening(struct sock *sk, struct scope_flow *f)
{
	__u64 ids = bpf_get_current_pid_tgid(), key = (__u64)sk;

	if (f)
		flow_drop(sk, f);
	if (scope_is_recorded(ids >> 32) && bpf_skc_to_tcp_sock(sk))
		flow_add(key, &opening_flow, ids >> 32, ids, bpf_get_current_uid_gid());
	return 0;
}

/* By close(2) or shutdown(2); whatever other state there is comes from the network. */
static __always_inline __u32 who(struct scope_flow *f, int state)
{
	__u64 ids = bpf_get_current_pid_tgid();

	if (state != TCP_FIN_WAIT1 && state != TCP_LAST_ACK)
		return 0;
	return ids >> 32 == f->tgid ? ids : 0;
}

/* What calls have moved that we missed: there will be none to make it good. */
static __always_inline void count_last(struct scope_flow *f, __u32 dir, __u32 at)
{
	__s32 bytes = at - f->at[dir];

	if (bytes <= 0)
		return;
	f->at[dir] = at;
	f->side[dir].total += bytes;
	f->side[dir].bytes += bytes;
}

/*
 * Here, while the sequence numbers are still those of the stream: the kernel changes them when it resets. Whether one
 * that was read was the stream's end is not known.
 */
static __always_inline void closing(struct tcp_sock *tp, struct scope_flow *f, int old, int state)
{
	if ((old == TCP_ESTABLISHED && state != TCP_CLOSE_WAIT) || old == TCP_CLOSE_WAIT)
		count_last(f, SCOPE_TX, BPF_CORE_READ(tp, write_seq));
	if (state != TCP_CLOSE || f->closed)
		return;
	count_last(f, SCOPE_RX, BPF_CORE_READ(tp, copied_seq) - 1);
	tcp_fill(&f->last, tp);
	f->last.state = TCP_CLOSE;
	f->closed = 1;
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(scope_net_state, struct sock *sk, int old, int state)
{
	__u64 key = (__u64)sk;
	struct scope_flow *f = bpf_map_lookup_elem(&scope_flows, &key);

	if (state == TCP_SYN_SENT)
		return opening(sk, f);
	if (!f || f->stage == FLOW_NEW)
		return 0;
	if (f->stage == FLOW_READY && (state != TCP_ESTABLISHED || flow_is(f, sk, true))) {
		closing((struct tcp_sock *)sk, f, old, state);
		return scope_flow_tell(f->sk, SCOPE_FLOW_STATE, state, who(f, state));
	}
	if (f->stage == FLOW_OPENING && state == TCP_ESTABLISHED)
		return flow_begin(key, f, SCOPE_FLOW_OPEN, state);
	return flow_drop(sk, f); /* never came about; or is another's by now */
}

SEC("?tp_btf/tcp_destroy_sock")
int BPF_PROG(scope_net_gone, struct sock *sk)
{
	__u64 key = (__u64)sk;
	struct scope_flow *f = bpf_map_lookup_elem(&scope_flows, &key);

	if (!f)
		return 0;
	if (f->stage == FLOW_READY) {
		if (f->side[SCOPE_TX].calls)
			use_end(key, f, SCOPE_TX);
		if (f->side[SCOPE_RX].calls)
			use_end(key, f, SCOPE_RX);
		scope_uses_tell(f->sk, SCOPE_TX);
		scope_uses_tell(f->sk, SCOPE_RX);
		scope_flow_tell(f->sk, SCOPE_FLOW_GONE, 0, 0);
	}
	return flow_drop(sk, f);
}

/* A reset for no socket has none: the verifier wants that asked first. */
static __always_inline int reset(struct sock *sk, __u32 why)
{
	struct scope_flow *f;
	__u64 key;

	if (!sk)
		return 0;
	key = (__u64)sk;
	f = bpf_map_lookup_elem(&scope_flows, &key);
	if (f && f->stage == FLOW_READY)
		scope_flow_tell(f->sk, why, 0, 0);
	return 0;
}

SEC("?tp_btf/tcp_receive_reset")
int BPF_PROG(scope_rst_in, struct sock *sk)
{
	return reset(sk, SCOPE_FLOW_RESET_IN);
}

SEC("?tp_btf/tcp_send_reset")
int BPF_PROG(scope_rst_out, struct sock *sk)
{
	return reset(sk, SCOPE_FLOW_RESET_OUT);
}

/* ---- Losses ------------------------------------------------------------------------------------ */

static __always_inline int retransmitted(struct sock *sk)
{
	__u64 key = (__u64)sk;
	struct scope_flow *f = bpf_map_lookup_elem(&scope_flows, &key);
	struct scope_ev_retrans *e;

	if (!f || f->stage != FLOW_READY)
		return 0;
	e = rec_reserve(f, SCOPE_EV_RETRANS, sizeof(*e), bpf_ktime_get_ns());
	if (!e)
		return 0;
	e->sk = key;
	e->since_ns = f->since_ns;
	e->total = BPF_CORE_READ((struct tcp_sock *)sk, total_retrans); /* it has counted them */
	e->lost = f->lost;
	bpf_ringbuf_submit(e, scope_wake_rarely(f->recs));
	return 0;
}

SEC("?tp_btf/tcp_retransmit_skb")
int BPF_PROG(scope_retrans2, struct sock *sk, struct sk_buff *skb)
{
	return retransmitted(sk);
}

/* Newer kernels tell of attempts that failed as well. */
SEC("?tp_btf/tcp_retransmit_skb")
int BPF_PROG(scope_retrans3, struct sock *sk, struct sk_buff *skb, int err)
{
	return err ? 0 : retransmitted(sk);
}

/* The addresses of a TCP packet, as its receiver has them. */
static __always_inline bool skb_tuple(struct sk_buff *skb, struct scope_tuple *t)
{
	unsigned char *at = skb->head + skb->network_header;
	__u16 proto = bpf_ntohs(skb->protocol), ports[2];
	__u8 h[40];

	__builtin_memset(t, 0, sizeof(*t));
	if (proto == ETH_P_IP) {
		if (bpf_probe_read_kernel(h, 20, at) || h[0] >> 4 != 4 || h[9] != IPPROTO_TCP)
			return false;
		t->local[10] = t->local[11] = t->remote[10] = t->remote[11] = 0xff;
		__builtin_memcpy(t->remote + 12, h + 12, 4);
		__builtin_memcpy(t->local + 12, h + 16, 4);
		at += (h[0] & 15) * 4;
	} else if (proto == ETH_P_IPV6) {
		if (bpf_probe_read_kernel(h, 40, at) || h[6] != IPPROTO_TCP)
			return false;
		__builtin_memcpy(t->remote, h + 8, 16);
		__builtin_memcpy(t->local, h + 24, 16);
		at += 40;
	} else {
		return false;
	}
	if (bpf_probe_read_kernel(ports, sizeof(ports), at))
		return false;
	t->remote_port = bpf_ntohs(ports[0]);
	t->local_port = bpf_ntohs(ports[1]);
	return true;
}

static __always_inline struct scope_flow *tuple_flow(struct scope_tuple *t, __u64 *sk)
{
	__u64 *of = bpf_map_lookup_elem(&scope_tuples, t);

	if (!of)
		return NULL;
	*sk = *of;
	return bpf_map_lookup_elem(&scope_flows, sk);
}

static __always_inline void tuple_turn(struct scope_tuple *o, const struct scope_tuple *t)
{
	__builtin_memcpy(o->local, t->remote, sizeof(o->local));
	__builtin_memcpy(o->remote, t->local, sizeof(o->remote));
	o->local_port = t->remote_port;
	o->remote_port = t->local_port;
}

static __always_inline int dropped(struct sk_buff *skb, void *location, __u32 reason)
{
	struct scope_flow *to, *by, *f;
	struct scope_tuple t, turned;
	__u64 to_sk = 0, by_sk = 0;
	struct scope_ev_drop *e;

	if (!skb_tuple(skb, &t))
		return 0;
	tuple_turn(&turned, &t);
	to = tuple_flow(&t, &to_sk);
	by = tuple_flow(&turned, &by_sk);
	f = to ? to : by;
	if (!f)
		return 0;
	e = rec_reserve(f, SCOPE_EV_DROP, sizeof(*e), bpf_ktime_get_ns());
	if (!e)
		return 0;
	e->sk = to ? to_sk : by_sk;
	e->location = (__u64)location;
	e->reason = reason;
	e->netns = BPF_CORE_READ(skb, dev, nd_net.net, ns.inum);
	e->len = skb->len;
	e->tuple = t;
	e->lost = f->lost;
	e->pad = 0;
	bpf_ringbuf_submit(e, scope_wake_rarely(f->recs));
	return 0;
}

/* Their numbers are others in each kernel. */
enum skb_drop_reason___purge {
	SKB_DROP_REASON_QUEUE_PURGE___purge = 1,
};

enum skb_drop_reason___none {
	SKB_DROP_REASON_NOT_SPECIFIED___none = 2,
};

/* What was still in the queues of a socket that was closed is no loss. */
static __always_inline bool is_purge(__u32 reason)
{
	return bpf_core_enum_value_exists(enum skb_drop_reason___purge,
					  SKB_DROP_REASON_QUEUE_PURGE___purge) &&
	       reason == bpf_core_enum_value(enum skb_drop_reason___purge,
					     SKB_DROP_REASON_QUEUE_PURGE___purge);
}

static __always_inline bool is_no_reason(__u32 reason)
{
	return bpf_core_enum_value_exists(enum skb_drop_reason___none,
					  SKB_DROP_REASON_NOT_SPECIFIED___none) &&
	       reason == bpf_core_enum_value(enum skb_drop_reason___none,
					     SKB_DROP_REASON_NOT_SPECIFIED___none);
}

/*
 * A segment that the receiving side has put behind another (GRO), which sets nohdr and pulls the headers; they can be read still. Before
 * Linux 6.2 it is freed as if it were dropped, also once the packet has been read. Of one that is dropped the first segment tells.
 */
static __always_inline bool is_behind_another(struct sk_buff *skb)
{
	return BPF_CORE_READ_BITFIELD(skb, nohdr) && skb->data > skb->head + skb->transport_header;
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(scope_drop2, struct sk_buff *skb, void *location)
{
	return is_behind_another(skb) ? 0 : dropped(skb, location, 0);
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(scope_drop3, struct sk_buff *skb, void *location, __u32 reason)
{
	if (is_purge(reason) || (is_no_reason(reason) && is_behind_another(skb)))
		return 0;
	return dropped(skb, location, reason);
}

/* ---- Looking at all of them -------------------------------------------------------------------- */

/* Tries again where a call came in between. If one stands still in there: its record will tell. */
static __always_inline void open_fill(struct scope_flow_open *o, struct scope_side *s)
{
	__u32 seq;
	int i;

	for (i = 0; i < 3; i++) {
		seq = *(volatile __u32 *)&s->seq;
		smp_barrier();
		o->first_ns = s->first_ns;
		o->last_ns = s->last_ns;
		o->total = s->total;
		o->empty_ns = s->empty_ns;
		o->bytes = s->bytes;
		o->calls = s->calls;
		o->tid = s->tid;
		smp_barrier();
		if (!(seq & 1) && seq == *(volatile __u32 *)&s->seq)
			return;
	}
	o->calls = 0;
}

/*
 * The loader sets `sk` of the first scope_nsamples to a place in scope_socks that is not free, has this run, and finds the samples there;
 * sk is 0 where there is none. An iterator would be the kernel's own way, and not every kernel lets root load one of a map.
 */
struct scope_flow_sample scope_samples[SCOPE_SAMPLES];
__u32 scope_nsamples;

/* Fills in what is asked for, in place. Not static: then the verifier looks at it once, and not SCOPE_SAMPLES times. */
__noinline int scope_flow_sample(__u32 i)
{
	struct scope_flow_sample *s = &scope_samples[i % SCOPE_SAMPLES];
	__u32 at = s->sk;
	__u64 *place = bpf_map_lookup_elem(&scope_socks, &at), sk = place ? *place : 0;
	struct scope_flow *f = sk ? bpf_map_lookup_elem(&scope_flows, &sk) : NULL;

	s->sk = 0;
	if (!sk)
		return 0;
	if (!f || f->place != at) { /* its end, or another place, came in between */
		if (*place == sk)
			*place = 0;
		return 0;
	}
	if (f->stage != FLOW_READY || (!f->closed && !flow_is(f, (struct sock *)sk, false)))
		return 0;
	s->since_ns = f->since_ns;
	s->ts_ns = bpf_ktime_get_ns(); /* first: what is older is in here, or in the ring */
	s->tgid = f->tgid;
	s->lost = f->lost;
	open_fill(&s->open[SCOPE_TX], &f->side[SCOPE_TX]);
	open_fill(&s->open[SCOPE_RX], &f->side[SCOPE_RX]);
	uses_copy(f, SCOPE_TX); /* after that: what was open then may gather by now */
	uses_copy(f, SCOPE_RX);
	flow_tcp(&s->tcp, sk, f);
	smp_barrier();
	if (*(volatile __u64 *)&f->since_ns == s->since_ns)
		s->sk = sk;
	return 0;
}

SEC("?raw_tp/kfree_skb")
int scope_net_flows(void *ctx)
{
	__u32 i, n = scope_nsamples;

	for (i = 0; i < SCOPE_SAMPLES && i < n; i++)
		scope_flow_sample(i);
	return 0;
}

/* All files of recorded processes, in whatever network namespace. Says which sockets are new. */
SEC("?iter/task_file")
int scope_net_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *socket;
	struct sock *sk;
	__u64 key;

	if (!task || !file || !scope_is_recorded(task->tgid) ||
	    (file->f_inode->i_mode & S_IFMT) != S_IFSOCK ||
	    file->f_inode->i_sb->s_magic != SOCKFS_MAGIC)
		return 0;
	socket = file->private_data;
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP ||
	    !is_connected((struct tcp_sock *)sk, false))
		return 0;
	key = (__u64)sk;
	if (bpf_map_lookup_elem(&scope_flows, &key))
		return 0;
	if (flow_see(key, task->tgid, 0, scope_task_uid(task)))
		bpf_seq_write(ctx->meta->seq, &key, sizeof(key));
	return 0;
}
