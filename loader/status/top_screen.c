// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope top` in a terminal, by ncurses; see top.h. */
#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clock.h"
#include "cmd.h"
#include "log.h"
#include "top.h"

#define HEAD 4 /* lines above the rows */
#define FOOT 1

static const char keys[] = "q quit  s sort  space pause  arrows, PgUp, PgDn scroll";

struct screen {
	struct top *top;
	size_t first; /* row shown at the top */
	bool paused, colours;
};

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

/* ---- Drawing ------------------------------------------------------------------------------------------ */

static void put(int y, attr_t how, const char *line)
{
	if (y < 0 || y >= LINES)
		return;
	attrset(how);
	mvaddnstr(y, 0, line, COLS); /* printable ASCII: a byte is a column */
	if (how & A_REVERSE)
		for (int x = (int)strlen(line); x < COLS; x++)
			mvaddch(y, x, ' ');
	attrset(A_NORMAL);
}

static attr_t how_row(const struct screen *s, const struct top_row *row)
{
	if (row->waited_for || row->pending_us >= 1000000)
		return A_BOLD | (s->colours ? (attr_t)COLOR_PAIR(row->waited_for ? 1 : 2) : 0);
	return A_NORMAL;
}

static size_t rows_shown(void)
{
	return LINES > HEAD + FOOT ? (size_t)(LINES - HEAD - FOOT) : 0;
}

static void draw(struct screen *s)
{
	const struct top *t = s->top;
	char line[TOP_LINE];
	size_t i, n = rows_shown();

	if (s->first + n > t->nrows)
		s->first = t->nrows > n ? t->nrows - n : 0;
	erase();
	top_text__head(t, line);
	put(0, t->lost_new ? A_BOLD : A_NORMAL, line);
	top_text__recorders(t, line);
	put(1, A_NORMAL, line);
	top_text__titles(COLS, line);
	put(HEAD - 1, A_REVERSE, line);
	for (i = 0; i < n && s->first + i < t->nrows; i++) {
		top_text__row(&t->rows[s->first + i], COLS, line);
		put(HEAD + (int)i, how_row(s, &t->rows[s->first + i]), line);
	}
	snprintf(line, sizeof(line), "%s%s  by %s", s->paused ? "PAUSED  " : "", keys,
		 top_sort_names[t->sort]);
	put(LINES - 1, A_DIM, line);
	refresh();
}

/* ---- Keys ------------------------------------------------------------------------------------------------ */

static void scroll_by(struct screen *s, long n)
{
	if (n < 0 && s->first < (size_t)-n)
		s->first = 0;
	else
		s->first += (size_t)n;
}

static void on_key(struct screen *s, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		ended = 1;
		break;
	case ' ':
		s->paused = !s->paused;
		break;
	case 's':
		s->top->sort = (s->top->sort + 1) % TOP_SORTS;
		top__sort(s->top);
		break;
	case KEY_UP:
		scroll_by(s, -1);
		break;
	case KEY_DOWN:
		scroll_by(s, 1);
		break;
	case KEY_PPAGE:
		scroll_by(s, -(long)rows_shown());
		break;
	case KEY_NPAGE:
		scroll_by(s, (long)rows_shown());
		break;
	default:
		break;
	}
}

/* Keys, until it is time for the next reading. */
static void wait_until(struct screen *s, uint64_t until_ns)
{
	uint64_t now;
	int key;

	while (!ended && (now = monotonic_ns()) < until_ns) {
		timeout((int)((until_ns - now) / 1000000) + 1);
		key = getch();
		if (key == ERR && errno != EINTR && !isatty(STDIN_FILENO)) {
			ended = 1;
			return;
		}
		if (key == ERR)
			continue;
		on_key(s, key);
		draw(s);
	}
}

/* ---- The terminal ------------------------------------------------------------------------------------- */

static bool screen_begin(struct screen *s)
{
	const char *no_colour = getenv("NO_COLOR");
	struct sigaction sa = {.sa_handler = on_signal};

	if (!newterm(NULL, stdout, stdin))
		return false;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	s->colours = has_colors() && !(no_colour && *no_colour);
	if (s->colours) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
		init_pair(2, COLOR_YELLOW, -1);
	}
	return true;
}

int top_screen__run(struct top *t, uint64_t delay_ns, uint64_t n)
{
	struct screen s = {.top = t};
	uint64_t i;
	int err = 0;

	if (!screen_begin(&s)) {
		pr_err("Failed to set up the terminal (TERM is '%s'); use --batch\n",
		       getenv("TERM") ? getenv("TERM") : "");
		return EXIT_FAILED;
	}
	for (i = 0; !ended && !err && (!n || i < n); i++) {
		if (!s.paused)
			err = top__read(t);
		draw(&s);
		wait_until(&s, monotonic_ns() + delay_ns);
	}
	endwin();
	if (err)
		pr_err("Failed to read what recorders tell: %s\n", strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
}
