// SPDX-License-Identifier: BSD-2-Clause
/* Export as a table: a row for each event, as RFC 4180 has it; one line after the other, nothing is kept. */
#include <stdio.h>
#include <string.h>
#include "csv.h"
#include "export.h"

/* A column and where its value is; a column without a path is the process's. */
static const struct {
	const char *name, *path[3];
} columns[] = {
	{"host", {0}},
	{"pid", {0}},
	{"type", {"type"}},
	{"func", {"func"}},
	{"rank", {"rank"}},
	{"commHash", {"commHash"}},
	{"commId", {"commId"}},
	{"gpuUuid", {"gpuUuid"}},
	{"eventAddr", {"eventAddr"}},
	{"parentObj", {"parentObj"}},
	{"tid", {"start", "tid"}},
	{"hostTid", {"start", "hostTid"}},
	{"start", {"start", "ts"}},
	{"stop", {"stop", "ts"}},
	{"duration", {"duration"}},
	{"realtimeOffset", {0}},
	{"exec_stop", {"exec", "stop"}},
	{"exec_duration", {"exec", "duration"}},
	{"exec_source", {"exec", "source"}},
	{"unfinished", {"unfinished"}},
	{"lastState", {"lastState"}},
	{"silent", {"silent"}},
	{"orphan", {"orphan"}},
	{"isPxn", {"isPxn"}},
	{"originPid", {"originPid"}},
	{"lossNear", {"lossNear"}},
	{"seq", {"details", "seq"}},
	{"count", {"details", "count"}},
	{"dtype", {"details", "dtype"}},
	{"root", {"details", "root"}},
	{"algo", {"details", "algo"}},
	{"proto", {"details", "proto"}},
	{"channels", {"details", "channels"}},
	{"warps", {"details", "warps"}},
	{"stream", {"details", "stream"}},
	{"graphCaptured", {"details", "graphCaptured"}},
	{"depth", {"details", "depth"}},
	{"channel", {"details", "channel"}},
	{"peer", {"details", "peer"}},
	{"isSend", {"details", "isSend"}},
	{"steps", {"details", "steps"}},
	{"step", {"details", "step"}},
	{"chunkSize", {"details", "chunkSize"}},
	{"transSize", {"details", "transSize"}},
	{"repeats", {"details", "repeats"}},
	{"eventPid", {"details", "eventPid"}},
	{"pTimer", {"details", "pTimer"}},
	{"pTimerStop", {"details", "pTimerStop"}},
	{"gpuStart", {"details", "gpuStart"}},
	{"gpuStop", {"details", "gpuStop"}},
	{"gpuError", {"details", "gpuError"}},
	{"sched_span", {"sched", "span"}},
	{"sched_onCpu", {"sched", "onCpu"}},
	{"sched_runq", {"sched", "runq"}},
	{"sched_blocked", {"sched", "blocked"}},
	{"sched_unknown", {"sched", "unknown"}},
	{"sched_irq", {"sched", "irq"}},
	{"sched_throttled", {"sched", "throttled"}},
	{"sched_switches", {"sched", "switches"}},
	{"sched_preemptions", {"sched", "preemptions"}},
	{"sched_migrations", {"sched", "migrations"}},
	{"app_runq", {"sched", "app", "runq"}},
	{"app_blocked", {"sched", "app", "blocked"}},
	{"proxy_runq", {"sched", "proxy", "runq"}},
	{"proxy_blocked", {"sched", "proxy", "blocked"}},
	{"behind_comm", {"sched", "behind", "comm"}},
	{"behind_pid", {"sched", "behind", "pid"}},
	{"behind_us", {"sched", "behind", "us"}},
	{"blockedIn", {"sched", "blockedIn", "why"}},
	{"blockedIn_us", {"sched", "blockedIn", "us"}},
	{"wokenBy_comm", {"sched", "wokenBy", "comm"}},
	{"wokenBy_pid", {"sched", "wokenBy", "pid"}},
	{"wokenBy_us", {"sched", "wokenBy", "us"}},
	{"file", {"sched", "files", "file"}},
	{"file_fs", {"sched", "files", "fs"}},
	{"file_us", {"sched", "files", "us"}},
	{"flow", {"net", "flow"}},
	{"nFlows", {"net", "nFlows"}},
	{"txBytes", {"net", "txBytes"}},
	{"rxBytes", {"net", "rxBytes"}},
	{"retrans", {"net", "retrans"}},
	{"lost", {"net", "lost"}},
	{"dsack", {"net", "dsack"}},
	{"rxOoo", {"net", "rxOoo"}},
	{"rtt", {"net", "rtt"}},
	{"rttMin", {"net", "rttMin"}},
	{"cwnd", {"net", "cwnd"}},
	{"busy", {"net", "busy"}},
	{"sndbufLimited", {"net", "sndbufLimited"}},
	{"rwndLimited", {"net", "rwndLimited"}},
	{"noData", {"net", "noData"}},
	{"noRoom", {"net", "noRoom"}},
	{"softirqRx", {"net", "softirqRx"}},
	{"peer_host", {"net", "peer", "host"}},
	{"peer_pid", {"net", "peer", "pid"}},
	{"peer_rank", {"net", "peer", "rank"}},
	{"peer_retrans", {"net", "peer", "retrans"}},
	{"peer_dsack", {"net", "peer", "dsack"}},
};

#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Within quotes; these double. A formula is behind a '. Of control characters only those of text stay as they are: \u001b as JSON has it. */
static void put_quoted(struct xbuf *b, bool formula, const char *s, size_t len)
{
	char code[8];
	size_t i;

	xbuf__text(b, formula ? "\"'" : "\"");
	for (i = 0; i < len; i++) {
		unsigned char c = s[i];

		if (c == '"')
			xbuf__lit(b, "\"");
		if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
			snprintf(code, sizeof(code), "\\u%04x", c);
			xbuf__text(b, code);
		} else {
			xbuf__put(b, s + i, 1);
		}
	}
	xbuf__lit(b, "\"");
}

/* Text of jobs; what a spreadsheet would take for a formula must stay text. */
static void put_field(struct xbuf *b, const char *s, size_t len)
{
	bool formula = len && csv__begins_formula(*s);
	size_t i;

	for (i = 0; i < len; i++)
		if (s[i] == '"' || s[i] == ',' || (unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			break;
	if (i == len && !formula)
		xbuf__put(b, s, len);
	else
		put_quoted(b, formula, s, len);
}

/* Of a list the first, which is the most. */
static const struct json_node *value_of(const struct export *x, const struct json_node *rec,
					const char *const path[3])
{
	const struct json_node *n = rec;
	int i;

	for (i = 0; i < 3 && path[i] && n; i++) {
		if (n->kind == JSON_KIND_ARR)
			n = n->first ? &x->doc.nodes[n->first] : NULL;
		n = rec_get(x, n, path[i]);
	}
	return n;
}

static void put_value(struct xbuf *b, const struct json_node *n)
{
	if (n && n->kind == JSON_KIND_STR)
		put_field(b, n->s, n->len);
	else if (n && n->kind != JSON_KIND_NULL && n->kind != JSON_KIND_OBJ &&
		 n->kind != JSON_KIND_ARR)
		xbuf__put(b, n->s, n->len);
}

static void put_process(const struct export_proc *p, const char *column, struct xbuf *b)
{
	if (!strcmp(column, "host"))
		put_field(b, p->host, strlen(p->host));
	else if (!strcmp(column, "pid"))
		xbuf__u64(b, (uint32_t)p->pid);
	else if (p->real)
		xbuf__us(b, p->offset);
}

static void csv_record(struct export *x, const struct json_node *rec)
{
	const struct json_node *kind = rec_get(x, rec, "recordType"), *type;
	size_t i;

	if (jn_is(kind, "state"))
		x->states++;
	else if (kind && !jn_is(kind, "event"))
		x->others++;
	type = rec_get(x, rec, "type");
	if (!type || (kind && !jn_is(kind, "event")))
		return;
	x->events++;
	for (i = 0; i < NCOLUMNS; i++) {
		if (i)
			xbuf__lit(&x->out, ",");
		if (columns[i].path[0])
			put_value(&x->out, value_of(x, rec, columns[i].path));
		else
			put_process(x->proc, columns[i].name, &x->out);
	}
	xbuf__lit(&x->out, "\r\n");
}

static int csv_begin(struct export *x)
{
	size_t i;

	for (i = 0; i < NCOLUMNS; i++) {
		if (i)
			xbuf__lit(&x->out, ",");
		xbuf__text(&x->out, columns[i].name);
	}
	xbuf__lit(&x->out, "\r\n");
	return 0;
}

const struct export_format export_csv = {
	.name = "csv",
	.begin = csv_begin,
	.record = csv_record,
};
