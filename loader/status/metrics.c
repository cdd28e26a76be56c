// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope metrics`: what recorders of this node tell of themselves, in Prometheus' text format; once, or into a file again and
 * again, as node_exporter's textfile collector reads. Looks, and changes nothing. Labels are bounded by what runs now: no
 * sequence numbers, no times, no text of a job but names of processes and jobs.
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "cmd.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "proc.h"
#include "status_field.h"
#include "status_file.h"

#define LABEL_MAX 64 /* bytes of a text that is not ours */

struct options {
	const char *output; /* NULL: standard output */
	uint64_t delay_ns;  /* 0: once */
};

static const struct argp_option options[] = {
	{"delay", 'd', "TIME", 0,
	 "With -o: write it again every TIME until stopped, and take it away then", 0},
	{"output", 'o', "FILE", 0,
	 "Write to FILE, which is whole at any time, and not to standard output (-)", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'd':
		if (parse_duration(arg, &o->delay_ns) || o->delay_ns < NSEC_PER_SEC)
			argp_error(state, "--delay is '%s', not a time of 1s or more", arg);
		return 0;
	case 'o':
		o->output = strcmp(arg, "-") ? arg : NULL;
		return 0;
	case ARGP_KEY_END:
		if (o->delay_ns && !o->output)
			argp_error(state, "--delay needs a file: -o FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.doc = "Print what the recorders of this node count, in Prometheus' text format: "
	       "operations, "
	       "bytes and time of each rank, where its progress threads' time went, what is "
	       "pending, "
	       "TCP, losses, and what recording costs. Reads what they tell once a second; "
	       "ncclscope-metrics(1) has the names.\v"
	       "For node_exporter's textfile collector:\n"
	       "  ncclscope metrics -d 5s -o /var/lib/prometheus/node-exporter/ncclscope.prom\n\n"
	       "Exit status: 0 ok, 1 the output could not be written, 2 usage.",
};

/* ---- What there is ----------------------------------------------------------------------------- */

enum level { OF_RECORDER, OF_PROCESS, OF_RANK };

/* A value: `key` of the object `group` in what a recorder tells of itself, a process or a rank; group NULL: of these. */
struct metric {
	const char *name, *help;
	const char *group, *key;
	const char *state; /* a label that tells rows of one name apart, which follow one another */
	double scale;
	enum level level;
	bool counter;
};

#define COUNTER .counter = true
#define US	.scale = 1e-6
#define ONE	.scale = 1
#define THREADS                                                                                    \
	"ncclscope_progress_thread_seconds_total",                                                 \
		"Where the time of progress threads went while operations were on the way.",       \
		"live"

static const struct metric metrics[] = {
	{"ncclscope_recorder_cpu_seconds_total", "CPU time that the recorder has used.", "self",
	 "cpuUs", NULL, US, OF_RECORDER, COUNTER},
	{"ncclscope_recorder_memory_bytes", "Memory that it uses now, with its ring.", "self",
	 "memory", NULL, ONE, OF_RECORDER},
	{"ncclscope_ring_size_bytes", "The ring buffer between BPF and the recorder.", "ring",
	 "bytes", NULL, ONE, OF_RECORDER},
	{"ncclscope_ring_used_bytes", "How much of that is in use.", "ring", "used", NULL, ONE,
	 OF_RECORDER},
	{"ncclscope_backlog_bytes", "What waits to go into the traces.", "backlog", "bytes", NULL,
	 ONE, OF_RECORDER},
	{"ncclscope_backlog_seconds", "How old the oldest of that is.", "backlog", "us", NULL, US,
	 OF_RECORDER},
	{"ncclscope_records_total", "Records of NCCL's events that were read.", "counts", "records",
	 NULL, ONE, OF_RECORDER, COUNTER},
	{"ncclscope_events_total", "Events for the traces.", "counts", "events", NULL, ONE,
	 OF_RECORDER, COUNTER},

	{"ncclscope_process_records_total", "Records of this process that were read.", NULL,
	 "records", NULL, ONE, OF_PROCESS, COUNTER},
	{"ncclscope_process_events_total", "Events for this process' trace.", NULL, "events", NULL,
	 ONE, OF_PROCESS, COUNTER},
	{"ncclscope_communicators", "Communicators that it has now.", NULL, "communicators", NULL,
	 ONE, OF_PROCESS},
	{"ncclscope_tcp_connections", "TCP connections that it has now.", "net", "flows", NULL, ONE,
	 OF_PROCESS},
	{"ncclscope_tcp_transmit_bytes_total", "What it has sent over these and over those before.",
	 "net", "txBytes", NULL, ONE, OF_PROCESS, COUNTER},
	{"ncclscope_tcp_receive_bytes_total", "What it has received.", "net", "rxBytes", NULL, ONE,
	 OF_PROCESS, COUNTER},
	{"ncclscope_tcp_retransmitted_segments_total", "Segments that TCP has sent again.", "net",
	 "retrans", NULL, ONE, OF_PROCESS, COUNTER},
	{"ncclscope_tcp_needless_retransmits_total",
	 "Of these, those that the peer had got before.", "net", "dsack", NULL, ONE, OF_PROCESS,
	 COUNTER},
	{"ncclscope_tcp_no_data_seconds_total",
	 "From when a read had found nothing to when one did, of all connections.", "net",
	 "noDataUs", NULL, US, OF_PROCESS, COUNTER},
	{"ncclscope_tcp_no_room_seconds_total",
	 "From when a send had found no room to when one did, of all connections.", "net",
	 "noRoomUs", NULL, US, OF_PROCESS, COUNTER},

	{"ncclscope_operations_total", "Collectives and P2p operations that have ended.", "live",
	 "ops", NULL, ONE, OF_RANK, COUNTER},
	{"ncclscope_operation_seconds_total", "Time in which any of them was on the way.", "live",
	 "opUs", NULL, US, OF_RANK, COUNTER},
	{"ncclscope_operation_bytes_total",
	 "Their bytes: by operation_seconds the algorithm bandwidth of nccl-tests.", "live",
	 "bytes", NULL, ONE, OF_RANK, COUNTER},
	{"ncclscope_operation_bus_bytes_total", "The same for the bus bandwidth.", "live",
	 "busBytes", NULL, ONE, OF_RANK, COUNTER},
	{"ncclscope_operations_pending", "Operations that have begun and not ended.", "live",
	 "pending", NULL, ONE, OF_RANK},
	{THREADS, "onCpuUs", "on_cpu", US, OF_RANK, COUNTER},
	{THREADS, "runqUs", "runnable", US, OF_RANK, COUNTER},
	{THREADS, "blockedUs", "blocked", US, OF_RANK, COUNTER},
	{"ncclscope_progress_thread_interrupted_seconds_total",
	 "Of their time on a CPU, what interrupts took.", "live", "irqUs", NULL, US, OF_RANK,
	 COUNTER},
	{"ncclscope_progress_thread_throttled_seconds_total",
	 "Of their time runnable, for what a quota of their cgroup was to blame.", "live",
	 "throttledUs", NULL, US, OF_RANK, COUNTER},
};

#define NMETRICS (sizeof(metrics) / sizeof(*metrics))

/* ---- Lines ------------------------------------------------------------------------------------- */

static void put_family(FILE *f, const char *name, const char *help, bool counter)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, counter ? "counter" : "gauge");
}

/* A label's value: of a job, or of a file, which may say anything. Control characters are left to no terminal. */
static void put_text(FILE *f, const char *s)
{
	size_t n;

	for (n = 0; *s && n < LABEL_MAX; s++, n++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			fprintf(f, "\\\\x%02x", (unsigned char)*s);
		else if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else
			fputc(*s, f);
	}
	while ((*s & 0xc0) == 0x80) /* no half of a character */
		fputc(*s++, f);
}

static void put_label(FILE *f, const char *sep, const char *name, const char *value)
{
	fprintf(f, "%s%s=\"", sep, name);
	put_text(f, value);
	fputc('"', f);
}

/* Who a value is of. */
struct of {
	const json_t *recorder, *process, *rank; /* from the second on NULL: not of one */
};

/* As NCCL has it; 0: not known yet, which API versions before 4 tell with the first operation only. */
static unsigned long long comm_hash(const json_t *rank)
{
	return strtoull(status_field__string(rank, "commHash"), NULL, 16);
}

static long long rank_of(const json_t *rank)
{
	return (long long)json_integer_value(json_object_get(rank, "rank"));
}

/* With the brace that is open still. */
static void put_name(FILE *f, const char *name, const struct of *of)
{
	fprintf(f, "%s{recorder=\"%llu\"", name,
		(unsigned long long)status_field__number(of->recorder, "pid"));
	if (of->process)
		fprintf(f, ",pid=\"%llu\"",
			(unsigned long long)status_field__number(of->process, "hostPid"));
	if (!of->rank)
		return;
	fprintf(f, ",comm=\"0x%llx\",rank=\"%lld\"", comm_hash(of->rank), rank_of(of->rank));
}

static void put_value(FILE *f, double value)
{
	fprintf(f, "} %.15g\n", value);
}

static void put_metric(FILE *f, const struct metric *m, const struct of *of)
{
	const json_t *o = of->rank ? of->rank : of->process ? of->process : of->recorder, *v;

	v = json_object_get(m->group ? json_object_get(o, m->group) : o, m->key);
	if (!json_is_number(v) || json_number_value(v) < 0)
		return; /* this recorder, or this kernel, does not tell */
	put_name(f, m->name, of);
	if (m->state)
		put_label(f, ",", "state", m->state);
	put_value(f, json_number_value(v) * m->scale);
}

/* ---- Whose samples labels tell apart ----------------------------------------------------------- */

/* Writes what an element is known by; false: it is not to be told of. */
typedef bool (*name_fn)(const json_t *o, char *name, size_t size);

static bool name_process(const json_t *process, char *name, size_t size)
{
	snprintf(name, size, "%llu", (unsigned long long)status_field__number(process, "hostPid"));
	return true;
}

static bool name_rank(const json_t *rank, char *name, size_t size)
{
	snprintf(name, size, "%llx %lld", comm_hash(rank), rank_of(rank));
	return comm_hash(rank) && rank_of(rank) >= 0;
}

/* Of several with one name the last stays, as the others have ended or say what is not so. */
static void tell_once(json_t *elements, name_fn name_of)
{
	json_t *seen = json_object();
	size_t i = json_array_size(elements);
	char name[48];

	while (i--) {
		if (name_of(json_array_get(elements, i), name, sizeof(name)) &&
		    !json_object_get(seen, name))
			json_object_set_new(seen, name, json_true());
		else
			json_array_remove(elements, i);
	}
	json_decref(seen);
}

/* Prometheus takes nothing of a text in which a sample is twice. */
static void tell_all_once(const json_t *recorders)
{
	json_t *recorder, *processes, *process;
	size_t i, k;

	json_array_foreach (recorders, i, recorder) {
		processes = json_object_get(recorder, "processes");
		tell_once(processes, name_process);
		json_array_foreach (processes, k, process)
			tell_once(json_object_get(process, "ranks"), name_rank);
	}
}

/* ---- All of a kind ----------------------------------------------------------------------------- */

typedef void (*put_fn)(FILE *f, const void *arg, const struct of *of);

static bool runs(const json_t *recorder)
{
	return !status_field__is_in(recorder, "dead");
}

/* Everything of a level, in the order of the documents. */
static void put_each(FILE *f, const json_t *recorders, enum level level, put_fn put,
		     const void *arg)
{
	struct of of = {0};
	size_t i, k, n;

	json_array_foreach (recorders, i, of.recorder) {
		if (!runs(of.recorder))
			continue;
		of.process = of.rank = NULL;
		if (level == OF_RECORDER) {
			put(f, arg, &of);
			continue;
		}
		json_array_foreach (json_object_get(of.recorder, "processes"), k, of.process) {
			of.rank = NULL;
			if (level == OF_PROCESS) {
				put(f, arg, &of);
				continue;
			}
			json_array_foreach (json_object_get(of.process, "ranks"), n, of.rank)
				put(f, arg, &of);
		}
	}
}

static void put_one(FILE *f, const void *arg, const struct of *of)
{
	put_metric(f, arg, of);
}

static void put_lost(FILE *f, const void *arg, const struct of *of)
{
	json_t *lost = json_object_get(of->process ? of->process : of->recorder, "lost"), *n;
	const char *cause;
	int i;

	json_object_foreach (lost, cause, n) {
		if (!json_is_integer(n) || json_integer_value(n) < 0)
			continue;
		put_name(f, arg, of);
		put_label(f, ",", "cause", cause);
		put_value(f, json_number_value(n));
	}
	/* rate() does not see the step to what a counter begins with. */
	for (i = 0; i < LOSS_CAUSES && !of->process && json_is_object(lost); i++) {
		if (json_object_get(lost, loss_names[i]))
			continue;
		put_name(f, arg, of);
		put_label(f, ",", "cause", loss_names[i]);
		put_value(f, 0);
	}
}

/* As of when the recorder was last heard: one that is stopped does not have jobs hang. */
static void put_pending(FILE *f, const void *arg, const struct of *of)
{
	const json_t *live = json_object_get(of->rank, "live");
	uint64_t since = status_field__number(live, "pendingSinceUs"),
		 now = status_field__number(of->recorder, "asOfUs");

	put_name(f, arg, of);
	put_value(f, since && now > since ? (double)(now - since) / 1e6 : 0);
}

static void put_process(FILE *f, const void *arg, const struct of *of)
{
	put_name(f, arg, of);
	put_label(f, ",", "command", status_field__string(of->process, "comm"));
	if (json_object_get(of->process, "jobId"))
		put_label(f, ",", "job", status_field__string(of->process, "jobId"));
	fprintf(f, ",uid=\"%llu\"", (unsigned long long)status_field__number(of->process, "uid"));
	put_value(f, 1);
}

static bool is_up(const json_t *recorder)
{
	return status_field__is_in(recorder, "running") || status_field__is_in(recorder, "waiting");
}

/* Also dead ones: their file says that one was killed. */
static void put_recorders(FILE *f, const json_t *recorders)
{
	static const char name[] = "ncclscope_recorder_up";
	struct of of = {0};
	size_t i, n = 0;

	json_array_foreach (recorders, i, of.recorder)
		n += runs(of.recorder);
	put_family(f, "ncclscope_recorders", "Recorders on this node, without dead ones.", false);
	fprintf(f, "ncclscope_recorders %zu\n", n);
	put_family(
		f, name,
		"1: it records, or waits until it does; 0: it is stopped or hangs, or was killed.",
		false);
	json_array_foreach (recorders, i, of.recorder) {
		put_name(f, name, &of);
		put_label(f, ",", "version", status_field__string(of.recorder, "version"));
		put_value(f, is_up(of.recorder));
	}
}

static void put_all(FILE *f, const json_t *recorders)
{
	static const struct {
		const char *name, *help;
		enum level level;
		put_fn put;
		bool counter;
	} others[] = {
		{"ncclscope_lost_records_total", "Records that are not in the traces, by cause.",
		 OF_RECORDER, put_lost, true},
		{"ncclscope_process_info", "A process that is recorded.", OF_PROCESS, put_process,
		 false},
		{"ncclscope_process_lost_records_total", "The same of this process.", OF_PROCESS,
		 put_lost, true},
		{"ncclscope_operation_pending_seconds", "For how long the oldest of them has been.",
		 OF_RANK, put_pending, false},
	};
	size_t i;

	put_recorders(f, recorders);
	for (i = 0; i < NMETRICS; i++) {
		if (!i || strcmp(metrics[i].name, metrics[i - 1].name) != 0)
			put_family(f, metrics[i].name, metrics[i].help, metrics[i].counter);
		put_each(f, recorders, metrics[i].level, put_one, &metrics[i]);
	}
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		put_family(f, others[i].name, others[i].help, others[i].counter);
		put_each(f, recorders, others[i].level, others[i].put, others[i].name);
	}
}

/* ---- The command ------------------------------------------------------------------------------- */

/* The whole text; NULL: no memory. */
static char *text_now(size_t *len)
{
	json_t *recorders = status_dir__read(status_dir(), monotonic_ns() / 1000);
	char *text = NULL;
	FILE *f = recorders ? open_memstream(&text, len) : NULL;

	if (f) {
		tell_all_once(recorders);
		put_all(f, recorders);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	json_decref(recorders);
	return text;
}

/* 0 or -errno */
static int write_now(const char *path)
{
	struct output out;
	size_t len = 0;
	char *text = text_now(&len);
	int err, end;

	if (!text)
		return -ENOMEM;
	err = output__open(&out, path, 0644);
	if (!err) {
		err = output__write(&out, text, len);
		end = output__close(&out, !err);
		err = err ? err : end;
	}
	free(text);
	return err;
}

static int say_failed(const char *path, int err)
{
	pr_err("Failed to write '%s': %s\n", output__name(path), strerror(-err));
	return EXIT_FAILED;
}

static int write_once(const char *path)
{
	int err = write_now(path);

	return err ? say_failed(path, err) : EXIT_OK;
}

/* What is not written any more would be taken for what is so now. */
static void take_away(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISREG(st.st_mode) && unlink(path))
		pr_warn("Failed to delete '%s': %s\n", path, strerror(errno));
}

/* Until somebody wants it to end; where it fails, until it does not. */
static int write_again(const struct options *o)
{
	struct timespec delay = {.tv_sec = (time_t)(o->delay_ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(o->delay_ns % NSEC_PER_SEC)};
	int err, sig, status = EXIT_OK;
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	do {
		err = write_now(o->output);
		if (err && !status) { /* said once, not each time */
			status = say_failed(o->output, err);
			take_away(o->output);
		} else if (!err) {
			status = EXIT_OK;
		}
		sig = sigtimedwait(&ends, NULL, &delay);
	} while (sig < 0);
	take_away(o->output);
	return status;
}

int cmd_metrics(int argc, char **argv)
{
	struct options o = {0};

	options__parse(&argp, argc, argv, 0, &o);
	return o.delay_ns ? write_again(&o) : write_once(o.output);
}
