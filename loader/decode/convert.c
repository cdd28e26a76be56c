// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope convert`: traces from a capture of `record --raw`, through the same pipeline and so the same bytes. The
 * file may be anybody's: what makes no sense ends the conversion with its place, and what came before is kept.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "cmd.h"
#include "job.h"
#include "log.h"
#include "options.h"
#include "out.h"
#include "out_threads.h"
#include "pipeline.h"
#include "progress.h"
#include "raw.h"
#include "rlimits.h"

#define TRIM_BYTES (64u << 20) /* of the capture, between two */

struct convert_options {
	char *file;
	char *dir;
	bool strict, compress;
	uint32_t threads;
};

struct convert {
	struct convert_options opt;
	struct session s;
	struct raw_reader reader;
	struct out_threads *threads;
	uint64_t begin_ns;
	uint64_t now_ns;	  /* of the newest tick */
	uint64_t trim_offset;	  /* where to give memory back */
	uint64_t inputs, context; /* of these, records of kernel context */
	uint64_t lost, records;
	bool torn;   /* it ends within a record */
	bool cut;    /* it lacks the end of a recording */
	bool failed; /* of a recording no trace could be written */
};

/* ---- Sessions ---------------------------------------------------------------------------------- */

static void session_init(struct convert *c)
{
	c->s.dir = c->opt.dir;
	c->s.own_files = true;
	c->s.compress = c->opt.compress;
	c->s.out_threads = c->threads;
	invoking_user(&c->s.uid, &c->s.gid);
}

/* A recording whose end is not in the capture: all that there is has come in. */
static void cut_off(struct convert *c)
{
	struct input_finish in = {.end_ns = c->now_ns, .how = "loader-stopped"};
	const struct proc *p;

	for (p = c->s.procs; p; p = p->hh.next)
		if (p->corr.now_ns > in.end_ns)
			in.end_ns = p->corr.now_ns;
	pipeline__apply(&c->s, INPUT_COMPLETE, NULL, 0);
	pipeline__apply(&c->s, INPUT_FINISH, &in, sizeof(in));
}

static void session_end(struct convert *c)
{
	const struct out_dir *d = c->s.dirs;

	if (!c->s.begun)
		return;
	if (!c->s.finished) {
		c->cut = true;
		cut_off(c);
	}
	if (log_level >= LOG_INFO)
		summary__print(&c->s.summary, d ? d->path : "", stderr);
	if (c->s.bad_records)
		pr_warn("%llu records made no sense and were skipped\n",
			(unsigned long long)c->s.bad_records);
	c->lost += summary__lost(&c->s.summary);
	c->records += c->s.summary.records;
	c->failed |= summary__nothing_written(&c->s.summary);
	pipeline__free(&c->s);
	c->now_ns = 0;
	session_init(c);
}

/* ---- Records ----------------------------------------------------------------------------------- */

/* Numbers of system calls are of the machine that recorded, and their names are ours. */
static int check_machine(const struct raw_rec *rec)
{
	const struct input_session *in = rec->data;
	struct utsname un;

	if (rec->size != sizeof(*in) || uname(&un) ||
	    !strncmp(in->machine, un.machine, sizeof(in->machine)))
		return 0;
	pr_err("The capture is of a machine of another kind (%.*s): convert it with a program for "
	       "that\n",
	       (int)strnlen(in->machine, sizeof(in->machine)), in->machine);
	return -EPROTO;
}

/* Not what the plugin made: its records are counted one by one. */
static bool is_context(const struct raw_rec *rec)
{
	const struct scope_ev_short *h = rec->data;

	return rec->kind == INPUT_RING && rec->size >= sizeof(*h) && h->kind != SCOPE_EV_CHUNK;
}

static int take(struct convert *c, const struct raw_rec *rec)
{
	int err = 0;

	if (rec->kind == INPUT_SESSION) {
		session_end(c);
		err = check_machine(rec);
		if (err)
			return err;
	}
	c->inputs++;
	c->context += is_context(rec);
	err = pipeline__apply(&c->s, rec->kind, rec->data, rec->size);
	if (err)
		pr_err("Failed to convert '%s': the record at byte %llu (kind %d, %u bytes) %s\n",
		       c->opt.file, (unsigned long long)rec->offset, rec->kind, rec->size,
		       err == -EINVAL ? "makes no sense here: the file is damaged"
				      : strerror(-err));
	else if (rec->kind == INPUT_TICK)
		c->now_ns = ((const struct input_tick *)rec->data)->now_ns;
	if (rec->offset >= c->trim_offset) {
		pipeline__trim(&c->s);
		c->trim_offset = rec->offset + TRIM_BYTES;
	}
	return err;
}

static int take_all(struct convert *c)
{
	struct progress progress;
	struct raw_rec rec;
	struct stat st;
	int err = 0, taken = 0;

	if (fstat(c->reader.fd, &st))
		st.st_size = 0;
	progress__begin(&progress, "Converting");
	while (!taken && (err = raw_reader__next(&c->reader, &rec)) > 0) {
		taken = take(c, &rec);
		progress__show(&progress, rec.offset, (uint64_t)st.st_size);
	}
	progress__end(&progress);
	if (taken)
		return taken;
	if (err == -ENODATA) {
		c->torn = true;
		pr_warn("'%s' is torn: %s, continuing with what comes before\n", c->opt.file,
			c->reader.why);
	} else if (err)
		pr_err("Failed to read '%s': %s\n", c->opt.file, c->reader.why);
	return err == -ENODATA ? 0 : err;
}

/* ---- The command ------------------------------------------------------------------------------- */

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void print_cost(const struct convert *c)
{
	double cpu, took = (double)(monotonic_ns() - c->begin_ns) / NSEC_PER_SEC,
		    n = (double)(c->records + c->context);
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	cpu = seconds(&ru.ru_utime) + seconds(&ru.ru_stime);
	pr_debug("Inputs: %llu, records of context: %llu, of NCCL: %llu; CPU %.3f s, %.3f s of it "
		 "the kernel's, %.0f ns a record; took %.3f s; peak %ld KiB\n",
		 (unsigned long long)c->inputs, (unsigned long long)c->context,
		 (unsigned long long)c->records, cpu, seconds(&ru.ru_stime),
		 n > 0 ? cpu * 1e9 / n : 0, took, ru.ru_maxrss);
}

static int open_capture(struct convert *c)
{
	int fd = strcmp(c->opt.file, "-") ? open(c->opt.file, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;

	if (fd < 0) {
		pr_err("Failed to open '%s': %s\n", c->opt.file, strerror(errno));
		return -errno;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (!raw_reader__open(&c->reader, fd))
		return 0;
	pr_err("Failed to read '%s': %s\n", c->opt.file, c->reader.why);
	return -EPROTO;
}

static int run(struct convert *c)
{
	int err, made = -1;

	c->begin_ns = monotonic_ns();
	session_init(c);
	err = out_dir_check(c->opt.dir, c->s.uid, c->s.gid, &made);
	if (!err)
		err = open_capture(c);
	if (err && made >= 0)
		out_dir_unmake(c->opt.dir, made);
	if (err)
		return EXIT_FAILED;
	c->threads = c->s.out_threads = out_threads__new(c->opt.threads);
	err = take_all(c);
	session_end(c);
	out_threads__free(c->threads);
	if (!err && c->cut)
		pr_warn("'%s' ends before its recording does: what was open then is unfinished\n",
			c->opt.file);
	if (!err && !c->inputs)
		pr_warn("'%s' holds no recording: it ends before the first has begun\n",
			c->opt.file);
	if (!c->inputs && made >= 0)
		out_dir_unmake(c->opt.dir, made);
	print_cost(c);
	raw_reader__close(&c->reader);
	if (err)
		return EXIT_FAILED;
	if (c->opt.strict && (c->lost || c->torn || c->cut || !c->inputs))
		return EXIT_LOST;
	return c->failed ? EXIT_FAILED : EXIT_OK;
}

enum { OPT_STRICT = 256, OPT_COMPRESS, OPT_THREADS };

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0,
	 "Write traces to DIR (default as record's: ncclscope_dump-JOB, or -TIME without a job id)",
	 0},
	{"compress", OPT_COMPRESS, NULL, 0, "Compress them by zstd: trace_*.jsonl.zst", 0},
	{"threads", OPT_THREADS, "N", 0,
	 "Compress and write by N more threads, a process' trace by one of them (default: 1, or "
	 "none where there is but one CPU)",
	 0},
	{"strict", OPT_STRICT, NULL, 0,
	 "Exit with status 5 if any record was lost, or the file lacks the end of a recording", 0},
	{"verbose", 'v', NULL, 0, "Say more: what it cost", 0},
	{"quiet", 'q', NULL, 0, "Warnings and errors only, no summary, no progress line", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct convert_options *o = state->input;
	uint64_t n = 0;

	switch (key) {
	case 'o':
		o->dir = arg;
		return 0;
	case OPT_COMPRESS:
		o->compress = true;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_THREADS:
		if (parse_count(arg, &n) || n > OUT_THREADS_MAX)
			argp_error(state, "--threads '%s': a number up to %d", arg,
				   OUT_THREADS_MAX);
		o->threads = (uint32_t)n;
		return 0;
	case 'v':
		log_level = LOG_DEBUG;
		return 0;
	case 'q':
		log_level = LOG_WARN;
		return 0;
	case ARGP_KEY_ARG:
		if (o->file)
			argp_error(state, "one capture at a time, '%s' is another", arg);
		o->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->file)
			argp_error(state, "which capture? A file of ncclscope record --raw, or -");
		options__no_stream(state, "-o", "a directory", o->dir);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "FILE",
	.doc = "Make traces from a capture of 'ncclscope record --raw': the same bytes as "
	       "recording "
	       "them would have made. FILE may be - for standard input.\v"
	       "Exit status: 0 ok, 1 failed, 2 usage, 5 data lost under --strict.",
};

/* That we may run on. */
static int cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? get_nprocs() : CPU_COUNT(&set);
}

int cmd_convert(int argc, char **argv)
{
	static struct convert c;

	c.opt.threads = cpus() > 1;
	options__parse(&argp, argc, argv, 0, &c.opt);
	limits_raise();
	return run(&c);
}
