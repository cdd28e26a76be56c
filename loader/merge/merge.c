// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope merge`: traces of several nodes as one, in one clock. The command line; see merge.h for the parts. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd.h"
#include "human.h"
#include "lines.h"
#include "log.h"
#include "merge.h"
#include "options.h"
#include "output.h"

enum { OPT_CLOCKS = 256, OPT_JSON };

struct options {
	const char *output;
	bool clocks, json;
	char **paths;
};

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0,
	 "Write to FILE, which is there when it is whole, and not to standard output (-)", 0},
	{"clocks", OPT_CLOCKS, NULL, 0,
	 "Only tell how far the clocks of the nodes are apart, and how sure that is", 0},
	{"json", OPT_JSON, NULL, 0, "--clocks as one JSON object", 0},
	{"quiet", 'q', NULL, 0, "Warnings and errors only, no progress line", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'o':
		o->output = arg;
		return 0;
	case OPT_CLOCKS:
		o->clocks = true;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case ARGP_KEY_END:
		if (!o->paths)
			argp_error(state, "a trace is needed: a file or a directory");
		options__not_input(state, o->paths, o->output);
		if (o->json && !o->clocks)
			argp_error(state, "--json is for --clocks: what is merged is JSON anyway");
		if (o->clocks && o->output)
			argp_error(state, "either --clocks or --output");
		return 0;
	default:
		return options__traces(key, state, &o->paths);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "TRACE...",
	.doc = "Make one trace of those of a job's nodes: all times in one clock, which is found "
	       "by the messages between them, and with what only several traces tell together. A "
	       "TRACE is a file or a directory (its trace_*.jsonl and trace_*.jsonl.zst).\v"
	       "Exit status: 0 ok, 1 a trace could not be read or the output not be written, 2 "
	       "usage.",
};

/* ---- Parts that both readings need ------------------------------------------------------------------------- */

int merge_parse(struct merge *m, const char **s, size_t *len, bool whole)
{
	bool torn;
	int err = lines_parse(&m->doc, s, len, &torn);

	if (torn || (err == -EINVAL && !whole))
		m->torn++;
	else if (err == -EINVAL)
		m->skipped++;
	if (err)
		return err;
	if (m->doc.nodes[0].kind == JSON_KIND_OBJ)
		return 0;
	m->skipped++;
	return -EINVAL;
}

const struct merge_proc *merge_first_proc(const struct merge *m, uint32_t stream)
{
	return stream < m->nstreams ? m->streams[stream] : NULL;
}

const char *merge_by(const struct merge *m, const struct merge_node *n)
{
	return n == &m->nodes[m->ref] ? "reference" : n->fit.error >= 0 ? "messages" : "realtime";
}

/* By how much its real clock was set meanwhile, which is more than it may be wrong by. Lifetimes are nonsense, and sums would not fit. */
static int64_t set_by(const struct merge_node *n)
{
	int64_t by = n->last.offset - n->first.offset;

	return llabs(by) > n->last.error + n->first.error && llabs(by) < JN_TIME_MAX ? by : 0;
}

/* What its real clock says of its times, beyond what messages go by. */
static int64_t beyond_base(const struct merge_node *n)
{
	int64_t by = n->real->offset - n->base.offset;

	return llabs(by) < JN_TIME_MAX ? by : 0;
}

static uint32_t longest_up(const struct merge *m, const struct merge_fit *fits)
{
	uint32_t i, at = 0;

	for (i = 1; i < m->nnodes; i++)
		if (m->nodes[i].base.offset + fits[i].add < m->nodes[at].base.offset + fits[at].add)
			at = i;
	return at;
}

/* The node that has been up for longest has the largest times: none gets negative that moves to its clock. */
int merge_fit(struct merge *m)
{
	struct merge_fit *fits = calloc(m->nnodes + 1, sizeof(*fits));
	const struct merge_node *ref;
	struct merge_node *n;
	uint32_t i, turn;
	int err = fits ? 0 : -ENOMEM;

	for (i = 0; i < m->nnodes && !err; i++) {
		n = &m->nodes[i];
		n->real = set_by(n) ? &n->last : &n->base;
		fits[i].add = beyond_base(n);
	}
	/* by their real clocks first; once these are known to be wrong, by what they should say */
	for (turn = 0; !err && m->nnodes && turn < 2; turn++) {
		m->ref = longest_up(m, fits);
		for (i = 0; i < m->nnodes; i++)
			fits[i].add = beyond_base(&m->nodes[i]) - beyond_base(&m->nodes[m->ref]);
		err = merge_clock__solve(m->clock, m->nnodes, m->ref, fits);
	}
	for (i = 0; i < m->nnodes && !err; i++) {
		n = &m->nodes[i];
		ref = &m->nodes[m->ref];
		n->fit = fits[i];
		n->shift = n->base.offset + n->fit.add - ref->base.offset;
		n->fit.add -= beyond_base(n) - beyond_base(ref);
	}
	free(fits);
	return err;
}

static void free_end(struct merge_end *e)
{
	struct merge_end *more;

	for (; e; e = more) {
		more = e->more;
		free(e->resent);
		free(e);
	}
}

static void free_flow(struct merge_flow *f)
{
	struct merge_end *e, *next;

	for (e = f->ends; e; e = next) {
		next = e->next;
		free_end(e);
	}
	free(f);
}

static void merge_free(struct merge *m)
{
	struct merge_flow *f, *tmp;
	struct merge_proc *p, *next;
	uint32_t i;

	HASH_ITER (hh, m->flows, f, tmp) {
		HASH_DEL(m->flows, f);
		free_flow(f);
	}
	HASH_FREE_ALL(m->origins);
	HASH_FREE_ALL(m->boots);
	for (i = 0; i < m->nstreams; i++)
		for (p = m->streams[i]; p; p = next) {
			next = p->next;
			free(p->pxn);
			free(p);
		}
	for (i = 0; i < m->nnodes; i++)
		free(m->nodes[i].host);
	copies__free(&m->copies);
	free(m->streams);
	free(m->nodes);
	merge_clock__free(m->clock);
	json_doc__free(&m->doc);
	xbuf__free(&m->out);
}

/* ---- What is said ------------------------------------------------------------------------------------------ */

/* "12.3 us", "+4.56 ms": ns as people read them. */
static const char *span_text(char buf[32], int64_t ns, bool sign)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	double v = (double)ns;
	size_t i = 0;

	while (i < 2 && (v < 0 ? -v : v) < units[i].ns)
		i++;
	snprintf(buf, 32, sign ? "%+.3f %s" : "%.3f %s", v / units[i].ns, units[i].unit);
	return buf;
}

static void tell_clocks(const struct merge *m)
{
	char host[HUMAN_CELL], shift[32], off[32], error[32];
	const struct merge_node *n;
	uint32_t i;

	printf("%-24s %9s  %16s  %14s  %12s\n", "node", "processes", "add to its times",
	       "real clock off", "error");
	for (i = 0; i < m->nnodes; i++) {
		n = &m->nodes[i];
		human__clean(host, n->host, 24, false);
		if (i == m->ref) {
			printf("%-24s %9u  %16s\n", host, n->procs, "(reference)");
			continue;
		}
		span_text(shift, n->shift, true);
		span_text(off, n->fit.add, true);
		span_text(error, n->fit.error, false);
		printf("%-24s %9u  %16s  %14s  %12s\n", host, n->procs, shift,
		       n->fit.error < 0 ? "not known" : off,
		       n->fit.error < 0 ? "not known" : error);
	}
}

static json_t *us(int64_t ns)
{
	return json_real((double)ns / 1e3);
}

static json_t *node_json(const struct merge *m, uint32_t i)
{
	const struct merge_node *n = &m->nodes[i];
	json_t *host = json_string(n->host);
	json_t *obj = json_pack("{so ss si so}", "host", host ? host : json_string("?"), "bootId",
				n->boot, "processes", (int)n->procs, "shift", us(n->shift));

	json_object_set_new(obj, "by", json_string(merge_by(m, n)));
	if (n->fit.error >= 0) {
		json_object_set_new(obj, "realtimeOff", us(n->fit.add));
		json_object_set_new(obj, "error", us(n->fit.error));
	}
	return obj;
}

static int tell_clocks_json(const struct merge *m)
{
	json_t *nodes = json_array(), *all;
	int err;
	uint32_t i;

	for (i = 0; i < m->nnodes; i++)
		json_array_append_new(nodes, node_json(m, i));
	all = json_pack("{si so}", "schema", 1, "nodes", nodes);
	err = all ? json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : -1;
	json_decref(all);
	putchar('\n');
	return err ? -EIO : 0;
}

/* What the user ought to know of the clocks before they are relied on. */
static void warn_clocks(const struct merge *m)
{
	char host[HUMAN_CELL], text[32];
	uint32_t i;

	for (i = 0; i < m->nnodes; i++)
		if (set_by(&m->nodes[i]))
			pr_warn("%s: its real clock was set by %s meanwhile: what it said last "
				"counts\n",
				human__clean(host, m->nodes[i].host, 64, false),
				span_text(text, set_by(&m->nodes[i]), true));
	for (i = 0; i < m->nnodes; i++)
		if (m->nodes[i].fit.error < 0)
			pr_warn("%s: no messages to it and back in these traces, so its clock is "
				"taken for as right as its real clock is\n",
				human__clean(host, m->nodes[i].host, 64, false));
	if (m->headless)
		pr_warn("%" PRIu64 " process%s without a header: nothing tells of a clock, and the "
			"times stay as they are\n",
			m->headless, human__es(m->headless));
}

static void tell(const struct merge *m)
{
	char text[32], clocks[64] = "";
	uint32_t unknown = 0, i;
	int64_t worst = 0;

	if (m->torn)
		pr_warn("%" PRIu64 " torn line%s: the recording broke off there, left out\n",
			m->torn, human__s(m->torn));
	if (m->skipped)
		pr_warn("%" PRIu64 " line%s could not be used, left out%s%s ('ncclscope "
			"check' tells more)\n",
			m->skipped, human__s(m->skipped), *m->why ? "; the first: " : "", m->why);
	if (m->unknown)
		pr_warn("%" PRIu64 " record%s of kinds that this version does not know: the times "
			"stay as they are\n",
			m->unknown, human__s(m->unknown));
	if (m->pxn_lost)
		pr_info("%" PRIu64 " of %" PRIu64
			" PXN events: the process that they are of is not "
			"among these traces\n",
			m->pxn_lost, m->pxn);
	for (i = 0; i < m->nnodes; i++) {
		unknown += m->nodes[i].fit.error < 0;
		worst = m->nodes[i].fit.error > worst ? m->nodes[i].fit.error : worst;
	}
	if (unknown) { /* warn_clocks() has said of which */
		snprintf(clocks, sizeof(clocks), ", clocks not known of %u", unknown);
	} else if (m->nnodes > 1) {
		snprintf(clocks, sizeof(clocks), ", clocks within %s",
			 span_text(text, worst, false));
	}
	pr_info("%u node%s, %" PRIu64 " process%s, %" PRIu64 " line%s%s\n", m->nnodes,
		human__s(m->nnodes), m->procs, human__es(m->procs), m->lines, human__s(m->lines),
		clocks);
	if (m->ties)
		pr_info("%" PRIu64 " connection%s other end on another of these nodes\n", m->ties,
			m->ties == 1 ? " has its" : "s have their");
}

/* ---- The whole --------------------------------------------------------------------------------------------- */

static int write_clocks(const struct merge *m, bool json)
{
	int err = 0;

	if (json)
		err = tell_clocks_json(m);
	else
		tell_clocks(m);
	if (output__flush())
		return -EIO;
	if (err)
		pr_err("Failed to write: %s\n", strerror(-err));
	return err;
}

/* @bad: what could not be read before. */
static int write_all(struct merge *m, struct streams *files, const char *path, int bad)
{
	int err = output__open(&m->to, path, 0640), end;

	m->err = err;
	if (!err) {
		err = merge_write(m, files);
		/* what could be read the first time must not be missing now */
		m->err = m->err ?: err && !bad ? -ESTALE : 0;
		end = output__close(&m->to, !m->err);
		m->err = m->err ?: end;
	}
	if (m->err == -ESTALE)
		pr_err("A trace has changed while it was read: merge it when its recording has "
		       "ended\n");
	else if (m->err)
		pr_err("Failed to write '%s': %s\n", output__name(path), strerror(-m->err));
	else
		tell(m);
	return m->err ?: err;
}

/* @bad: what could not be opened, which has been told. */
static int run(struct merge *m, struct streams *files, const struct options *o, int bad)
{
	int err = merge_read(m, files);

	bad = err ? err : bad;
	if (bad == -ENOMEM || bad == -EALREADY || bad == -ENOTSUP || bad == -E2BIG)
		return bad;
	if (!m->nnodes && bad)
		return bad; /* told */
	if (!m->nnodes) {
		pr_err("No trace with a header in '%s': there is no clock to go by\n", o->paths[0]);
		return -ENODATA;
	}
	copies__warn(&m->copies);
	err = merge_fit(m);
	if (err)
		return err;
	warn_clocks(m);
	err = o->clocks ? write_clocks(m, o->json) : write_all(m, files, o->output, bad);
	return err ? err : bad;
}

int cmd_merge(int argc, char **argv)
{
	static const struct streams_options again = {.again = true};
	struct options o = {0};
	struct merge m = {0};
	struct streams *files;
	int err, bad = 0;

	options__parse(&argp, argc, argv, 0, &o);
	files = streams__new(o.paths, &again, &bad);
	m.clock = merge_clock__new();
	err = files && m.clock ? json_doc__init(&m.doc) : -ENOMEM;
	if (!err)
		err = run(&m, files, &o, bad);
	if (err == -ENOMEM)
		pr_err("Failed to merge: %s\n", strerror(ENOMEM));
	streams__free(files);
	merge_free(&m);
	return err ? EXIT_FAILED : EXIT_OK;
}
