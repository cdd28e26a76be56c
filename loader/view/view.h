/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of `ncclscope view`: view.c is the command, view_read.c makes whole lines of the inputs,
 * view_page.c writes the page: what viewer/ has, and behind it blocks of compressed data.
 */
#ifndef NCCLSCOPE_VIEW_H
#define NCCLSCOPE_VIEW_H

#include <stddef.h>
#include <stdint.h>
#include "output.h"

/* ---- The page ------------------------------------------------------------------------------------ */

struct view_page;

/* To @to, which stays the caller's. NULL: no memory. */
struct view_page *view_page__new(const struct output *to);
/* The part that is the same for all traces. Like the others: 0 or -errno. */
int view_page__begin(struct view_page *p);
/* A block of data; @kind is "report" or "trace", @name that of the file that begins with it, or NULL. */
int view_page__open(struct view_page *p, const char *kind, const char *name);
int view_page__put(struct view_page *p, const void *data, size_t len);
int view_page__close(struct view_page *p);
int view_page__end(struct view_page *p);
void view_page__free(struct view_page *p); /* NULL is fine */

/* ---- The inputs ------------------------------------------------------------------------------------ */

struct view_input {
	char *path;  /* to be opened, more than once; owned */
	char *name;  /* for the page; owned */
	char *given; /* as it was named, for messages; owned */
	int spool;   /* a copy of what cannot be read twice; -1: none */
};

struct view_inputs {
	struct view_input *list;
	size_t n;
	uint64_t bytes; /* of all files, as they are stored */
};

/* A file, a directory or "-". Says itself what cannot be read. 0 or -errno. */
int view_inputs__add(struct view_inputs *in, const char *path);
/* All of @in, as blocks of whole lines. Says itself what cannot be read; -EIO and the like of the page do not. */
int view_inputs__read(const struct view_inputs *in, struct view_page *page, int *page_err);
void view_inputs__free(struct view_inputs *in);

#endif
