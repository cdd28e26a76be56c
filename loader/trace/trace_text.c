// SPDX-License-Identifier: BSD-2-Clause
/* What many lines of a trace have in common, made once and kept; see trace_text.h. */
#include <string.h>
#include "proc.h"
#include "trace_keys.h"

static void make_thread(struct trace_thread *of, const struct proc *p, const struct corr_thread *t)
{
	struct json j = {of->text.at, of->text.at + sizeof(of->text.at)};

	KEY_U64(&j, "pid", p->id.ns_tgid);
	KEY_U64(&j, "tid", t->tid);
	if (p->id.tgid != p->id.ns_tgid)
		KEY_U64(&j, "hostPid", p->id.tgid);
	if (t->host_tid != t->tid)
		KEY_U64(&j, "hostTid", t->host_tid);
	of->tid = t->tid;
	of->host_tid = t->host_tid;
	of->text.len = (uint8_t)(j.at - of->text.at);
}

void put_thread(struct json *j, struct proc *p, const struct corr_thread *t)
{
	struct trace_thread *of = &p->texts.thread[t->tid % TRACE_THREADS];

	if (!of->text.len || of->tid != t->tid || of->host_tid != t->host_tid)
		make_thread(of, p, t);
	json_ready(j, &of->text);
}

static void comm_keys(struct json *j, const char *gpu_uuid, uint64_t hash, int32_t rank, bool pxn)
{
	json_lit(j, ",\"gpuUuid\":");
	json_str(j, gpu_uuid, gpu_uuid[0] ? SCOPE_GPU_UUID_LEN : 0);
	KEY_U64(j, "commId", hash);
	if (!pxn) {
		json_lit(j, ",\"commHash\":");
		json_hex(j, hash);
	}
	KEY_I64(j, "rank", rank);
}

/* Its name and rank may become known later. */
static void make_comm(struct trace_comm *of, const struct scope_comm *c)
{
	struct json j = {of->text, of->text + sizeof(of->text)};

	comm_keys(&j, c->gpu_uuid, c->hash, c->rank, false);
	of->ctx = c->ctx;
	of->hash = c->hash;
	of->rank = c->rank;
	of->len = (uint16_t)(j.at - of->text);
}

void put_comm(struct json *j, struct proc *p, const struct corr_comm *comm, bool pxn)
{
	const struct scope_comm *c;
	struct trace_comm *of;

	if (!comm || pxn) {
		comm_keys(j, "", 0, -1, pxn);
		return;
	}
	c = &comm->info;
	of = &p->texts.comm[SCOPE_ID_COUNTER(c->ctx) % TRACE_COMMS];
	if (!of->len || of->ctx != c->ctx || of->hash != c->hash || of->rank != c->rank)
		make_comm(of, c);
	json_raw(j, of->text, of->len);
}
