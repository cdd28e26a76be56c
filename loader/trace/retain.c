// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which traces stay on the disk; see retain.h. We are root, and a directory of traces may be somebody else's: the way to it is gone
 * as when they were made, and what is there under a trace's name by now is looked at before it is deleted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hash.h"
#include "log.h"
#include "out.h"
#include "retain.h"

#define BLOCK_BYTES 4096 /* what a file takes of the disk at least, and in steps of */

struct inode {
	uint64_t dev, ino;
};

struct trace_file {
	struct trace_file *next;
	struct recording *rec;
	struct inode inode;
	uint64_t bytes;	  /* when it was whole */
	const char *name; /* in path, behind the directory */
	UT_hash_handle hh;
	char path[];
};

struct recording {
	struct recording *next; /* younger */
	struct trace_file *files;
	uint64_t bytes;
	uint32_t nfiles;
};

/* Where the files of a recording are: mostly all in one. */
struct place {
	int fd; /* -1: none */
	bool links;
	uid_t uid;
	char *path; /* owned */
};

struct retain {
	uint64_t max_bytes, bytes;
	uint32_t max_files, nfiles;
	bool own_dirs;
	struct recording *now, *oldest, *newest; /* newest: of those that have ended */
	struct trace_file *files;		 /* of all, by inode */
	struct retain_deleted deleted;
};

static void file_free(struct retain *r, struct trace_file *f)
{
	HASH_DEL(r->files, f);
	free(f);
}

static void recording_free(struct retain *r, struct recording *rec)
{
	struct trace_file *f, *next;

	for (f = rec ? rec->files : NULL; f; f = next) {
		next = f->next;
		file_free(r, f);
	}
	free(rec);
}

struct retain *retain__new(uint64_t max_bytes, uint32_t max_files, bool own_dirs)
{
	struct retain *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->max_bytes = max_bytes;
	r->max_files = max_files;
	r->own_dirs = own_dirs;
	return r;
}

void retain__free(struct retain *r)
{
	struct recording *rec, *next;

	if (!r)
		return;
	recording_free(r, r->now);
	for (rec = r->oldest; rec; rec = next) {
		next = rec->next;
		recording_free(r, rec);
	}
	free(r);
}

/* Whoever had the inode of a file that has just been made is gone, and no file of ours any more. */
static void inode_taken(struct retain *r, const struct inode *inode)
{
	struct trace_file **at, *f;
	struct recording *rec;

	HASH_FIND(hh, r->files, inode, sizeof(*inode), f);
	if (!f)
		return;
	rec = f->rec;
	for (at = &rec->files; *at != f; at = &(*at)->next)
		;
	*at = f->next;
	if (rec != r->now) { /* of that one nothing has been counted */
		rec->bytes -= f->bytes;
		rec->nfiles--;
		r->bytes -= f->bytes;
		r->nfiles--;
	}
	file_free(r, f);
}

void retain__add(struct retain *r, const char *path, int fd)
{
	size_t len = strlen(path) + 1;
	struct trace_file *f = NULL;
	const char *slash;
	struct stat st;

	if (!r->now)
		r->now = calloc(1, sizeof(*r->now));
	if (r->now && !fstat(fd, &st) && st.st_nlink)
		f = calloc(1, sizeof(*f) + len);
	if (!f)
		return; /* it stays on the disk */
	f->inode = (struct inode){st.st_dev, st.st_ino};
	inode_taken(r, &f->inode);
	HASH_ADD(hh, r->files, inode, sizeof(f->inode), f);
	if (!HASH_ADDED(hh, f)) {
		free(f);
		return;
	}
	memcpy(f->path, path, len);
	slash = strrchr(f->path, '/');
	f->name = slash ? slash + 1 : f->path;
	f->rec = r->now;
	f->next = r->now->files;
	r->now->files = f;
}

/* ---- On the disk ------------------------------------------------------------------------------- */

static void place_leave(struct place *at)
{
	if (at->fd >= 0)
		close(at->fd);
	free(at->path);
	at->fd = -1;
	at->path = NULL;
}

static int place_enter(struct place *at, const struct trace_file *f)
{
	size_t len = (size_t)(f->name - f->path);

	int err;

	if (at->path && strlen(at->path) == len && !memcmp(at->path, f->path, len))
		return 0;
	place_leave(at);
	at->path = strndup(f->path, len);
	if (!at->path)
		return -ENOMEM;
	at->fd = out_dir_find(len ? at->path : ".", at->links, at->uid);
	if (at->fd >= 0)
		return 0;
	err = at->fd;
	place_leave(at);
	return err;
}

/* 0: f is still there, under its name, and takes *bytes of the disk; -ENOENT: it is not; else nobody can tell now. */
static int look(struct place *at, const struct trace_file *f, uint64_t *bytes)
{
	struct stat st;
	int err = place_enter(at, f);

	if (!err && fstatat(at->fd, f->name, &st, AT_SYMLINK_NOFOLLOW))
		err = -errno;
	if (err)
		return err == -ENOTDIR ? -ENOENT : err;
	if (st.st_dev != f->inode.dev || st.st_ino != f->inode.ino)
		return -ENOENT;
	*bytes = ((uint64_t)st.st_size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	return 0;
}

/* What is there now; what somebody has taken away is none of ours any more. */
static void measure(struct retain *r, struct place *at, struct recording *rec)
{
	struct trace_file **at_file = &rec->files, *f;

	rec->bytes = rec->nfiles = 0;
	while ((f = *at_file)) {
		if (look(at, f, &f->bytes) == -ENOENT) {
			*at_file = f->next;
			file_free(r, f);
			continue;
		}
		rec->bytes += f->bytes;
		rec->nfiles++;
		at_file = &f->next;
	}
}

/* Recordings, or some of their files, may have been moved elsewhere: these take no room, and nothing is to go for them. */
static void measure_again(struct retain *r, struct place *at)
{
	struct recording **at_rec = &r->oldest, *rec;

	r->bytes = r->nfiles = 0;
	r->newest = NULL;
	while ((rec = *at_rec)) {
		measure(r, at, rec);
		if (!rec->nfiles) {
			*at_rec = rec->next;
			recording_free(r, rec);
			continue;
		}
		r->newest = rec;
		r->bytes += rec->bytes;
		r->nfiles += rec->nfiles;
		at_rec = &rec->next;
	}
}

static void delete_file(struct retain *r, struct place *at, const struct trace_file *f)
{
	uint64_t bytes;

	if (look(at, f, &bytes))
		return;
	if (unlinkat(at->fd, f->name, 0)) {
		pr_warn("Failed to delete '%s', which --keep has no room for: %s; it stays\n",
			f->path, strerror(errno));
		return;
	}
	r->deleted.files++;
	r->deleted.bytes += f->bytes;
	/* Of a job's own directory, where nothing is left in it: it says so itself. */
	if (r->own_dirs && *at->path)
		unlinkat(AT_FDCWD, at->path, AT_REMOVEDIR);
}

static bool is_over(const struct retain *r)
{
	return r->bytes > r->max_bytes || r->nfiles > r->max_files;
}

static void delete_oldest(struct retain *r, struct place *at)
{
	struct recording *rec = r->oldest;
	struct trace_file *f;

	for (f = rec->files; f; f = f->next)
		delete_file(r, at, f);
	r->bytes -= rec->bytes;
	r->nfiles -= rec->nfiles;
	r->deleted.recordings++;
	r->oldest = rec->next;
	recording_free(r, rec);
}

void retain__end_recording(struct retain *r, bool links, uid_t uid)
{
	struct place at = {.fd = -1, .links = links, .uid = uid};
	struct recording *rec = r->now;

	r->now = NULL;
	if (rec)
		measure(r, &at, rec);
	if (!rec || !rec->nfiles) { /* nobody ran: what was before is still the newest */
		recording_free(r, rec);
		place_leave(&at);
		return;
	}
	if (r->oldest)
		r->newest->next = rec;
	else
		r->oldest = rec;
	r->newest = rec;
	r->bytes += rec->bytes;
	r->nfiles += rec->nfiles;
	if (is_over(r))
		measure_again(r, &at);
	while (r->oldest != r->newest && is_over(r))
		delete_oldest(r, &at);
	place_leave(&at);
}

struct retain_deleted retain__deleted(const struct retain *r)
{
	return r->deleted;
}
