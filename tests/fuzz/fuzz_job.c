// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer over `ncclscope report`, `view` and `merge`: the traces of a job, made of any bytes. Each line is one that they follow, about
 * few ranks, operations and flows, so that what one says meets what others do; its times and figures are whatever comes. All three must
 * take it, and what report prints as JSON must be JSON.
 */
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd.h"
#include "log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TRACES	 4
#define TEXT	 (1 << 20)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int fds[TRACES], printed;
static char paths[TRACES][64];
static char *text;
static size_t len;

/* What is left of the input. */
static const uint8_t *at, *end;
static int64_t now; /* ns, of the trace that is made */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int i;

	(void)argc;
	(void)argv;
	for (i = 0; i < TRACES; i++) {
		fds[i] = memfd_create("trace", 0);
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
	}
	printed = memfd_create("printed", 0);
	text = malloc(TEXT);
	log_level = -1;
	return !text || dup2(printed, STDOUT_FILENO) < 0;
}

/* ---- Values ---------------------------------------------------------------------------------------- */

static uint32_t byte(void)
{
	return at < end ? *at++ : 0;
}

static uint32_t below(uint32_t n)
{
	return byte() % n;
}

static bool chance(uint32_t of)
{
	return below(of) == 1;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text + len, TEXT - len, format, ap);
	va_end(ap);
	len += n > 0 && (size_t)n < TEXT - len ? (size_t)n : 0;
}

static void put_ns(int64_t ns)
{
	put("%s%lld.%03d", ns < 0 ? "-" : "", llabs(ns / 1000), (int)llabs(ns % 1000));
}

/* Mostly a little later than the one before. */
static void put_time(void)
{
	uint32_t b = byte();

	if (b < 160)
		put_ns(now += (int64_t)b * b * 1000);
	else if (b < 240)
		put_ns(now - (int64_t)(b - 160) * 100000);
	else if (b < 250)
		put_ns(now += (int64_t)(b - 239) * 100000000);
	else if (b == 250)
		put_ns(-now);
	else if (b == 251)
		put("0");
	else if (b == 252)
		put_ns((INT64_C(1) << 61) - 1);
	else if (b == 253)
		put_ns(INT64_MAX);
	else if (b == 254)
		put_ns(now + INT64_C(90) * 24 * 3600 * 1000000000);
	else
		put("\"soon\"");
}

static void put_span(void)
{
	uint32_t b = byte();

	if (b < 200)
		put_ns((int64_t)b * b * b * 100);
	else if (b < 250)
		put("0.000");
	else if (b < 253)
		put_ns(INT64_MAX);
	else if (b < 255)
		put_ns(-1);
	else
		put("[]");
}

static void put_number(void)
{
	static const char *const odd[] = {"4294967295", "18446744073709551615", "-1", "1.5",
					  "null"};
	uint32_t b = byte();

	if (b < 250)
		put("%u", b < 128 ? b : (b - 127) << 20);
	else
		put("%s", odd[b % COUNT(odd)]);
}

static void put_one(const char *const *names, size_t n)
{
	put("\"%s\"", names[below((uint32_t)n)]);
}

static void put_rank(void)
{
	uint32_t b = byte();

	if (b < 250)
		put("%u", b < 200 ? b % 4 : b - 200);
	else
		put("%d", b < 253 ? -1 : 1 << 24);
}

static void put_addr(uint32_t of)
{
	uint32_t b = byte();

	if (b < 250)
		put("\"0x%x%x\"", of, b < 128 ? 0 : b % 6);
	else
		put(b < 253 ? "\"null\"" : "7");
}

enum { GROUP = 1, OP, PROXY_OP, STEP };

static void put_comm(void)
{
	put("\"commId\":7,\"commHash\":\"0x%x\",\"rank\":", 1 + below(3));
	put_rank();
}

/* ---- What the kernel has to say ----------------------------------------------------------------------- */

static void put_spans(const char *const *keys, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!chance(3))
			continue;
		put(",\"%s\":", keys[i]);
		put_span();
	}
}

static void put_numbers(const char *const *keys, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!chance(3))
			continue;
		put(",\"%s\":", keys[i]);
		put_number();
	}
}

static void put_role(const char *name)
{
	static const char *const times[] = {"onCpu",   "runq", "blocked",
					    "unknown", "irq",  "throttled"};
	static const char *const comms[] = {"stress-ng", "scope-job", "ksoftirqd/0",
					    "\\ud83d\\u0000"};
	static const char *const calls[] = {"futex", "read", "nanosleep"};

	put("\"%s\":{\"threads\":%u", name, below(3));
	put_spans(times, COUNT(times));
	put(",\"cpus\":[%u]", below(4));
	if (chance(3)) {
		put(",\"behind\":[{\"comm\":");
		put_one(comms, COUNT(comms));
		put(",\"pid\":%u,\"us\":", below(3));
		put_span();
		put("}]");
	}
	if (chance(3)) {
		put(",\"blockedIn\":[{\"why\":");
		put_one(calls, COUNT(calls));
		put(",\"us\":");
		put_span();
		put("}]");
	}
	put("}");
}

static void put_sched(void)
{
	if (!chance(2))
		return;
	put(",\"sched\":{");
	put_role("app");
	put(",");
	put_role("proxy");
	put(",");
	put_role("before");
	put("}");
}

static void put_flow(void)
{
	put("\"10.0.0.%u:1000>10.0.0.%u:2000\"", below(4), below(4));
}

static void put_net(void)
{
	static const char *const times[] = {"noData",	     "noRoom", "busy",	"rwndLimited",
					    "sndbufLimited", "rtt",    "rttMin"};
	static const char *const counts[] = {"retrans", "lost",	   "dsack",
					     "rxOoo",	"txBytes", "rxBytes"};

	if (!chance(2))
		return;
	put(",\"net\":{\"flow\":");
	put_flow();
	put_spans(times, COUNT(times));
	put_numbers(counts, COUNT(counts));
	if (chance(3)) {
		put(",\"drops\":[{\"reason\":\"NETFILTER_DROP\",\"n\":");
		put_number();
		put("}]");
	}
	put(",\"peer\":{\"pid\":%u,\"rank\":", below(4));
	put_rank();
	put_numbers(counts, COUNT(counts));
	put("}}");
}

/* ---- Lines --------------------------------------------------------------------------------------------- */

static void put_point(const char *key)
{
	put(",\"%s\":{\"ts\":", key);
	put_time();
	put(",\"pid\":%u,\"tid\":%u}", 100 + below(4), 100 + below(8));
}

static void begin_event(const char *type)
{
	put("{\"recordType\":\"event\",\"type\":\"%s\",", type);
	put_comm();
	put_point("start");
	if (!chance(8))
		put_point("stop");
	if (chance(8))
		put(",\"unfinished\":true");
}

static void put_place(uint32_t parent, uint32_t own)
{
	put(",\"parentObj\":");
	put_addr(parent);
	put(",\"eventAddr\":");
	put_addr(own);
}

static void end_event(void)
{
	put_sched();
	put_net();
	put("}\n");
}

static void put_operation(bool coll)
{
	static const char *const colls[] = {"AllReduce", "AllGather", "Broadcast"};
	static const char *const types[] = {"ncclFloat32", "ncclInt8", "ncclNone"};

	put(",\"details\":{\"func\":");
	if (coll)
		put_one(colls, COUNT(colls));
	else
		put("\"%s\"", chance(2) ? "Send" : "Recv");
	put(",\"count\":");
	put_number();
	put(",\"dtype\":");
	put_one(types, COUNT(types));
	if (coll) {
		put(",\"seq\":");
		put_number();
		put(",\"algo\":\"%s\",\"proto\":\"SIMPLE\"", chance(4) ? "TREE" : "RING");
	} else {
		put(",\"peer\":");
		put_rank();
	}
	if (chance(2)) {
		put(",\"parentGroup\":");
		put_addr(GROUP);
	}
	put("}");
}

static void line_op(void)
{
	static const char *const sources[] = {"proxy", "kernel", "enqueue"};
	bool coll = chance(2);

	begin_event(coll ? "ncclProfileColl" : "ncclProfileP2p");
	put_place(GROUP, OP);
	put_operation(coll);
	if (!chance(4)) {
		put(",\"exec\":{\"stop\":");
		put_time();
		put(",\"source\":");
		put_one(sources, COUNT(sources));
		put(",\"openChildren\":%u}", chance(16));
	}
	if (chance(8))
		put(",\"lossNear\":3");
	end_event();
}

static void line_open(void)
{
	bool coll = chance(2);

	put("{\"recordType\":\"open\",\"eventType\":\"%s\",",
	    coll ? "ncclProfileColl" : "ncclProfileP2p");
	put_comm();
	put_point("start");
	put(",\"ts\":");
	put_time();
	put(",\"quiet\":");
	put_span();
	put_place(GROUP, OP);
	put_operation(coll);
	end_event();
}

static void line_proxy_op(void)
{
	begin_event("ncclProfileProxyOp");
	put_place(OP, PROXY_OP);
	if (chance(16))
		put(",\"isPxn\":true");
	put(",\"details\":{\"channel\":%u,\"isSend\":%s,\"peer\":", below(2),
	    chance(2) ? "true" : "false");
	put_rank();
	put("}");
	end_event();
}

static void line_step(void)
{
	begin_event("ncclProfileProxyStep");
	put_place(PROXY_OP, STEP);
	put(",\"details\":{\"step\":%u,\"isSend\":%s,\"peer\":", below(4),
	    chance(2) ? "true" : "false");
	put_rank();
	put(",\"transSize\":");
	put_number();
	put("}");
	end_event();
}

static void line_kernel(void)
{
	begin_event("ncclProfileKernelCh");
	put_place(OP, STEP);
	put(",\"details\":{\"gpuStart\":");
	put_time();
	put(",\"gpuStop\":");
	put_time();
	put(",\"gpuError\":");
	put_span();
	put("}");
	end_event();
}

static void line_lifecycle(void)
{
	begin_event("ProfilerLifecycle");
	put(",\"func\":\"ProfilerInit\",\"details\":{\"nranks\":");
	put_number();
	put(",\"commName\":\"dp%u\"}", below(3));
	end_event();
}

static void line_state(void)
{
	put("{\"recordType\":\"state\",\"id\":%u,\"ts\":", below(24));
	put_time();
	put(",\"eventAddr\":");
	put_addr(STEP);
	put("}\n");
}

static void line_thread(void)
{
	static const char *const times[] = {"onCpu",   "runq", "blocked",
					    "unknown", "irq",  "throttled"};

	put("{\"recordType\":\"thread\",\"tid\":%u,\"comm\":\"t\",\"role\":\"%s\"", 100 + below(8),
	    chance(2) ? "proxy" : "app");
	put_spans(times, COUNT(times));
	if (chance(8))
		put(",\"why\":\"stopped\"");
	put("}\n");
}

static void line_flow(void)
{
	static const char *const whys[] = {"open", "state", "reset-in", "reset-out", "gone"};

	put("{\"recordType\":\"flow\",\"flow\":");
	put_flow();
	put(",\"why\":");
	put_one(whys, COUNT(whys));
	put(",\"tid\":%u,\"retrans\":%u,\"ts\":", 100 + below(8), below(4));
	put_time();
	put("}\n");
}

static void line_slice(void)
{
	static const char *const states[] = {"on", "runq", "blocked"};

	put("{\"recordType\":\"slice\",\"tid\":%u,\"state\":", 100 + below(8));
	put_one(states, COUNT(states));
	put(",\"ts\":");
	put_time();
	put(",\"dur\":");
	put_span();
	put(",\"cpu\":%u}\n", below(4));
}

static void line_lost(void)
{
	put("{\"recordType\":\"lost\",\"cause\":\"ring\",\"n\":");
	put_number();
	put(",\"ts\":");
	put_time();
	put("}\n");
}

static void line_footer(void)
{
	static const char *const ends[] = {"exit", "signal 9", "loader-stopped", "signal 0"};

	put("{\"recordType\":\"footer\",\"end\":");
	put_one(ends, COUNT(ends));
	put(",\"exitCode\":%u}\n", below(2));
}

static void line_header(void)
{
	uint32_t pid = 100 + below(4);

	put("{\"recordType\":\"header\",\"schema\":1,\"host\":\"node%u\",\"bootId\":\"%u\",\"pid\":"
	    "%u,\"hostPid\":%u,"
	    "\"comm\":\"job\",\"cmdline\":[\"job\"],\"startTime\":%u.000,\"cgroup\":\"/\"",
	    below(2), below(2), pid, pid, below(2));
	put(",\"clock\":{\"realtimeOffset\":");
	put_time();
	if (chance(4)) {
		put(",\"merged\":{\"bootId\":\"0\",\"error\":");
		put_span();
		put("}");
	}
	put("}}\n");
}

/* Bytes of the input as they are: a line broken off, or one that is none. */
static void line_raw(void)
{
	uint32_t n = below(32);

	while (n--)
		put("%c", (int)(byte() ?: ' '));
	if (chance(2))
		put("\n");
}

static int make_trace(int i)
{
	static void (*const lines[])(void) = {
		line_op,     line_op,	line_op,	line_op,     line_proxy_op, line_step,
		line_kernel, line_open, line_lifecycle, line_state,  line_thread,   line_flow,
		line_slice,  line_lost, line_footer,	line_header, line_raw,	    line_proxy_op};
	uint32_t n = 1 + byte(), many;
	void (*line)(void);

	len = 0;
	now = 1000000000 + (int64_t)below(8) * 1000000;
	if (!chance(16))
		line_header();
	if (!chance(8))
		line_lifecycle();
	while (n-- && at < end) {
		line = lines[below(COUNT(lines))];
		for (many = chance(8) ? 1 + below(48) : 1; many && at < end; many--)
			line();
	}
	return ftruncate(fds[i], 0) || pwrite(fds[i], text, len, 0) != (ssize_t)len;
}

/* ---- Commands ------------------------------------------------------------------------------------------- */

/* By standard output, which is empty again then. */
static void check_json(void)
{
	json_error_t error;
	json_t *all;

	lseek(printed, 0, SEEK_SET);
	all = json_loadfd(printed, 0, &error);
	if (!all) {
		fprintf(stderr, "line %d: %s\n", error.line, error.text);
		abort();
	}
	json_decref(all);
}

static void run(int (*cmd)(int argc, char **argv), const char *name, const char *option, uint32_t n)
{
	const char *argv[3 + TRACES] = {name, option};
	int argc = option ? 2 : 1, status;
	uint32_t i;

	for (i = 0; i < n; i++)
		argv[argc++] = paths[i];
	status = cmd(argc, (char **)argv);
	if (fflush(stdout) || (status != EXIT_OK &&
			       cmd != cmd_merge)) /* that may refuse: what is merged already, say */
		abort();
	if (option && !strcmp(option, "--json"))
		check_json();
	if (ftruncate(printed, 0) || lseek(printed, 0, SEEK_SET))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const ways[] = {NULL, "--csv", "--slower-than=1ms"};
	uint32_t what, n, i;

	at = data;
	end = data + size;
	what = byte();
	n = 1 + below(TRACES);
	for (i = 0; i < n; i++)
		if (make_trace((int)i))
			return 0;
	run(cmd_report, "report", "--json", n);
	if (what < 240)
		run(cmd_report, "report", ways[what % COUNT(ways)], n);
	else if (what < 248)
		run(cmd_view, "view", "-o/dev/null", n);
	else
		run(cmd_merge, "merge", "-o/dev/null", n);
	return 0;
}
