// SPDX-License-Identifier: BSD-2-Clause
/* Long sleeps; see sched_sleeps.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "flows.h"
#include "sched_priv.h"
#include "sched_ring.h"
#include "sched_sleeps.h"
#include "search.h"
#include "syscalls.h"

static struct sched_sleep *sleep_at(const struct sched_thread *t, uint64_t n)
{
	return &t->sleeps.at[n & (t->sleeps.size - 1)];
}

/* ---- Files -------------------------------------------------------------------------------------- */

/* Of a capture that is anybody's: it need not end. */
#define TEXT(field) (int)strnlen(field, sizeof(field)), field

/*
 * "shards/0012.tar" of "/data/shards/0012.tar"; "/etc" is "/etc". What has no path is named by its addresses, or by what it is: "pipe",
 * "socket", "[eventpoll]".
 */
static void file_name(char name[SCHED_FILE_LEN], const struct scope_ev_woken *e)
{
	if (e->has_sock)
		flow_name(name, SCHED_FILE_LEN, &e->sock);
	else if (!strncmp(e->fs, "sockfs", sizeof(e->fs)))
		snprintf(name, SCHED_FILE_LEN, "socket");
	else if (!strncmp(e->fs, "pipefs", sizeof(e->fs)))
		snprintf(name, SCHED_FILE_LEN, "pipe");
	else if (!e->dir[0] || !strncmp(e->dir, "/", sizeof(e->dir)))
		snprintf(name, SCHED_FILE_LEN, "%.1s%.*s", e->dir, TEXT(e->name));
	else
		snprintf(name, SCHED_FILE_LEN, "%.*s/%.*s", TEXT(e->dir), TEXT(e->name));
}

static void file_put(struct sched *s, struct sched_file *file)
{
	if (!file || --file->refs)
		return;
	if (HASH_ADDED(hh, file)) /* sleeps__forget_files() */
		HASH_DEL(s->files, file);
	s->room -= sizeof(*file);
	free(file);
}

/* The one with that name, for one sleep more; NULL: none, or no room. */
static struct sched_file *file_get(struct sched *s, const struct scope_ev_woken *e)
{
	struct sched_file_id id = {0};
	struct sched_file *file;

	if (!e->fs[0] || !syscall_takes_file(e->call))
		return NULL;
	memcpy(id.fs, e->fs, strnlen(e->fs, sizeof(id.fs) - 1));
	file_name(id.name, e);
	HASH_FIND(hh, s->files, &id, sizeof(id), file);
	if (file) {
		file->refs++;
		return file;
	}
	if (s->room_max && s->room + sizeof(*file) > s->room_max)
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->nr = s->nfiles++;
	file->refs = 1;
	file->id = id;
	HASH_ADD(hh, s->files, id, sizeof(id), file);
	if (!HASH_ADDED(hh, file)) {
		free(file);
		return NULL;
	}
	s->room += sizeof(*file);
	return file;
}

/* ---- Sleeps ------------------------------------------------------------------------------------- */

static size_t stack_size(uint32_t n)
{
	return sizeof(struct sched_stack) + n * sizeof(uint64_t);
}

static void stack_put(struct sched *s, struct sched_stack *stack)
{
	if (stack)
		s->room -= stack_size(stack->n);
	free(stack);
}

static void forget_first(struct sched *s, struct sched_thread *t)
{
	const struct sched_sleep *first = sleep_at(t, t->sleeps.first);

	t->sleeps_forgot_ns = first->start_ns;
	file_put(s, first->file);
	stack_put(s, first->stack);
	t->sleeps.first++;
}

static void sleep_ended(struct sched_sleep *sleep, const struct scope_ev_woken *e)
{
	if (e->asleep || sleep->by_tgid)
		return;
	sleep->by_tgid = e->by_tgid;
	comm_copy(sleep->by_comm, e->by_comm);
}

void sleeps__add(struct sched *s, struct sched_thread *t, const struct sched_slice *slice,
		 const struct scope_ev_woken *e)
{
	/* Not where it was stopped, amid whatever call. */
	bool in_call = slice->why == e->call || slice->why == SCOPE_WHY_IO ||
		       slice->why == SCOPE_WHY_OTHER;
	struct sched_sleep *sleep;

	sleep = t->sleeps.end > t->sleeps.first ? sleep_at(t, t->sleeps.end - 1) : NULL;
	if (sleep &&
	    sleep->start_ns == e->since_ns) { /* told already, maybe when nobody had ended it */
		if (e->call == SCOPE_WHY_FROZEN && !e->asleep) {
			file_put(s, sleep->file);
			sleep->file = NULL;
		}
		sleep_ended(sleep, e);
		return;
	}
	if (t->sleeps.size && t->sleeps.end - t->sleeps.first == t->sleeps.size &&
	    !ring_grows(s, t->sleeps.size, sizeof(*sleep), SCHED_SLEEPS_MAX))
		forget_first(s, t);
	if (!RING_ROOM(s, &t->sleeps, SCHED_SLEEPS_MAX))
		return;
	sleep = sleep_at(t, t->sleeps.end++);
	*sleep = (struct sched_sleep){
		.start_ns = e->since_ns, .call = e->call, .file = in_call ? file_get(s, e) : NULL};
	sleep_ended(sleep, e);
}

void sleeps__stack(struct sched *s, struct sched_thread *t, const struct scope_ev_stack *e)
{
	uint32_t n = e->n < SCOPE_STACK_LEN ? e->n : SCOPE_STACK_LEN;
	struct sched_sleep *sleep;
	struct sched_stack *stack;

	sleep = t->sleeps.end > t->sleeps.first ? sleep_at(t, t->sleeps.end - 1) : NULL;
	if (!sleep || sleep->start_ns != e->since_ns || sleep->stack || !n ||
	    (s->room_max && s->room + stack_size(n) > s->room_max))
		return;
	stack = malloc(stack_size(n));
	if (!stack)
		return;
	stack->n = n;
	memcpy(stack->at, e->at, n * sizeof(e->at[0]));
	s->room += stack_size(n);
	sleep->stack = stack;
}

static bool begins_later(const void *thread, uint64_t i, uint64_t ns)
{
	return sleep_at(thread, i)->start_ns > ns;
}

const struct sched_sleep *sleeps__of(const struct sched_thread *t, const struct sched_slice *slice)
{
	uint64_t n;

	if (t->sleeps.first == t->sleeps.end)
		return NULL;
	n = search_later(t->sleeps.first, t->sleeps.end, begins_later, t, slice->start_ns);
	if (n == t->sleeps.first || sleep_at(t, n - 1)->start_ns != slice->start_ns)
		return NULL;
	return sleep_at(t, n - 1);
}

bool sleeps__known_since(const struct sched_thread *t, uint64_t ns)
{
	return !t->sleeps.first || ns > t->sleeps_forgot_ns;
}

void sleeps__prune(struct sched *s, struct sched_thread *t, uint64_t ns)
{
	while (t->sleeps.first < t->sleeps.end && sleep_at(t, t->sleeps.first)->start_ns < ns)
		forget_first(s, t);
	RING_SHRINK(s, &t->sleeps);
}

void sleeps__forget_files(struct sched *s)
{
	struct sched_file *file, *tmp;

	HASH_ITER (hh, s->files, file, tmp) {
		HASH_DEL(s->files, file);
		file->hh.tbl = NULL;
	}
}

void sleeps__free(struct sched *s, struct sched_thread *t)
{
	while (t->sleeps.first < t->sleeps.end)
		forget_first(s, t);
	s->room -= t->sleeps.size * sizeof(*t->sleeps.at);
	free(t->sleeps.at);
	t->sleeps = (struct sched_sleeps){0};
}
