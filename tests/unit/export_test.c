// SPDX-License-Identifier: BSD-2-Clause
/* Parts of `export` by themselves: order and lanes under events at random, traces torn at any place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "cmd.h"
#include "export.h"
#include "log.h"

static uint64_t seed = 7;

static uint64_t rnd(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

/* ---- Order and lanes: a format that looks at what it is given ---------------------------------------------- */

#define LANES 4096
#define DEPTH 4096

struct lane_seen {
	int64_t ends[DEPTH];
	uint32_t depth;
	int64_t first, last;
};

static struct lane_seen *lanes;
static uint64_t nlanes, nslices;

static void see_lane(struct export *x, struct export_lane *l)
{
	(void)x;
	assert_in_range(nlanes, 0, LANES - 1);
	l->id = nlanes++;
	lanes[l->id].last = INT64_MIN;
}

static void see_slice(struct export *x, struct export_lane *l, const struct export_slice *s)
{
	struct lane_seen *seen = &lanes[l->id];

	(void)x;
	assert_true(s->end >= s->start);
	assert_true(s->start >= seen->last);
	if (seen->depth)
		assert_true(s->end <= seen->ends[seen->depth - 1]);
	assert_in_range(seen->depth, 0, DEPTH - 1);
	seen->ends[seen->depth++] = s->end;
	if (seen->last == INT64_MIN)
		seen->first = s->start;
	seen->last = s->start;
	nslices += s->ev != NULL;
}

static void see_end(struct export *x, struct export_lane *l, int64_t ts)
{
	struct lane_seen *seen = &lanes[l->id];

	(void)x;
	assert_true(seen->depth > 0);
	assert_int_equal(seen->ends[--seen->depth], ts);
	assert_true(ts >= seen->last);
	seen->last = ts;
}

static void see_instant(struct export *x, struct export_lane *l, const struct export_slice *s)
{
	(void)x;
	(void)l;
	(void)s;
}

static const struct export_format seeing = {.lane = see_lane,
					    .slice = see_slice,
					    .slice_end = see_end,
					    .instant = see_instant};

static const struct export_type kinds[] = {
	{"parent", "", EXPORT_THREAD, 0, false, true, false},
	{"child", "", EXPORT_THREAD, 1, false, false, true},
	{"leaf", "", EXPORT_THREAD, 2, true, false, true},
};

static struct export *begin_order(void)
{
	struct export *x = calloc(1, sizeof(*x));

	lanes = calloc(LANES, sizeof(*lanes));
	assert_non_null(x);
	assert_non_null(lanes);
	x->fmt = &seeing;
	x->order = export_order__new();
	x->proc = calloc(1, sizeof(*x->proc));
	assert_non_null(x->proc);
	nlanes = nslices = 0;
	return x;
}

static void end_order(struct export *x)
{
	uint64_t i;

	export_order__write(x, true);
	for (i = 0; i < nlanes; i++)
		assert_int_equal(lanes[i].depth, 0);
	assert_int_equal(x->err, 0);
	export_read_free(x);
	free(x);
	free(lanes);
}

static void add(struct export *x, int64_t start, int64_t end, uint32_t kind, int32_t tid)
{
	struct export_key key = {.kind = EXPORT_THREAD, .tid = tid};
	struct export_event *ev = calloc(1, sizeof(*ev));
	struct export_state *st;
	int i;

	assert_non_null(ev);
	ev->start = ev->host = start;
	ev->end = end;
	ev->addr = rnd(100000);
	ev->type = &kinds[kind];
	ev->group = export_group_of(x, &key, NULL, "thread %d", tid);
	for (i = (int)rnd(3); i; i--) {
		st = calloc(1, sizeof(*st));
		assert_non_null(st);
		st->ts = start - 10 + (int64_t)rnd((uint64_t)(end - start) + 20);
		st->next = ev->states;
		ev->states = st;
	}
	if (end > x->proc->last)
		x->proc->last = end;
	export_order__add(x, ev);
	export_order__write(x, false);
}

/* Whatever comes, in whatever order: nothing is lost where there is room, and brackets match. */
static void test_lanes(void **state)
{
	struct export *x;
	int64_t start;
	int round, i;

	(void)state;
	for (round = 0; round < 30; round++) {
		x = begin_order();
		for (i = 0; i < 3000; i++) {
			start = (int64_t)rnd(round % 2 ? 50 : 1000000000000) + 1000;
			add(x, start, start + (int64_t)rnd(round % 3 ? 20 : 5000000000), rnd(3),
			    (int32_t)rnd(20));
		}
		export_order__write(x, true);
		assert_int_equal(nslices + x->beyond, 3000);
		assert_int_equal(nslices, x->events);
		end_order(x);
	}
}

/* In the order of a real trace, where parents come after their children: one lane does, and little waits. */
static void test_nesting(void **state)
{
	struct export *x = begin_order();
	int64_t i, at;

	(void)state;
	for (i = 0; i < 20000; i++) {
		at = 1000 + i * 1000000;
		add(x, at + 10, at + 20, 2, 1);
		add(x, at + 20, at + 30, 2, 1);
		add(x, at, at + 900, 1, 1);
		add(x, at, at + 900, 0, 1);
		/* three seconds of them */
		assert_true((uint64_t)(i + 1) * 4 - nslices <= 4 * 3001 + 4);
	}
	end_order(x);
	assert_int_equal(nlanes, 1);
	assert_int_equal(nslices, 80000);
}

/* Open as the recording ends: until then, however late that is; of more than there is room for the rest to where it was read. */
static void test_open(void **state)
{
	const size_t args = 1 << 20;
	struct export *x = begin_order();
	struct export_event *ev;
	int64_t i, ended = 0;

	(void)state;
	for (i = 0; i < 100; i++) {
		struct export_key key = {.kind = EXPORT_THREAD, .tid = (int32_t)i};

		ev = calloc(1, sizeof(*ev) + args);
		assert_non_null(ev);
		ev->type = &kinds[0];
		ev->group = export_group_of(x, &key, NULL, "thread");
		ev->open = true;
		ev->start = ev->host = 1000 + i;
		ev->end = 2000;
		ev->args_len = args;
		export_order__add(x, ev);
	}
	add(x, 5000000000, 90000000000, 0, 1000);
	assert_in_range(nslices, 30, 40);
	export_order__write(x, true);
	for (i = 0; i < (int64_t)nlanes; i++)
		ended += lanes[i].last == 90000000000;
	assert_int_equal(nslices, 101);
	assert_in_range(ended, 61, 71);
	end_order(x);
}

static void add_op(struct export *x, uint64_t addr, int64_t start, uint64_t children)
{
	struct export_key key = {.kind = EXPORT_THREAD, .tid = (int32_t)start};
	struct export_event *ev = calloc(1, sizeof(*ev));

	assert_non_null(ev);
	ev->type = &kinds[0];
	ev->group = export_group_of(x, &key, NULL, "thread");
	ev->addr = addr;
	ev->start = ev->host = ev->end = start;
	ev->open = true;
	ev->open_children = children;
	export_order__add(x, ev);
}

static void add_child(struct export *x, uint64_t parent, int64_t end)
{
	struct export_key key = {.kind = EXPORT_THREAD, .tid = 1};
	struct export_event *ev = calloc(1, sizeof(*ev));

	assert_non_null(ev);
	ev->type = &kinds[1];
	ev->group = export_group_of(x, &key, NULL, "children");
	ev->parent = parent;
	ev->start = ev->host = 10;
	ev->end = end;
	export_order__add(x, ev);
}

/* Open as they are written, operations end with their children: as far as these are known, if the address is used again. */
static void test_open_children(void **state)
{
	static const int64_t ends[] = {500, 700, 9000, 9000};
	struct export *x = begin_order();
	uint64_t i, k;
	bool found;

	(void)state;
	add_op(x, 7, 100, 2);
	add_child(x, 7, 500);
	add_op(x, 7, 200, 2);
	add_child(x, 7, 700);
	add_child(x, 7, 600);
	add_child(x, 7, 800); /* of nobody any more */
	add_op(x, 0, 300, 1); /* nor is one without a parent of what has no address */
	add_child(x, 0, 900);
	add_op(x, 8, 400, 2); /* one of these hangs */
	add_child(x, 8, 1000);
	x->proc->last = 9000;
	export_order__write(x, true);
	assert_int_equal(nslices, 10);
	for (i = 0; i < 4; i++) {
		for (k = 0, found = false; k < nlanes; k++)
			found |= lanes[k].first == (int64_t)(i + 1) * 100 &&
				 lanes[k].last == ends[i];
		assert_true(found);
	}
	end_order(x);
}

/* ---- The command, with sanitizers -------------------------------------------------------------------------- */

static int export_file(char *to, char *path)
{
	static char name[] = "export", out[] = "-o/dev/null";
	char *argv[] = {name, to, out, path, NULL};

	return cmd_export(4, argv);
}

static size_t read_whole(const char *path, char **text)
{
	FILE *f = fopen(path, "r");
	size_t len;

	assert_non_null(f);
	*text = malloc(1 << 20);
	assert_non_null(*text);
	len = fread(*text, 1, 1 << 20, f);
	fclose(f);
	return len;
}

static void test_torn(void **state)
{
	static const char *const files[] = {"good", "net", "sched", "pxn", "open", "orphans"};
	static char to[][16] = {"-tperfetto", "-tchrome", "-tspeedscope", "-tcollapsed", "-tcsv"};
	char path[] = "/tmp/export_test.XXXXXX", name[64], *text;
	int fd = mkstemp(path);
	size_t i, k, len, at;

	(void)state;
	assert_true(fd >= 0);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "tests/unit/traces/%s.jsonl", files[i]);
		len = read_whole(name, &text);
		for (at = len < 1500 ? len : 1500;; at = at + 397 < len ? at + 397 : len) {
			assert_int_equal(ftruncate(fd, 0), 0);
			assert_int_equal(pwrite(fd, text, at, 0), at);
			for (k = 0; k < sizeof(to) / sizeof(to[0]); k++) {
				assert_int_equal(export_file(to[k], path), EXIT_OK);
			}
			if (at == len)
				break;
		}
		free(text);
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lanes), cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_open),  cmocka_unit_test(test_open_children),
		cmocka_unit_test(test_torn),
	};

	log_level = LOG_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
