// SPDX-License-Identifier: BSD-2-Clause
/* Lines of `ncclscope top`: what matters lies in the first 80 columns; see top.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "human.h"
#include "top.h"

#define BEHIND_US 2000000
#define ROW	  "%-10.10s %6s %7s %6s %6s %4s %4s %4s %5s %6s %s"

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

void top_text__recorders(const struct top *t, char line[TOP_LINE])
{
	char memory[HUMAN_CELL], behind[HUMAN_CELL];

	if (!t->recorders) {
		snprintf(line, TOP_LINE,
			 "No recorder runs on this node. Start one: ncclscope record");
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
}

void top_text__titles(char line[TOP_LINE])
{
	snprintf(line, TOP_LINE, ROW, "COMM", "RANK", "PID", "OP/S", "BUSBW", "CPU", "RUNQ", "SLP",
		 "RETX", "PEND", "WHY");
}

void top_text__row(const struct top_row *r, char line[TOP_LINE])
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
	snprintf(line, TOP_LINE, ROW, r->name, rank, pid, rate(ops, r->ops), rate(busbw, r->busbw),
		 share(cpu, r->sched, r->on_cpu), share(runq, r->sched, r->runq),
		 share(slp, r->sched, r->blocked), rate(retx, r->retrans), pending, why);
}
