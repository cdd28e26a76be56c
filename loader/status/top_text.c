// SPDX-License-Identifier: BSD-2-Clause
/* Lines of `ncclscope top`: what matters lies in the first 80 columns, or as many as there are; see top.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "human.h"
#include "status_field.h"
#include "top.h"

#define BEHIND_US 2000000

enum cell { COMM, RANK, PID, OPS, BUSBW, CPU, RUNQ, SLP, RETX, PEND, WHY, CELLS };

/* Of a row. On a narrow terminal go first those of 1, then those of 2 and so on; those of 0 stay: who is waited for is what people look for. */
struct column {
	const char *title;
	int width; /* of the last one at least: "WAITED FOR" */
	int goes;
};

static const struct column columns[CELLS] = {
	[COMM] = {"COMM", 10, 0}, [RANK] = {"RANK", 6, 0},   [PID] = {"PID", 7, 5},
	[OPS] = {"OP/S", 6, 4},	  [BUSBW] = {"BUSBW", 6, 3}, [CPU] = {"CPU", 4, 1},
	[RUNQ] = {"RUNQ", 4, 1},  [SLP] = {"SLP", 4, 1},     [RETX] = {"RETX", 5, 2},
	[PEND] = {"PEND", 6, 0},  [WHY] = {"WHY", 10, 0},
};
#define LEVELS 6 /* and all that may go is gone */

/* What a cell of that many columns has room for. */
static const char *rate(char buf[16], double v)
{
	if (v <= 0)
		return "-";
	snprintf(buf, 16, v < 9.995 ? "%.2f" : v < 99.95 ? "%.1f" : "%.0f", v);
	if (v >= 99999.5)
		snprintf(buf, 16, "%.0fk", v / 1e3);
	return buf;
}

static const char *share(char buf[16], bool known, double v)
{
	if (!known)
		return "-";
	snprintf(buf, 16, "%.0f%%", (v < 1 ? v : 1) * 100);
	return buf;
}

void top_text__head(const struct top *t, char line[TOP_LINE])
{
	char clock[16] = "", records[HUMAN_CELL];
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(line, TOP_LINE, "ncclscope top %s  %u process%s, %zu rank%s  %s records/s  ",
		 clock, t->processes, human__es(t->processes), t->nrows, human__s(t->nrows),
		 human__count(records, (uint64_t)t->records));
	if (t->lost)
		snprintf(line + strlen(line), TOP_LINE - strlen(line),
			 "LOST %" PRIu64 " (+%" PRIu64 ")", t->lost, t->lost_new);
	else
		snprintf(line + strlen(line), TOP_LINE - strlen(line), "lost 0");
}

/* No recorder records now. */
static void put_none(const struct top *t, char line[TOP_LINE])
{
	char when[STATUS_WHEN];

	if (!t->waiting)
		snprintf(line, TOP_LINE,
			 "No recorder runs on this node. Start one: ncclscope record");
	else if (t->waiting == 1)
		snprintf(line, TOP_LINE,
			 "The recorder waits until %s. Start one for now: ncclscope record",
			 status_field__when(when, t->waits_until));
	else
		snprintf(line, TOP_LINE,
			 "%u recorders wait, the first until %s. Start one for now: ncclscope "
			 "record",
			 t->waiting, status_field__when(when, t->waits_until));
}

void top_text__recorders(const struct top *t, char line[TOP_LINE])
{
	char memory[HUMAN_CELL], behind[HUMAN_CELL], when[STATUS_WHEN];
	size_t len;

	if (!t->recorders) {
		put_none(t, line);
		return;
	}
	snprintf(line, TOP_LINE,
		 "%u recorder%s%s, %.1f%% of a CPU, %s memory, ring %.0f%% full%s%s%s",
		 t->recorders, human__s(t->recorders),
		 t->silent ? " (silent: stopped, or without a CPU)" : "", t->cpu * 100,
		 human__bytes(memory, t->memory), t->ring * 100,
		 !t->captures		      ? ""
		 : t->captures < t->recorders ? " (some --raw: no operations of theirs)"
					      : " (--raw: no operations)",
		 t->behind_us >= BEHIND_US ? ", behind by " : "",
		 t->behind_us >= BEHIND_US ? human__time(behind, t->behind_us) : "");
	len = strlen(line);
	if (t->waiting)
		snprintf(line + len, TOP_LINE - len, "; %u wait%s until %s", t->waiting,
			 t->waiting == 1 ? "s" : ", the first",
			 status_field__when(when, t->waits_until));
}

static bool is_shown(int i, int level)
{
	return !columns[i].goes || columns[i].goes > level;
}

/* What has to go for a row to fit. */
static int level_for(int width)
{
	int level, need, i;

	for (level = 0; level < LEVELS - 1; level++) {
		need = -1; /* a space less than there are cells */
		for (i = 0; i < CELLS; i++)
			need += is_shown(i, level) ? columns[i].width + 1 : 0;
		if (need <= width)
			break;
	}
	return level;
}

static void put_row(const char *const cells[CELLS], int width, char line[TOP_LINE])
{
	int level = level_for(width), n, i;

	n = snprintf(line, TOP_LINE, "%-*.*s", columns[COMM].width, columns[COMM].width,
		     cells[COMM]);
	for (i = COMM + 1; i < WHY; i++)
		if (is_shown(i, level) && n < TOP_LINE)
			n += snprintf(line + n, (size_t)(TOP_LINE - n), " %*s", columns[i].width,
				      cells[i]);
	if (n < TOP_LINE)
		snprintf(line + n, (size_t)(TOP_LINE - n), " %s", cells[WHY]);
}

void top_text__titles(int width, char line[TOP_LINE])
{
	const char *cells[CELLS];
	int i;

	for (i = 0; i < CELLS; i++)
		cells[i] = columns[i].title;
	put_row(cells, width, line);
}

void top_text__row(const struct top_row *r, int width, char line[TOP_LINE])
{
	char rank[24], pid[16], ops[16], busbw[16], cpu[16], runq[16], slp[16], retx[16];
	char pending[HUMAN_CELL], why[96];

	snprintf(rank, sizeof(rank), "%d/%d", r->rank, r->nranks);
	snprintf(pid, sizeof(pid), "%u", r->pid);
	/* One that has been called just now is no wait. */
	if (r->pending_us >= 100000)
		human__time(pending, r->pending_us);
	else
		strcpy(pending, "-");
	snprintf(why, sizeof(why), "%s%s%s", r->waited_for ? "WAITED FOR" : "",
		 r->waited_for && *r->why ? ", " : "", r->why);
	put_row((const char *[CELLS]){[COMM] = r->name,
				      [RANK] = rank,
				      [PID] = pid,
				      [OPS] = rate(ops, r->ops),
				      [BUSBW] = rate(busbw, r->busbw),
				      [CPU] = share(cpu, r->sched, r->on_cpu),
				      [RUNQ] = share(runq, r->sched, r->runq),
				      [SLP] = share(slp, r->sched, r->blocked),
				      [RETX] = rate(retx, r->retrans),
				      [PEND] = pending,
				      [WHY] = why},
		width, line);
}
