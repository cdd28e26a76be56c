// SPDX-License-Identifier: BSD-2-Clause
/*
 * `report` on Sends and Recvs: which belong to one operation, who came late to it, what is told of that later; and that lines which
 * are lost, of ranks that are not there, or hostile, do no more harm than that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report_text.h"

#define MS INT64_C(1000000)

/* ---- Traces ------------------------------------------------------------------------------------------------- */

#define RANKS 4

static struct {
	FILE *f[RANKS];
	char *text[RANKS];
	size_t len[RANKS];
	bool absent[RANKS]; /* it has no trace */
	double ms[RANKS];   /* its time */
	unsigned int id;
	const char *more; /* in each line */
} job;

static void begin(void)
{
	int i;

	memset(&job, 0, sizeof(job));
	job.more = "";
	for (i = 0; i < RANKS; i++) {
		job.f[i] = open_memstream(&job.text[i], &job.len[i]);
		assert_non_null(job.f[i]);
		fprintf(job.f[i], HEADER("%d"), i + 1, i + 1);
		job.ms[i] = 1000;
	}
}

static void line(int i, const char *comm, int rank, const char *func, const char *what, int value,
		 unsigned int group, double start, double stop)
{
	fprintf(job.f[i],
		"{\"recordType\":\"event\",\"type\":\"ncclProfile%s\",\"commHash\":\"%s\",\"rank\":"
		"%d,"
		"\"start\":{\"ts\":%.3f,\"pid\":1,\"tid\":1},\"stop\":{\"ts\":%.3f},\"eventAddr\":"
		"\"0x%x\","
		"\"details\":{\"func\":\"%s\",\"%s\":%d,\"count\":1048576,\"dtype\":\"ncclInt8\","
		"\"parentGroup\":\"0x%x\"},"
		"\"exec\":{\"stop\":%.3f,\"source\":\"proxy\"}%s}\n",
		value < 0 || !strcmp(what, "peer") ? "P2p" : "Coll", comm, rank, start * 1000,
		start * 1000 + 1, ++job.id + 64, func, what, value, group, stop * 1000, job.more);
}

static void message(int i, const char *func, int peer, unsigned int group, double start,
		    double stop)
{
	line(i, "0xabc", i, func, "peer", peer, group, start, stop);
}

/* Of all that are not absent, one trace after the other. */
static void end(struct report *r)
{
	char *all = NULL;
	size_t len;
	FILE *f = open_memstream(&all, &len);
	int i;

	assert_non_null(f);
	for (i = 0; i < RANKS; i++) {
		fclose(job.f[i]);
		if (!job.absent[i])
			fwrite(job.text[i], 1, job.len[i], f);
		free(job.text[i]);
	}
	fclose(f);
	read_text(r, all, len);
	free(all);
	/* nothing waits any more, and all that came was counted as often as it went */
	assert_int_equal(r->npending, 0);
	assert_int_equal(r->parts_ready, 0);
	assert_null(r->sides);
}

static const struct report_class *of_kind(const struct report *r, const char *func)
{
	const struct report_class *k, *tmp;

	HASH_ITER (hh, r->classes, k, tmp)
		if (!strcmp(report_func_text(r, k), func))
			return k;
	return NULL;
}

/* How many operations rank @rank is said to have come late to, by their process' order; that of nobody else. */
static uint64_t late_of(const struct report *r, int32_t rank)
{
	struct report_find *f, *tmp;
	uint64_t n = 0;

	HASH_ITER (hh, r->finds, f, tmp) {
		if (f->key.code != CODE_LATE_RANK || !f->slow)
			continue;
		assert_int_equal(f->who->pid - 1, rank);
		n += f->slow;
	}
	return n;
}

/* That rank is late, and nothing else is wrong. */
static void is_named(const struct report *r, int32_t rank)
{
	struct report_find **finds;
	uint32_t n;

	finds = report_findings(r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
	assert_int_equal(finds[0]->who->pid - 1, rank);
	free(finds);
}

/* ---- All to all ---------------------------------------------------------------------------------------------- */

/* Each with each in a group, also itself, of which nothing tells the end; @late ms of rank 2 in the @nr-th. */
static void all_to_all(int n, int nr, double late)
{
	static unsigned int group = 1u << 24;
	double last, start;
	int i, k, it;

	for (it = 0; it < n; it++) {
		last = job.ms[0] + 5 + (it == nr ? late : 0);
		for (i = 0; i < 3; i++) {
			start = job.ms[i] + 5 + (it == nr && i == 2 ? late : 0);
			for (k = 0; k < 3; k++) {
				message(i, "Send", k, group, start, last + 8);
				message(i, "Recv", k, group, start, last + 10);
			}
			job.ms[i] = last + 10;
		}
		group++;
	}
}

static void groups_of_all_ranks(void **state)
{
	const struct report_class *k;
	struct report r;

	(void)state;
	begin();
	job.absent[3] = true;
	all_to_all(40, 30, 200);
	end(&r);
	assert_int_equal(r.totals.ops, 40);
	k = of_kind(&r, "SendRecv");
	assert_non_null(k);
	assert_int_equal(k->n, 40);
	assert_int_equal(k->min_bytes, 3 << 20);
	assert_int_equal(k->max_bytes, 3 << 20);
	assert_int_equal(hist__quantile(&k->time, 0.5) / MS, 10);
	assert_int_equal(k->all_slow, 1);
	assert_int_equal(k->slow[0].code, CODE_LATE_RANK);
	assert_int_equal(k->slow[0].seq, 30);
	assert_int_equal(late_of(&r, 2), 1);
	report_free(&r);
}

static void always_late_to_all(void **state)
{
	struct report r;
	int i;

	(void)state;
	begin();
	for (i = 0; i < 40; i++)
		all_to_all(1, 0, 20);
	end(&r);
	is_named(&r, 2);
	report_free(&r);
}

/* The one of the message that comes next. */
static void proxy_op(int i, const char *func, int peer, double start, double stop)
{
	fprintf(job.f[i],
		"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"start\":{\"ts\":%.3f},"
		"\"stop\":{\"ts\":%.3f},\"parentObj\":\"0x%x\",\"eventAddr\":\"0x5\","
		"\"details\":{\"peer\":%d,\"isSend\":%s}}\n",
		start * 1000, stop * 1000, job.id + 65, peer,
		strcmp(func, "Send") ? "false" : "true");
}

/* Groups of 10 ms, each 30th of which takes 200 ms more; then its last message (or @all) saw the port of its node count errors. */
static void groups_with_errors(struct report *r, bool all)
{
	static const char errors[] =
		",\"net\":{\"rdma\":[{\"device\":\"ib0\",\"port\":1,\"counters\":"
		"{\"packet_seq_err\":7}}]}";
	unsigned int it, k;
	const char *func;
	int i, peer, more;
	double ms;

	begin();
	job.absent[3] = true;
	for (i = 0; i < 3; i++) {
		for (it = 0; it < 100; it++) {
			ms = 1000 + 1000 * it;
			for (k = 0; k < 4; k++) { /* to and from both others */
				more = it % 30 == 9 && k == 3 ? 200 : 0;
				func = k % 2 ? "Recv" : "Send";
				peer = (i + 1 + (int)k / 2) % 3;
				job.more = it % 30 == 9 && (all || more) ? errors : "";
				proxy_op(i, func, peer, ms, ms + 10 + more);
				message(i, func, peer, (1u << 24) + it, ms, ms + 10 + more);
			}
		}
	}
	end(r);
}

/* Whichever message of a group's it is that saw the ports count. */
static void ports_of_a_group(void **state)
{
	const struct report_class *k;
	struct report r;
	int all;

	(void)state;
	for (all = 0; all < 2; all++) {
		groups_with_errors(&r, all);
		k = of_kind(&r, "SendRecv");
		assert_non_null(k);
		assert_int_equal(k->n, 100);
		assert_int_equal(k->all_slow, 4);
		assert_int_equal(k->slow[0].code, CODE_RDMA_LOSS);
		report_free(&r);
	}
}

/* Around a ring, as one that passes on keys and values; a rank goes on when its neighbours have come. @late ms of rank 2 in the @nr-th. */
static void around(int n, int nr, double late)
{
	static unsigned int group = 1u << 26;
	double start[RANKS], stop;
	int i, k, it;

	for (it = 0; it < n; it++) {
		for (i = 0; i < RANKS; i++)
			start[i] = job.ms[i] + 5 + (it == nr && i == 2 ? late : 0);
		for (i = 0; i < RANKS; i++) {
			stop = start[i];
			for (k = 1; k < RANKS; k += 2) /* its neighbours */
				if (start[(i + k) % RANKS] > stop)
					stop = start[(i + k) % RANKS];
			stop += 10;
			message(i, "Send", (i + 1) % RANKS, group, start[i], stop - 2);
			message(i, "Recv", (i + 3) % RANKS, group, start[i], stop);
			job.ms[i] = stop;
		}
		group++;
	}
}

static void around_a_ring(void **state)
{
	struct report r;
	int i;

	(void)state;
	begin();
	around(40, 30, 200);
	end(&r);
	assert_int_equal(of_kind(&r, "SendRecv")->n, 40);
	assert_int_equal(late_of(&r, 2), 1);
	report_free(&r);
	/* now and then, from the beginning on: it is not what a stage usually waits */
	begin();
	for (i = 0; i < 10; i++)
		around(8, 4, 60);
	end(&r);
	is_named(&r, 2);
	report_free(&r);
}

/* ---- From one to the next -------------------------------------------------------------------------------------- */

/*
 * Rank 0 computes and sends, four times; rank 1 waits for that, for longest for the first of them. Ranks 1 and 2 then have an AllReduce.
 * @late: of rank 0's third message, of rank 1 for the AllReduce.
 */
static void iteration(int nr, double late0, double late1)
{
	static unsigned int group = 1u << 20;
	double sent, end;
	int m;

	for (m = 0; m < 4; m++) {
		sent = job.ms[0] + (m ? 6 : 40) + (m == 2 ? late0 : 0);
		message(0, "Send", 1, ++group, sent, sent + 2);
		message(1, "Recv", 0, ++group, job.ms[1], sent + 2);
		job.ms[0] = sent + 2;
		job.ms[1] = sent + 2 + 5;
	}
	job.ms[1] += late1;
	end = (job.ms[1] > job.ms[2] + 60 ? job.ms[1] : job.ms[2] + 60) + 10;
	line(1, "0xdef", 0, "AllReduce", "seq", nr, 0, job.ms[1], end);
	line(2, "0xdef", 1, "AllReduce", "seq", nr, 0, job.ms[2] + 60, end);
	job.ms[0] = job.ms[1] = job.ms[2] = end;
}

static void pipeline(int n)
{
	static int nr;

	while (n--)
		iteration(nr++, 0, 0);
}

static void stages_wait_as_they_do(void **state)
{
	struct report r;

	(void)state;
	begin();
	pipeline(50);
	end(&r);
	assert_int_equal(of_kind(&r, "SendRecv")->n, 200);
	assert_int_equal(of_kind(&r, "SendRecv")->all_slow, 0);
	assert_int_equal(of_kind(&r, "AllReduce")->all_slow, 0);
	assert_int_equal(late_of(&r, -1), 0);
	report_free(&r);
}

static void a_stage_that_is_late(void **state)
{
	const struct report_class *k;
	struct report r;

	(void)state;
	begin();
	pipeline(60);
	iteration(1000, 200, 0);
	pipeline(20);
	end(&r);
	k = of_kind(&r, "SendRecv");
	assert_int_equal(k->all_slow, 1);
	assert_int_equal(k->slow[0].code, CODE_LATE_RANK);
	/* and who waited for it is not told to have been late to the AllReduce */
	assert_int_equal(of_kind(&r, "AllReduce")->all_slow, 0);
	assert_int_equal(late_of(&r, 0), 1);
	report_free(&r);
	/* but who was so by itself is */
	begin();
	pipeline(60);
	iteration(1001, 200, 0);
	pipeline(5);
	iteration(1002, 0, 300);
	pipeline(20);
	end(&r);
	k = of_kind(&r, "AllReduce");
	assert_int_equal(k->all_slow, 1);
	assert_int_equal(k->slow[0].code, CODE_LATE_RANK);
	assert_int_equal(k->slow[0].rank, 0);
	assert_int_equal(k->slow[0].who->pid, 2);
	report_free(&r);
}

/* ---- What belongs together ------------------------------------------------------------------------------------- */

/* How many operations have two ranks, and how many one. */
static void has(const struct report *r, uint64_t two, uint64_t one)
{
	const struct report_class *k = of_kind(r, "SendRecv");

	assert_non_null(k);
	assert_int_equal(k->n, two + one);
	/* each rank is in each once: so much time they were in them, of 1 ms each */
	assert_int_equal(k->op_span / MS, 2 * two + one);
}

/* Messages from rank 0 to 1, one each 10 ms, both ends of which take 1 ms; not the lines of those in @sent and @received. */
static void messages(int n, uint64_t sent, uint64_t received, double apart)
{
	double ms;
	int i;

	for (i = 0; i < n; i++) {
		ms = 1000 + 10 * i;
		if (!(sent >> i & 1))
			message(0, "Send", 1, 4096 + (unsigned int)i, ms, ms + 1);
		job.more = received >> i & 2 ? ",\"lossNear\":1" : "";
		if (!(received >> i & 1))
			message(1, "Recv", 0, 8192 + (unsigned int)i, ms + apart, ms + apart + 1);
		job.more = "";
	}
}

static void lines_that_were_lost(void **state)
{
	struct report r;

	(void)state;
	begin();
	messages(20, 0, 0, 0.5);
	end(&r);
	has(&r, 20, 0);
	report_free(&r);
	/* bytes lie there until they are received: still one of the other; but for the first ones, of which that is not sure */
	begin();
	messages(20, 0, 0, 3);
	end(&r);
	has(&r, 0, 40);
	report_free(&r);
	begin();
	message(0, "Send", 1, 16, 990, 991);
	message(1, "Recv", 0, 17, 990, 991);
	messages(20, 0, 0, 3);
	end(&r);
	has(&r, 21, 0);
	report_free(&r);
	/* of what was sent: what was received before cannot be of the next one */
	begin();
	messages(20, 1 << 9 | 1 << 12, 0, 0.5);
	end(&r);
	has(&r, 18, 2);
	report_free(&r);
	/* of what was received: the recorder tells that it lost something there */
	begin();
	messages(20, 0, 1 << 9, 0.5);
	end(&r);
	has(&r, 19, 1);
	report_free(&r);
}

/* A call, which is executed when all connections of its group have been made; of what comes next it is the parent. */
static void call(int i, const char *func, double start, bool captured)
{
	static char parent[64];

	fprintf(job.f[i],
		"{\"recordType\":\"event\",\"type\":\"ncclProfileP2pApi\",\"start\":{\"ts\":%.3f,"
		"\"pid\":1,\"tid\":1},\"stop\":{\"ts\":%.3f},\"eventAddr\":\"0x%x\",\"details\":{"
		"\"func\":\"%s\",\"graphCaptured\":%s}}\n",
		start * 1000, start * 1000 + 1, ++job.id + 64, func, captured ? "true" : "false");
	snprintf(parent, sizeof(parent), ",\"parentObj\":\"0x%x\"", job.id + 64);
	job.more = parent;
}

/*
 * Around a ring for the first time. Rank 0 comes late, until when only rank 2 has all its connections: its Send is over before the Recv of 3
 * begins, which was called in time.
 */
static void connections_that_take_long(void **state)
{
	const struct report_class *k;
	struct report r;
	double start;
	int i;

	(void)state;
	begin();
	for (i = 0; i < RANKS; i++) {
		start = i == 2 ? 1010 : 1150;
		call(i, "Send", 1001, false);
		message(i, "Send", (i + 1) % RANKS, 16, start, start + 2);
		call(i, "Recv", 1001, false);
		message(i, "Recv", (i + 3) % RANKS, 16, start, 1160);
	}
	end(&r);
	k = of_kind(&r, "SendRecv");
	assert_non_null(k);
	assert_int_equal(k->n, 1);
	assert_int_equal(k->time.max / MS, 150);
	report_free(&r);
}

/* What a CUDA graph replays was called once for all, before: which Send is of which Recv that does not tell. */
static void replays_of_a_call(void **state)
{
	struct report r;
	int m;

	(void)state;
	begin();
	call(1, "Recv", 1000, true);
	for (m = 0; m < 20; m++) {
		if (m < 17)
			message(0, "Send", 1, 16 + (unsigned int)m, 1010 + 10 * m, 1011 + 10 * m);
		if (m >= 5)
			message(1, "Recv", 0, 64 + (unsigned int)m, 1010 + 10 * m, 1011 + 10 * m);
	}
	end(&r);
	has(&r, 12, 8);
	report_free(&r);
}

/* Ranks that the input has not are not waited for for ever, nor is it told that they are late. */
static void ends_that_nobody_recorded(void **state)
{
	struct report r;

	(void)state;
	begin();
	messages(20, 0, 0, 0.5);
	job.absent[1] = true;
	end(&r);
	has(&r, 0, 20);
	assert_int_equal(of_kind(&r, "SendRecv")->all_slow, 0);
	report_free(&r);
}

static void never_sent(void **state)
{
	struct report_find **finds;
	struct report r;
	uint32_t n;

	(void)state;
	begin();
	messages(20, 0, 0, 0.5);
	message(0, "Send", 2, 1, 1200, 1201);
	message(2, "Recv", 0, 2, 1200, 1201);
	fprintf(job.f[1], "{\"recordType\":\"open\",\"eventType\":\"ncclProfileP2p\",\"commHash\":"
			  "\"0xabc\",\"rank\":1,"
			  "\"ts\":9000000.000,\"quiet\":7000000.000,\"start\":{\"ts\":2000000.000,"
			  "\"pid\":1,\"tid\":1},\"eventAddr\":"
			  "\"0x9\",\"details\":{\"func\":\"Recv\",\"peer\":0,\"count\":1048576,"
			  "\"dtype\":\"ncclInt8\",\"parentGroup\":\"0x3\"}}\n");
	end(&r);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_MISSING);
	assert_int_equal(finds[0]->hung, 1);
	/* of ranks 0 and 2, which both are not in it, the one that it waits for */
	assert_int_equal(finds[0]->who->pid, 1);
	free(finds);
	report_free(&r);
}

/* A Send or Recv (@seq -1) or a collective that does not move any more, from @start on, which is 2000 to 3000. */
static void hangs(int i, const char *comm, int rank, const char *func, int peer, int seq,
		  double start)
{
	job.id++;
	fprintf(job.f[i],
		"{\"recordType\":\"open\",\"eventType\":\"ncclProfile%s\",\"commHash\":\"%s\","
		"\"rank\":%d,\"ts\":9000000.000,\"quiet\":5000000.000,\"start\":{\"ts\":%.3f,"
		"\"pid\":1,\"tid\":1},\"eventAddr\":\"0x%x\",\"details\":{\"func\":\"%s\","
		"\"%s\":%d,\"count\":1048576,\"dtype\":\"ncclInt8\",\"parentGroup\":\"0x%x\"}}\n",
		seq < 0 ? "P2p" : "Coll", comm, rank, start * 1000, job.id + 64, func,
		seq < 0 ? "peer" : "seq", seq < 0 ? peer : seq, job.id + 64);
}

/* In that communicator the process is that rank. */
static void is_in(int i, const char *comm, int rank)
{
	line(i, comm, rank, "AllReduce", "seq", 0, 0, 1000, 1010);
}

/* All has been written. Of these processes each has a verdict, that it is the one that does not come, and nobody else has; @hung operations for the first. */
static void is_missing(uint32_t mask, uint64_t hung)
{
	struct report_find **finds;
	uint32_t n, i, found = 0;
	struct report r;

	end(&r);
	finds = report_findings(&r, &n);
	assert_true(n > 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(finds[i]->key.code, CODE_MISSING);
		found |= 1u << (finds[i]->who->pid - 1);
	}
	assert_int_equal(found, mask);
	assert_int_equal(finds[0]->hung, hung);
	free(finds);
	report_free(&r);
}

/* Each stage waits for the one before, and the first one does something else: whoever began to wait first. */
static void stages_that_hang(void **state)
{
	static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const char *const pairs[] = {"0xa0", "0xa1", "0xa2"};
	size_t k;
	int i;

	(void)state;
	for (k = 0; k < sizeof(orders) / sizeof(orders[0]); k++) {
		begin();
		for (i = 0; i < RANKS; i++)
			is_in(i, "0xabc", i);
		for (i = 1; i < RANKS; i++)
			hangs(i, "0xabc", i, "Recv", i - 1, -1, 2000 + 100 * orders[k][i - 1]);
		is_missing(1, 1);
		/* the same, of communicators of two each */
		begin();
		for (i = 1; i < RANKS; i++) {
			is_in(i - 1, pairs[i - 1], 0);
			is_in(i, pairs[i - 1], 1);
			hangs(i, pairs[i - 1], 1, "Recv", 0, -1, 2000 + 100 * orders[k][i - 1]);
		}
		is_missing(1, 1);
	}
}

/* Rank 1 has sent what it had to, and does nothing: 0 has that and waits for 2, which waits for 1. */
static void idle_with_its_part_over(void **state)
{
	int i;

	(void)state;
	begin();
	for (i = 0; i < RANKS; i++)
		is_in(i, "0xabc", i);
	hangs(0, "0xabc", 0, "Recv", 2, -1, 2000);
	message(0, "Recv", 1, (unsigned int)job.id + 64, 2000, 2001);
	message(1, "Send", 0, 4096, 2000, 2001);
	hangs(2, "0xabc", 2, "Recv", 1, -1, 2100);
	is_missing(1 << 1, 1);
}

static void in_groups_of_two(void)
{
	int i;

	begin();
	for (i = 0; i < RANKS; i++) {
		is_in(i, i < 2 ? "0xa0" : "0xa1", i % 2);
		is_in(i, i % 2 ? "0xb1" : "0xb0", i / 2);
	}
}

/* Tensor and data parallel: rank 1 does not come, so 0 waits for it; ranks 2 and 3 have gone on, and wait for 0 and 1. */
static void groups_that_hang(void **state)
{

	(void)state;
	in_groups_of_two();
	hangs(2, "0xb0", 1, "AllReduce", 0, 1, 2000);
	hangs(3, "0xb1", 1, "AllReduce", 0, 1, 2000);
	hangs(0, "0xa0", 0, "AllReduce", 0, 1, 2100);
	is_missing(1 << 1, 2);
	/* each waits for the next one: somebody is told of */
	in_groups_of_two();
	hangs(0, "0xa0", 0, "AllReduce", 0, 1, 2000);
	hangs(1, "0xb1", 0, "AllReduce", 0, 1, 2000);
	hangs(3, "0xa1", 1, "AllReduce", 0, 1, 2000);
	hangs(2, "0xb0", 1, "AllReduce", 0, 1, 2000);
	is_missing(15, 1);
	/* who calls something else than the others is the one, though it hangs as well */
	begin();
	hangs(3, "0xabc", 3, "AllGather", 0, 1, 2200);
	hangs(0, "0xabc", 0, "AllReduce", 0, 1, 2100);
	hangs(1, "0xabc", 1, "AllReduce", 0, 1, 2100);
	hangs(2, "0xabc", 2, "AllReduce", 0, 1, 2100);
	is_missing(1 << 3, 1);
}

/* What goes on when a signal ends the process. */
static void cut_off(int i, const char *comm, int rank, int seq)
{
	job.id++;
	fprintf(job.f[i],
		"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"%s\","
		"\"rank\":%d,\"start\":{\"ts\":2000000.000,\"pid\":1,\"tid\":1},\"unfinished\":"
		"true,"
		"\"eventAddr\":\"0x%x\",\"details\":{\"func\":\"AllReduce\",\"seq\":%d,"
		"\"count\":1048576,\"dtype\":\"ncclInt8\"}}\n",
		comm, rank, job.id + 64, seq);
}

/* As one of a job that is killed. */
static void dies(int i, const char *comm, int rank, int nr, double ms)
{
	int seq;

	fprintf(job.f[i],
		"{\"recordType\":\"signal\",\"ts\":%.3f,\"signal\":\"SIG\",\"nr\":%d,\"code\":0,"
		"\"from\":{\"pid\":77}}\n",
		ms * 1000, nr);
	for (seq = 1; seq <= 3; seq++)
		cut_off(i, comm, rank, seq);
	fprintf(job.f[i], "{\"recordType\":\"footer\",\"end\":\"signal %d\"}\n", nr);
}

/* A rank dies, and with it the job: what others had under way in their own groups hangs no more than it did. */
static void groups_that_are_killed(void **state)
{
	struct report_class *k, *tmp;
	struct report_find **finds;
	uint64_t hung = 0;
	struct report r;
	uint32_t n;

	(void)state;
	in_groups_of_two();
	dies(0, "0xa0", 0, 15, 2600);
	dies(1, "0xa0", 1, 15, 2601);
	dies(2, "0xa1", 0, 15, 2602);
	dies(3, "0xa1", 1, 11, 2400);
	end(&r);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_MISSING);
	assert_int_equal(finds[0]->who->pid - 1, 3);
	assert_int_equal(finds[0]->hung, 1);
	free(finds);
	HASH_ITER (hh, r.classes, k, tmp)
		hung += k->hung;
	assert_int_equal(hung, 3); /* of the group of the first */
	report_free(&r);
}

/*
 * Three windows (record --every) of ten messages, in the first of which rank 1 may have done nothing: then it has no file of it.
 * Or beside a recording of all of that.
 */
static void recorded_in_windows(bool idle, bool beside)
{
	int first[2] = {beside ? -1 : 0, beside ? -1 : idle}, w, m, i;
	struct report r;
	double ms;

	begin();
	for (w = first[0]; w < 3; w++) {
		for (i = 0; i < 2; i++)
			if (w > first[i])
				fprintf(job.f[i], HEADER("%d"), i + 1, i + 1);
		for (m = 0; m < (w < 0 ? 30 : 10); m++) {
			ms = 1000 + 60000 * (w < 0 ? m / 10 : w) + 10 * (m % 10);
			message(0, "Send", 1, 4096 + 100 * (unsigned int)(w + 1) + (unsigned int)m,
				ms, ms + 1);
			if (w >= first[1])
				message(1, "Recv", 0,
					8192 + 100 * (unsigned int)(w + 1) + (unsigned int)m,
					ms + 0.5, ms + 1.5);
		}
	}
	end(&r);
	has(&r, idle ? 20 : beside ? 60 : 30, idle ? 10 : 0);
	report_free(&r);
}

static void windows(void **state)
{
	(void)state;
	recorded_in_windows(false, false);
	recorded_in_windows(true, false);
	recorded_in_windows(false, true);
}

/* ---- The last group ------------------------------------------------------------------------------------------------ */

/* Nothing but a connection that lies idle, for so many ms: lines of a kilobyte, so that it takes many readings. */
static void idles(int i, double from, double ms)
{
	double at;

	for (at = from; at < from + ms; at += 200)
		fprintf(job.f[i],
			"{\"recordType\":\"flow\",\"flow\":\"a\",\"ts\":%.3f,\"more\":\"%1000s\"}"
			"\n",
			at * 1000, "");
}

/* One of rank @i's in a group of all to all, the @k-th, in an order of its own. */
static void exchange_line(int i, int k, int ranks, unsigned int group, double ms)
{
	int peer = (i + 1 + k / 2) % ranks;
	bool send = (k + i) % 2;

	message(i, send ? "Send" : "Recv", peer, group, ms, ms + 10);
}

/*
 * What comes last may turn out never to have ended, so it waits for the next one, or for the end: and with it all of its group, which
 * else counts once without it and once more for it. Be it that the job pauses, or that it is over and its recording goes on.
 */
static void a_group_before_a_pause(void **state)
{
	static const double pauses[] = {0, 10000, 200000};
	struct report r;
	size_t p;
	int i, k, n;

	(void)state;
	for (n = 2; n <= RANKS; n++) {
		for (p = 0; p < sizeof(pauses) / sizeof(pauses[0]); p++) {
			begin();
			for (i = 0; i < RANKS; i++) {
				job.absent[i] = i >= n;
				for (k = 0; k < 2 * (n - 1); k++)
					exchange_line(i, k, n, 16, 1000);
				idles(i, 1100, pauses[p]);
				for (k = 0; k < 2 * (n - 1); k++)
					exchange_line(i, k, n, 17, 1200 + pauses[p]);
				idles(i, 1300 + pauses[p], pauses[p]);
			}
			end(&r);
			assert_int_equal(r.totals.ops, 2);
			assert_int_equal(of_kind(&r, "SendRecv")->op_span / MS, 2 * 10 * n);
			report_free(&r);
		}
	}
}

/* One that is too large to wait together is whole but for what came last, and not cut somewhere in the middle. */
static void a_large_group_before_a_pause(void **state)
{
	struct report r;
	int i, k;

	(void)state;
	begin();
	for (i = 0; i < RANKS; i++) {
		for (k = 0; k < 960; k++)
			exchange_line(i, k, RANKS, 16, 1000 + k / 60.0);
		idles(i, 1100, 150000);
		for (k = 0; k < 960; k++)
			exchange_line(i, k, RANKS, 17, 151100 + k / 60.0);
	}
	end(&r);
	assert_int_equal(of_kind(&r, "SendRecv")->n, 2);
	assert_int_equal(of_kind(&r, "SendRecv")->min_bytes, 480 << 20);
	assert_int_equal(of_kind(&r, "SendRecv")->max_bytes, 480 << 20);
	report_free(&r);
}

/* After one message rank 0 has sent another, and what it receives in the same group never comes: one operation, which hangs. */
static void a_group_of_which_one_hangs(void **state)
{
	struct report_find **finds;
	struct report r;
	uint32_t n;
	double at;

	(void)state;
	begin();
	job.absent[2] = job.absent[3] = true;
	for (n = 0; n < 2; n++)
		line((int)n, "0xdef", (int)n, "AllReduce", "seq", 0, 0, 800, 810);
	message(0, "Send", 1, 15, 900, 910);
	message(1, "Recv", 0, 15, 900, 910);
	message(0, "Send", 1, 16, 1000, 1010);
	line(0, "0xdef", 0, "AllReduce", "seq", 1, 0, 1500, 1600); /* it has others, too */
	for (at = 2200; at < 80000; at += 5000) {
		fprintf(job.f[0],
			"{\"recordType\":\"open\",\"eventType\":\"ncclProfileP2p\",\"commHash\":"
			"\"0xabc\",\"rank\":0,\"ts\":%.3f,\"quiet\":1500000.000,"
			"\"start\":{\"ts\":1000000.000,\"pid\":1,\"tid\":1},\"eventAddr\":\"0x9\","
			"\"details\":{\"func\":\"Recv\",\"peer\":1,\"count\":1048576,"
			"\"dtype\":\"ncclInt8\",\"parentGroup\":\"0x10\"}}\n",
			at * 1000);
		idles(0, at, 5000);
	}
	message(1, "Recv", 0, 16, 1000, 1010);
	line(1, "0xdef", 1, "AllReduce", "seq", 1, 0, 1500, 1600);
	idles(1, 1100, 80000);
	end(&r);
	assert_int_equal(r.totals.ops, 4);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->hung, 1);
	free(finds);
	report_free(&r);
}

/* ---- Hostile ------------------------------------------------------------------------------------------------------ */

static uint32_t any(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % n;
}

/* Messages of any rank to any rank in any group at any time: nothing breaks, and nothing waits at the end. */
static void whatever_comes(void **state)
{
	struct report r;
	uint64_t seed;
	double ms;
	int i, k;

	(void)state;
	for (seed = 1; seed < 60; seed++) {
		uint64_t s = seed;
		uint32_t ranks = 1 + any(&s, 6), groups = 1 + any(&s, 40),
			 range = 1 + any(&s, 9000);

		begin();
		for (k = 0; k < 800; k++) {
			i = (int)any(&s, RANKS);
			ms = any(&s, range);
			line(i, any(&s, 9) ? "0xabc" : "0xdef", (int)any(&s, ranks),
			     any(&s, 2) ? "Send" : "Recv", "peer",
			     (int)any(&s, ranks + 1) - (int)(seed & 1), any(&s, groups), ms,
			     ms + any(&s, 50) - 2);
		}
		end(&r);
		assert_int_not_equal(r.totals.ops, 0);
		report_free(&r);
	}
}

/* More than may wait, all of one group or each of its own. */
static void more_than_there_is_room_for(void **state)
{
	struct report r;
	int i;

	(void)state;
	begin();
	for (i = 0; i < 40000; i++)
		message(0, "Send", 1 + i % 3, i < 20000 ? 7 : 4096 + (unsigned int)i,
			1000 + i / 100.0, 1001 + i / 100.0);
	end(&r);
	assert_int_equal(r.totals.ops, 20001);
	assert_int_equal(r.waiting_bytes, 0);
	report_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_of_all_ranks),
		cmocka_unit_test(always_late_to_all),
		cmocka_unit_test(ports_of_a_group),
		cmocka_unit_test(around_a_ring),
		cmocka_unit_test(stages_wait_as_they_do),
		cmocka_unit_test(a_stage_that_is_late),
		cmocka_unit_test(lines_that_were_lost),
		cmocka_unit_test(connections_that_take_long),
		cmocka_unit_test(replays_of_a_call),
		cmocka_unit_test(ends_that_nobody_recorded),
		cmocka_unit_test(never_sent),
		cmocka_unit_test(stages_that_hang),
		cmocka_unit_test(idle_with_its_part_over),
		cmocka_unit_test(groups_that_hang),
		cmocka_unit_test(groups_that_are_killed),
		cmocka_unit_test(windows),
		cmocka_unit_test(a_group_before_a_pause),
		cmocka_unit_test(a_large_group_before_a_pause),
		cmocka_unit_test(a_group_of_which_one_hangs),
		cmocka_unit_test(whatever_comes),
		cmocka_unit_test(more_than_there_is_room_for),
	};

	return cmocka_run_group_tests_name("report_p2p", tests, NULL, NULL);
}
