// SPDX-License-Identifier: BSD-2-Clause
/* What `ncclscope status` prints; see status_show.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "human.h"
#include "nccl_names.h"
#include "scope_abi.h"
#include "status_field.h"
#include "status_show.h"

#define ALL_TYPES ((1u << SCOPE_NTYPES) - 1)
#define CELL	  HUMAN_CELL

/* ---- JSON -------------------------------------------------------------------------------------- */

/* jansson leaves DEL as it is; it can be in strings only. */
static int put_json(const char *buf, size_t len, void *arg)
{
	FILE *f = arg;

	for (; len; len--, buf++)
		if (*buf == 0x7f ? fputs("\\u007f", f) < 0 : fputc(*buf, f) == EOF)
			return -1;
	return 0;
}

int status_show__json(const json_t *doc, FILE *f)
{
	if (json_dump_callback(doc, put_json, f, JSON_INDENT(2) | JSON_ENSURE_ASCII))
		return -EIO;
	return fputc('\n', f) == EOF ? -EIO : 0;
}

/* ---- Values as text ---------------------------------------------------------------------------- */

static uint64_t since(uint64_t now_us, uint64_t then_us)
{
	return now_us > then_us ? now_us - then_us : 0;
}

/* A mask's words, as many as fit; of the others, how many they are. */
static void list_mask(char *buf, size_t width, uint32_t mask)
{
	size_t n = 0, len, room;
	const char *word;
	uint32_t what;

	for (what = 0; mask; what++) {
		if (!(mask & 1u << what))
			continue;
		word = event_type_short(what);
		len = strlen(word) + (n > 0);
		room = mask & (mask - 1) ? strlen(",+15") : 0;
		if (n + len + room > width)
			break;
		n += (size_t)sprintf(buf + n, "%s%s", n ? "," : "", word);
		mask &= mask - 1;
	}
	if (mask)
		snprintf(buf + n, width + 1 - n, "%s+%d", n ? "," : "", __builtin_popcount(mask));
}

void status_mask_text(char *buf, size_t width, uint32_t mask, uint32_t all)
{
	uint32_t lacks;
	size_t n;

	mask &= ALL_TYPES;
	all &= ALL_TYPES;
	lacks = all & ~mask;
	if (!mask) {
		snprintf(buf, width + 1, "none");
	} else if (all && !lacks) {
		snprintf(buf, width + 1, "all");
	} else if (__builtin_popcount(lacks) == 1 && __builtin_popcount(mask) > 2) {
		n = (size_t)snprintf(buf, width + 1, "all but %s",
				     event_type_short((uint32_t)__builtin_ctz(lacks)));
		if (n > width)
			list_mask(buf, width, mask);
	} else {
		list_mask(buf, width, mask);
	}
}

/* ---- Fields: of any type, since a file may say anything ---------------------------------------- */

static const char *mask_of(char buf[CELL], size_t width, const json_t *o, const char *key,
			   uint32_t all)
{
	if (json_is_integer(json_object_get(o, key)))
		status_mask_text(buf, width, (uint32_t)status_field__number(o, key), all);
	else
		strcpy(buf, "-");
	return buf;
}

/* ---- Tables ------------------------------------------------------------------------------------ */

/* Never wider than the table, and without blanks at the end. */
__attribute__((format(printf, 2, 3))) static void put_line(FILE *f, const char *fmt, ...)
{
	char line[4 * STATUS_WIDTH];
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	len = strnlen(line, STATUS_WIDTH);
	while (len && line[len - 1] == ' ')
		len--;
	fprintf(f, "%.*s\n", (int)len, line);
}

#define RECORDER_ROW "%8s  %-7s  %6s  %6s  %5s  %4s  %-20s  %s"
#define RECORDER_OUT 30 /* what is left of the line */
#define BEHIND_US    2000000

/* The first directory that it writes to; before there is one, what it was told; the capture where that is all. */
static const char *where_to(const json_t *out, const json_t *opt)
{
	bool given = json_object_get(opt, "output");

	if (json_array_size(out))
		return json_string_value(json_array_get(out, 0));
	return status_field__string(opt, given ? "output" : "capture");
}

static void put_recorder(const json_t *r, uint64_t now_us, FILE *f)
{
	char pid[CELL], up[CELL], cpu[CELL], mem[CELL], ring[CELL], mask[CELL], state[CELL];
	const json_t *self = json_object_get(r, "self"), *ring_doc = json_object_get(r, "ring");
	const json_t *out = json_object_get(r, "outputs"), *opt = json_object_get(r, "options");
	uint64_t updated = status_field__number(r, "updatedUs"),
		 age = since(updated, status_field__number(r, "startedUs"));
	bool dead = status_field__is_in(r, "dead"),
	     idle = dead || status_field__is_in(r, "waiting");
	char where[CELL], more[16] = "";

	snprintf(cpu, sizeof(cpu), "%.1f%%",
		 age ? (double)status_field__number(self, "cpuUs") * 100 / (double)age : 0);
	snprintf(ring, sizeof(ring), "%.0f%%",
		 status_field__number(ring_doc, "bytes")
			 ? (double)status_field__number(ring_doc, "used") * 100 /
				   (double)status_field__number(ring_doc, "bytes")
			 : 0);
	if (json_array_size(out) > 1)
		snprintf(more, sizeof(more), " +%zu", json_array_size(out) - 1);
	human__clean(where, where_to(out, opt), RECORDER_OUT - strlen(more), true);
	strcat(where, more);
	put_line(f, RECORDER_ROW, human__count(pid, status_field__number(r, "pid")),
		 human__clean(state, status_field__string(r, "state"), 7, false),
		 /* of one that was killed: how long ago it was heard of */
		 human__time(up,
			     since(now_us, dead ? updated : status_field__number(r, "startedUs"))),
		 idle ? "-" : cpu,
		 idle ? "-" : human__bytes(mem, status_field__number(self, "memory")),
		 idle ? "-" : ring, mask_of(mask, 20, opt, "mask", ALL_TYPES), where);
}

/* Of one whose traces are so far behind that people would wonder. */
static void put_backlog(const json_t *r, FILE *f)
{
	const json_t *b = json_object_get(r, "backlog");
	uint64_t us = status_field__number(b, "us");
	char time[CELL], bytes[CELL];

	if (us < BEHIND_US || status_field__is_in(r, "dead"))
		return;
	put_line(f, "%18s  traces are %s behind, %s wait%s", "", human__time(time, us),
		 human__bytes(bytes, status_field__number(b, "bytes")),
		 json_is_true(json_object_get(b, "givesWay")) ? ": it gives way to the job" : "");
}

/* Of one that waits. */
static void put_next(const json_t *r, FILE *f)
{
	char when[STATUS_WHEN];

	if (status_field__is_in(r, "waiting"))
		put_line(f, "%18s  its next recording begins at %s", "",
			 status_field__when(when, status_field__number(r, "waitsUntilUs")));
}

static void put_recorders(const json_t *all, uint64_t now_us, FILE *f)
{
	const json_t *r;
	size_t i;

	if (!json_array_size(all))
		return;
	put_line(f, RECORDER_ROW, "RECORDER", "STATE", "SINCE", "CPU", "MEM", "RING", "MASK",
		 "OUTPUT");
	json_array_foreach (all, i, r) {
		put_recorder(r, now_us, f);
		put_backlog(r, f);
		put_next(r, f);
	}
}

#define RANK_WIDTH  11 /* "12345/16384" */
#define PROCESS_ROW "%8s  %-15s  %11s  %5s  %-20s  %-8s  %s"
#define WANTED_MAX  23 /* what is left of the line */

static const char *wanted_by(char buf[CELL], const json_t *want)
{
	const char *by = status_field__string(want, "by");

	if (!strcmp(by, "recorder") && json_object_get(want, "pid"))
		human__count(buf, status_field__number(want, "pid"));
	else /* also a recorder that has no pid here */
		human__clean(buf, by, 8, false);
	return buf;
}

/* "0/8", of its first communicator */
static const char *rank_text(char buf[CELL], const json_t *p)
{
	const json_t *comm = json_array_get(json_object_get(p, "comms"), 0);
	const json_t *rank = json_object_get(comm, "rank");
	char text[32] = "-";

	if (json_is_integer(rank) && json_integer_value(rank) >= 0)
		snprintf(text, sizeof(text), "%d/%d", (int)json_integer_value(rank),
			 (int)status_field__number(comm, "nranks"));
	return human__clean(buf, text, RANK_WIDTH, false);
}

/* One line for each that wants something of it. */
static void put_process(const json_t *p, FILE *f)
{
	const json_t *wants = json_object_get(p, "wants"), *want;
	const json_t *first = json_array_get(json_object_get(p, "masks"), 0);
	char pid[CELL], comm[CELL], rank[CELL], ncomms[CELL], mask[CELL], by[CELL], wanted[CELL];
	size_t i = 0;

	human__count(pid, status_field__number(p, "hostPid"));
	human__clean(comm, status_field__string(p, "comm"), 15, false);
	rank_text(rank, p);
	human__count(ncomms, status_field__number(p, "communicators"));
	mask_of(mask, 20, first, "mask", (uint32_t)status_field__number(p, "ceiling"));
	do {
		want = json_array_get(wants, i);
		put_line(f, PROCESS_ROW, i ? "" : pid, i ? "" : comm, i ? "" : rank,
			 i ? "" : ncomms, i ? "" : mask, want ? wanted_by(by, want) : "-",
			 mask_of(wanted, WANTED_MAX, want, "mask", ALL_TYPES));
	} while (++i < json_array_size(wants));
}

static void put_comms(const json_t *p, FILE *f)
{
	const json_t *comms = json_object_get(p, "comms"), *c;
	char hash[CELL], name[CELL];
	size_t i;

	json_array_foreach (comms, i, c)
		put_line(
			f, "%8s  communicator %s, rank %d of %d%s%s", "",
			human__clean(hash, status_field__string(c, "commHash"), 18, false),
			(int)json_integer_value(json_object_get(c, "rank")),
			(int)status_field__number(c, "nranks"),
			json_object_get(c, "commName") ? ": " : "",
			json_object_get(c, "commName")
				? human__clean(name, status_field__string(c, "commName"), 36, false)
				: "");
	if (status_field__number(p, "communicators") > i)
		put_line(f, "%8s  and %" PRIu64 " more", "",
			 status_field__number(p, "communicators") - i);
}

static void put_processes(const json_t *all, bool comms, FILE *f)
{
	const json_t *p;
	size_t i;

	if (!json_array_size(all))
		return;
	put_line(f, PROCESS_ROW, "PID", "COMMAND", "RANK", "COMMS", "NCCL'S MASK", "BY", "WANTED");
	json_array_foreach (all, i, p) {
		put_process(p, f);
		if (comms)
			put_comms(p, f);
	}
}

#define COUNT_ROW "%8s  %8s  %10s  %10s  %10s  %7s  %s"
#define TRACE_MAX 35 /* what is left of the line */

static void put_count(const char *recorder, const char *pid, const json_t *counts,
		      const json_t *lost, const char *last, const char *trace, FILE *f)
{
	char records[CELL], events[CELL], n[CELL], causes[256], name[CELL], line[CELL];

	put_line(f, COUNT_ROW, recorder, pid,
		 human__count(records, status_field__number(counts, "records")),
		 human__count(events, status_field__number(counts, "events")),
		 human__count(n, status_field__lost(lost, causes, sizeof(causes))), last,
		 human__clean(name, trace, TRACE_MAX, true));
	if (*causes)
		put_line(f, "%18s  lost: %s", "",
			 human__clean(line, causes, STATUS_WIDTH - 26, false));
}

/* What is told of processes is as of when the thread that makes their traces was asked, which may be behind. */
static void put_recorded(const json_t *r, uint64_t now_us, FILE *f)
{
	uint64_t as_of_us =
		json_object_get(r, "asOfUs") ? status_field__number(r, "asOfUs") : now_us;
	const json_t *all = json_object_get(r, "processes"), *p;
	char recorder[CELL], pid[CELL], last[CELL];
	const char *trace;
	size_t i;

	human__count(recorder, status_field__number(r, "pid"));
	json_array_foreach (all, i, p) {
		trace = strrchr(status_field__string(p, "trace"), '/');
		if (status_field__number(p, "lastRecordUs"))
			human__time(last, since(as_of_us, status_field__number(p, "lastRecordUs")));
		else
			strcpy(last, "-");
		put_count(recorder, human__count(pid, status_field__number(p, "hostPid")), p, p,
			  last, trace ? trace + 1 : status_field__string(p, "trace"), f);
	}
	put_count(recorder, "all", json_object_get(r, "counts"), r, "", "", f);
}

/* Those that wait have counted nothing since they did. */
static void put_counts(const json_t *recorders, uint64_t now_us, FILE *f)
{
	bool any = false;
	const json_t *r;
	size_t i;

	json_array_foreach (recorders, i, r) {
		if (status_field__is_in(r, "waiting"))
			continue;
		if (!any) {
			fputc('\n', f);
			put_line(f, COUNT_ROW, "RECORDER", "PID", "RECORDS", "EVENTS", "LOST",
				 "LAST", "TRACE");
		}
		any = true;
		put_recorded(r, now_us, f);
	}
}

void status_show__table(const json_t *doc, uint64_t now_us, bool comms, FILE *f)
{
	const json_t *recorders = json_object_get(doc, "recorders");
	const json_t *processes = json_object_get(doc, "processes");

	put_recorders(recorders, now_us, f);
	if (json_array_size(recorders) && json_array_size(processes))
		fputc('\n', f);
	put_processes(processes, comms, f);
	put_counts(recorders, now_us, f);
}
