// SPDX-License-Identifier: BSD-2-Clause
/* The report for programs: one JSON object, or a table; docs/report.md says what is in them. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "csv.h"
#include "report.h"

static json_t *text_of(const struct report *r, uint32_t name)
{
	const char *s = names__text(r->names, name);
	json_t *text = json_string(s);

	return text ? text : json_string("?"); /* a file's name may be no UTF-8 */
}

/* There are names in it, of which one may be cut within a character. */
static json_t *evidence_of(const char *s)
{
	char ascii[sizeof(((struct report_find *)NULL)->evidence[0])];
	json_t *text = json_string(s);

	if (text)
		return text;
	report_clean(ascii, sizeof(ascii), s);
	return json_string(ascii);
}

static json_t *us(int64_t ns)
{
	return json_real((double)ns / 1e3);
}

static json_t *seconds(int64_t ns)
{
	return json_real((double)ns / 1e9);
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)(n < INT64_MAX ? n : INT64_MAX));
}

static json_t *hex_of(uint64_t hash)
{
	return json_sprintf("0x%llx", (unsigned long long)hash);
}

static json_t *inputs(const struct report *r)
{
	json_t *list = json_array();
	const struct report_proc *p;

	for (p = r->procs; p; p = p->next)
		json_array_append_new(list,
				      json_pack("{so so si si so so sb so}", "file",
						text_of(r, p->file), "host", text_of(r, p->host),
						"pid", p->host_pid, "rank", p->rank, "events",
						number(p->events), "lost", number(p->lost),
						"finished", p->footer, "end", text_of(r, p->end)));
	return list;
}

static json_t *op_of(const struct report *r, const struct report_class *k)
{
	json_t *op = json_pack(
		"{so so so so so so so so so}", "func", text_of(r, k->key.func), "algo",
		text_of(r, k->key.algo), "proto", text_of(r, k->key.proto), "sizeClass",
		json_sprintf("%llu", 1ull << (k->key.size < 63 ? k->key.size : 63)), "minBytes",
		number(report_size(r, k, false)), "maxBytes", number(report_size(r, k, true)), "n",
		number(k->n), "slow", number(k->all_slow), "hung", number(k->hung));

	if (!op || !k->time.n)
		return op;
	json_object_set_new(op, "timed", number(k->time.n));
	json_object_set_new(op, "algbw", json_real(report_algbw(r, k)));
	json_object_set_new(op, "busbw", json_real(report_busbw(r, k)));
	json_object_set_new(op, "p50", us(hist__quantile(&k->time, 0.5)));
	json_object_set_new(op, "p99", us(hist__quantile(&k->time, 0.99)));
	json_object_set_new(op, "max", us(k->time.max));
	json_object_set_new(op, "split",
			    json_pack("{so so so* so so so}", "total", seconds(k->op_span), "late",
				      seconds(k->late), "noData",
				      k->flows ? seconds(k->no_data) : NULL, "onCpu",
				      seconds(k->on), "runq", seconds(k->runq), "blocked",
				      seconds(k->blocked)));
	return op;
}

static json_t *comms(const struct report *r)
{
	json_t *list = json_array(), *ops, *comm;
	const struct report_comm *c, *tmp;
	const struct report_class *k;

	HASH_ITER (hh, r->comms, c, tmp) {
		ops = json_array();
		for (k = c->classes; k; k = k->next)
			if (k->n)
				json_array_append_new(ops, op_of(r, k));
		comm = json_pack("{so so si si so}", "commHash", hex_of(c->hash), "name",
				 text_of(r, c->name), "nranks", report_nranks(c), "ranksSeen",
				 (int)HASH_COUNT(c->members), "ops", ops);
		if (c->alone)
			json_object_set_new(comm, "notJoined", number(c->alone));
		json_array_append_new(list, comm);
	}
	return list;
}

/* Whose it is: keys are absent where nobody's. */
static void set_who(const struct report *r, json_t *obj, const struct report_find *f)
{
	if (f->who) {
		json_object_set_new(obj, "rank", json_integer(report_rank(f->who, f->key.rank)));
		json_object_set_new(obj, "host", text_of(r, f->who->host));
		json_object_set_new(obj, "pid", json_integer(f->who->host_pid));
	}
	if (f->key.comm)
		json_object_set_new(obj, "commHash", hex_of(f->key.comm));
	if (f->key.culprit)
		json_object_set_new(obj, "culprit", text_of(r, f->key.culprit));
	if (f->together.processes > 1)
		json_object_set_new(obj, "processes", number(f->together.processes));
	if (f->together.ranks)
		json_object_set_new(obj, "ranks", number(f->together.ranks));
}

static json_t *evidence(const struct report *r, const struct report_find *f)
{
	json_t *all = json_array();
	char gpu[160], most[256];
	uint32_t i;

	for (i = 0; i < REPORT_EVIDENCE; i++)
		if (f->evidence[i][0])
			json_array_append_new(all, evidence_of(f->evidence[i]));
	if (report_tell_most(r, f, most, sizeof(most)))
		json_array_append_new(all, evidence_of(most));
	if (f->who && f->who->self->kmsg)
		json_array_append_new(all, evidence_of(f->who->self->kmsg->text));
	if (report_tell_gpu(f, gpu, sizeof(gpu)))
		json_array_append_new(all, evidence_of(gpu));
	return all;
}

static json_t *verdicts(const struct report *r)
{
	uint32_t n, i;
	struct report_find **list = report_findings(r, &n);
	json_t *all = json_array(), *v;

	for (i = 0; list && i < n; i++) {
		const struct report_find *f = list[i];

		v = json_pack("{ss so so so so sf so}", "code", report_code_names[f->key.code],
			      "ops", number(f->ops > f->slow ? f->ops : f->slow), "slow",
			      number(f->slow), "hung", number(f->hung), "cost", seconds(f->cost),
			      "confidence", f->conf, "evidence", evidence(r, f));
		if (!v)
			continue; /* no memory */
		set_who(r, v, f);
		if (f->loss_near)
			json_object_set_new(v, "lossNear", number(f->loss_near));
		json_array_append_new(all, v);
	}
	free(list);
	return all;
}

static json_t *slow(const struct report *r)
{
	const struct report_class *k, *tmp;
	json_t *list = json_array(), *obj;
	uint32_t i;

	HASH_ITER (hh, r->classes, k, tmp) {
		for (i = 0; i < k->nslow; i++) {
			const struct report_slow *s = &k->slow[i];

			obj = json_pack("{so so so so so ss sf}", "commHash", hex_of(k->comm->hash),
					"func", text_of(r, s->func), "seq", number(s->seq),
					"duration", us(s->duration), "expected", us(s->expected),
					"code", report_code_names[s->code], "confidence",
					s->confidence);
			if (s->rank >= 0)
				json_object_set_new(obj, "rank",
						    json_integer(report_rank(s->who, s->rank)));
			if (s->who) {
				json_object_set_new(obj, "host", text_of(r, s->who->host));
				json_object_set_new(obj, "pid", json_integer(s->who->host_pid));
			}
			if (s->culprit)
				json_object_set_new(obj, "culprit", text_of(r, s->culprit));
			if (s->hung)
				json_object_set_new(obj, "hung", json_true());
			json_array_append_new(list, obj);
		}
	}
	return list;
}

static json_t *threads_of(const struct report *r, const struct report_proc *p)
{
	const struct report_thread *t, *tmp;
	json_t *list = json_array();

	HASH_ITER (hh, p->threads, t, tmp)
		json_array_append_new(
			list, json_pack("{si so so so so so so so}", "tid", (int)t->tid, "comm",
					text_of(r, t->comm), "role", text_of(r, t->role), "onCpu",
					seconds(t->on), "runq", seconds(t->runq), "blocked",
					seconds(t->blocked), "irq", seconds(t->irq), "throttled",
					seconds(t->throttled)));
	return list;
}

static json_t *ranks(const struct report *r)
{
	const struct report_proc *p;
	json_t *list = json_array();

	for (p = r->procs; p; p = p->next) {
		if (p->self != p)
			continue;
		json_array_append_new(
			list, json_pack("{si so si so so so so so so so* so so so}", "rank",
					p->rank, "host", text_of(r, p->host), "pid", p->host_pid,
					"inOps", seconds(p->op_ns), "onCpu", seconds(p->on), "runq",
					seconds(p->runq), "blocked", seconds(p->blocked), "irq",
					seconds(p->irq), "throttled", seconds(p->throttled),
					"waitNet", p->flows ? seconds(p->wait_net) : NULL,
					"waitGpu", seconds(p->wait_gpu), "waitPeer",
					seconds(p->wait_peer), "threads", threads_of(r, p)));
	}
	return list;
}

static json_t *kernel_log(const struct report *r)
{
	const struct report_kmsg *k, *tmp;
	json_t *list = json_array(), *obj;
	char text[sizeof(k->text)];

	HASH_ITER (hh, r->kmsg, k, tmp) {
		report_clean(text, sizeof(text), k->text);
		obj = json_pack("{so so si so ss}", "host", text_of(r, k->host), "after",
				seconds(k->after), "level", (int)k->level, "sign",
				text_of(r, k->sign), "text", text);
		if (k->proc) {
			json_object_set_new(obj, "pid", json_integer(k->proc->host_pid));
			json_object_set_new(obj, "rank", json_integer(k->proc->rank));
		}
		json_array_append_new(list, obj);
	}
	return list;
}

/* Those of `n` that are not 0, by their names from `first` on. */
static json_t *not_zero(const uint64_t *n, enum gpu_value first, enum gpu_value last, bool times)
{
	json_t *obj = json_object();
	enum gpu_value v;

	for (v = first; v <= last; v++)
		if (n[v - first])
			json_object_set_new(obj, gpu_value_names[v],
					    times ? seconds((int64_t)n[v - first])
						  : number(n[v - first]));
	return obj;
}

static json_t *gpus(const struct report *r)
{
	const struct report_gpu *g, *tmp;
	json_t *list = json_array(), *obj;
	uint64_t held[REPORT_HELD_WHYS];
	int i;

	HASH_ITER (hh, r->gpus, g, tmp) {
		for (i = 0; i < REPORT_HELD_WHYS; i++)
			held[i] = (uint64_t)g->held[i];
		obj = json_pack("{so si so so so si so so so}", "host", text_of(r, g->host),
				"index", (int)g->index, "uuid", text_of(r, g->uuid), "name",
				text_of(r, g->name), "pci", text_of(r, g->pci), "rank",
				report_gpu_rank(g), "time", seconds(g->time), "held",
				not_zero(held, GPU_HELD_FIRST, GPU_HELD_LAST, true), "errors",
				not_zero(g->errors, GPU_ERROR_FIRST, GPU_ERROR_LAST, false));
		if (g->nclock)
			json_object_set_new(obj, "smClock", json_integer(report_gpu_clock(g)));
		if (g->clock_max)
			json_object_set_new(obj, "smClockMax", json_integer(g->clock_max));
		if (g->npower)
			json_object_set_new(obj, "power", json_integer(g->power / g->npower));
		if (g->temperature)
			json_object_set_new(obj, "temperature", json_integer(g->temperature));
		if (g->width_max) {
			json_object_set_new(obj, "pcieWidth", json_integer(g->width));
			json_object_set_new(obj, "pcieWidthMax", json_integer(g->width_max));
		}
		if (g->lost)
			json_object_set_new(obj, "lost", json_true());
		json_array_append_new(list, obj);
	}
	return list;
}

static json_t *ports(const struct report *r)
{
	struct report_port *port, *tmp;
	json_t *list = json_array(), *counters;
	uint32_t i;

	HASH_ITER (hh, r->ports, port, tmp) {
		counters = json_object();
		for (i = 0; i < port->ncounters; i++)
			json_object_set_new(counters, names__text(r->names, port->counters[i].name),
					    number(port->counters[i].n));
		json_array_append_new(list, json_pack("{so so so}", "host", text_of(r, port->host),
						      "port", text_of(r, port->name), "counters",
						      counters));
	}
	return list;
}

static json_t *name_if(const struct report *r, uint32_t name)
{
	return name ? text_of(r, name) : NULL;
}

/* That a rank has ended; of one that does not sleep either, the share of its time that its first thread had a CPU. */
static void put_rest(const struct report *r, const struct report_still *s, json_t *to)
{
	int64_t all = s->thread->asleep ? 0 : report_thread_ns(s->thread);
	char how[sizeof(((struct report_find *)NULL)->evidence[0])];

	if (report_has_ended(s->proc, r->names))
		json_object_set_new(to, "end", text_of(r, s->proc->newest->end));
	else if (all)
		json_object_set_new(to, "busy", json_real((double)s->thread->on / (double)all));
	if (report_how_ended(s->proc, r->names, how, sizeof(how)))
		json_object_set_new(to, "how", evidence_of(how));
}

static json_t *stills(const struct report *r)
{
	uint32_t n, i;
	struct report_still *list = report_stills(r, &n);
	const struct report_thread *t;
	const struct report_proc *p;
	json_t *all = json_array(), *row;

	for (i = 0; list && i < n; i++) {
		p = list[i].proc;
		t = list[i].thread;
		row = json_pack("{si so* so si si sb so* so* so* so* so*}", "rank", p->rank,
				"commHash", p->within ? hex_of(p->within) : NULL, "host",
				text_of(r, p->host), "pid", p->host_pid, "tid", (int)t->tid,
				"apart", list[i].apart, "asleep",
				t->asleep ? seconds(t->asleep) : NULL, "orLonger",
				t->asleep && t->all_asleep ? json_true() : NULL, "in",
				t->asleep ? name_if(r, t->why) : NULL, "file",
				t->asleep ? name_if(r, t->file) : NULL, "stack",
				t->asleep ? name_if(r, t->stack) : NULL);
		put_rest(r, &list[i], row);
		json_array_append_new(all, row);
	}
	free(list);
	return all;
}

static json_t *losses(const struct report *r)
{
	const struct lost_cause *l, *tmp;
	json_t *obj = json_object();

	HASH_ITER (hh, r->losses, l, tmp)
		json_object_set_new(obj, names__text(r->names, l->name), number(l->n));
	return obj;
}

int report_json(const struct report *r, FILE *f)
{
	const struct report_comm *worst;
	json_t *all = json_pack("{si so so so so so so so so so so so so}", "schema", 1, "inputs",
				inputs(r), "comms", comms(r), "partialComms",
				number(report_partial(r, &worst)), "verdicts", verdicts(r), "slow",
				slow(r), "ranks", ranks(r), "still", stills(r), "gpus", gpus(r),
				"rdmaPorts", ports(r), "kernelLog", kernel_log(r), "losses",
				losses(r), "tornLines", number(r->totals.torn));
	int err = 0;

	if (!all)
		return -ENOMEM;
	if (json_dumpf(all, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) || fputc('\n', f) == EOF)
		err = -EIO;
	json_decref(all);
	return err;
}

/* ---- The table of operations ---------------------------------------------------------------------------------- */

/* As RFC 4180 says; what a spreadsheet would take for a formula becomes text. */
static void put_cell(const char *s, FILE *f)
{
	bool formula = csv__begins_formula(*s);

	if (!formula && !strpbrk(s, ",\"\r\n")) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	if (formula)
		fputc('\'', f);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

static void put_op(const struct report *r, const struct report_class *k, FILE *f)
{
	fprintf(f, "0x%llx,", (unsigned long long)k->comm->hash);
	put_cell(names__text(r->names, k->comm->name), f);
	fprintf(f, ",%d,", report_nranks(k->comm));
	put_cell(names__text(r->names, k->key.func), f);
	fputc(',', f);
	put_cell(names__text(r->names, k->key.algo), f);
	fputc(',', f);
	put_cell(names__text(r->names, k->key.proto), f);
	fprintf(f, ",%llu,%llu,%llu,", (unsigned long long)report_size(r, k, false),
		(unsigned long long)report_size(r, k, true), (unsigned long long)k->n);
	if (k->time.n)
		fprintf(f, "%.6f,%.6f,%.3f,%.3f,%.3f", report_algbw(r, k), report_busbw(r, k),
			(double)hist__quantile(&k->time, 0.5) / 1e3,
			(double)hist__quantile(&k->time, 0.99) / 1e3, (double)k->time.max / 1e3);
	else
		fputs(",,,,", f);
	fprintf(f, ",%llu,%llu,", (unsigned long long)k->all_slow, (unsigned long long)k->hung);
	if (!k->time.n) {
		fputs(",,,,\r\n", f);
		return;
	}
	fprintf(f, "%.6f,", (double)k->late / 1e9);
	if (k->flows)
		fprintf(f, "%.6f", (double)k->no_data / 1e9);
	fprintf(f, ",%.6f,%.6f,%.6f\r\n", (double)k->on / 1e9, (double)k->runq / 1e9,
		(double)k->blocked / 1e9);
}

void report_csv(const struct report *r, FILE *f)
{
	const struct report_class *k, *tmp;

	fputs("comm,name,nranks,func,algo,proto,min_bytes,max_bytes,count,algbw_GBps,busbw_GBps,"
	      "p50_us,p99_us,max_us,slow,hung,late_s,no_data_s,on_cpu_s,runq_s,blocked_s\r\n",
	      f);
	HASH_ITER (hh, r->classes, k, tmp)
		if (k->n)
			put_op(r, k, f);
}
