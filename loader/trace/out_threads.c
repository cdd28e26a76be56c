// SPDX-License-Identifier: BSD-2-Clause
/* Threads that write; see out_threads.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "out_threads.h"
#include "thread.h"

#define BATCHES	 8	    /* that a thread may have: while it writes one, the next are made */
#define CAP_KEPT (96 << 10) /* a buffer that a long line has made larger is not kept */

/* Batches are numbered: up to `back` accounted, up to `written` in their files, up to `filled` handed over. */
struct out_writer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	struct out_batch
		batches[BATCHES]; /* from `written` to `filled` the thread's, else the owner's */
	uint32_t back;		  /* the owner's */
	uint32_t written, filled; /* under the lock */
	bool ends;		  /* likewise */
};

struct out_threads {
	uint32_t n, next;
	struct out_writer writers[];
};

/* ---- The thread ---------------------------------------------------------------------------------- */

static void *writer_main(void *arg)
{
	struct out_writer *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (w->written == w->filled && !w->ends)
			pthread_cond_wait(&w->more, &w->lock);
		if (w->written == w->filled)
			break;
		pthread_mutex_unlock(&w->lock);
		out_batch__write(&w->batches[w->written % BATCHES]);
		pthread_mutex_lock(&w->lock);
		w->written++;
		pthread_cond_signal(&w->done);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- The owner ----------------------------------------------------------------------------------- */

/* Waits until less than `n` batches are the thread's. How many it has written so far. */
static uint32_t wait_for(struct out_writer *w, uint32_t n)
{
	uint32_t written;

	pthread_mutex_lock(&w->lock);
	while (w->filled - w->written >= n)
		pthread_cond_wait(&w->done, &w->lock);
	written = w->written;
	pthread_mutex_unlock(&w->lock);
	return written;
}

static void account(struct out_writer *w, uint32_t written)
{
	struct out_batch *batch;

	for (; w->back != written; w->back++) {
		batch = &w->batches[w->back % BATCHES];
		out_batch__account(batch);
		batch->file->in_flight--;
		if (batch->cap > CAP_KEPT) {
			free(batch->buf);
			batch->buf = NULL;
			batch->cap = 0;
		}
	}
}

void out_writer__put(struct out_writer *w, struct out_batch *batch)
{
	struct out_batch *slot, empty;

	account(w, wait_for(w, BATCHES));
	slot = &w->batches[w->filled % BATCHES];
	empty = *slot;
	*slot = *batch;
	batch->buf = empty.buf;
	batch->cap = empty.cap;
	slot->file->in_flight++;
	pthread_mutex_lock(&w->lock);
	w->filled++;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
}

void out_writer__settle(struct out_writer *w, const struct out_file *file)
{
	while (file->in_flight)
		account(w, wait_for(w, w->filled - w->back));
}

/* ---- All of them ----------------------------------------------------------------------------------- */

static void writer_free(struct out_writer *w)
{
	uint32_t i;

	for (i = 0; i < BATCHES; i++)
		free(w->batches[i].buf);
	pthread_cond_destroy(&w->done);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
}

/* 0 or -errno. */
static int writer_start(struct out_writer *w)
{
	int err;

	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	pthread_cond_init(&w->done, NULL);
	err = thread__start(&w->thread, writer_main, w, "ncclscope-write");
	if (err)
		writer_free(w);
	return err;
}

static void writer_end(struct out_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	writer_free(w);
}

struct out_threads *out_threads__new(uint32_t n)
{
	struct out_threads *t;
	int err = 0;

	if (n > OUT_THREADS_MAX)
		n = OUT_THREADS_MAX;
	t = n ? calloc(1, sizeof(*t) + n * sizeof(t->writers[0])) : NULL;
	if (!t)
		return NULL;
	while (t->n < n && !(err = writer_start(&t->writers[t->n])))
		t->n++;
	if (err)
		pr_warn("Failed to start thread %u of %u that write: %s, continuing with %u\n",
			t->n + 1, n, strerror(-err), t->n);
	if (t->n)
		return t;
	free(t);
	return NULL;
}

void out_threads__free(struct out_threads *t)
{
	uint32_t i;

	for (i = 0; t && i < t->n; i++)
		writer_end(&t->writers[i]);
	free(t);
}

struct out_writer *out_threads__next(struct out_threads *t)
{
	return t ? &t->writers[t->next++ % t->n] : NULL;
}
