// SPDX-License-Identifier: BSD-2-Clause
/*
 * Side by side: always on with the stream that is behind, by what its reader says of how far it has come. See streams.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check_json.h"
#include "clock.h"
#include "heap.h"
#include "lines.h"
#include "log.h"
#include "progress.h"
#include "streams.h"
#include "zst.h"

#define BUFFER	    (64 << 10) /* of each that is open; a quarter where there are many */
#define STREAMS_MAX 4096       /* pieces of files; a file's last one takes what is beyond */
#define MANY	    256
#define STEP_NS	    INT64_C(20000000)
#define STEP_BYTES  (1 << 20)

struct stream {
	char *path;
	off_t begin, at, end; /* end: -1 unknown */
	dev_t dev;	      /* with ino: which file it was when it was added */
	ino_t ino;
	int fd;
	struct zst_text text; /* of what is read from one end to the other */
	char *buf;	      /* owned */
	size_t len, cap;
	bool eof, too_long;
	void *reader;
	int64_t now; /* how far its reader has come, when it was last asked */
};

struct streams {
	struct streams_options opt;
	struct streams_totals totals;
	struct stream *list;
	uint32_t n;
	uint32_t open_max; /* read side by side */
	/* while they are read */
	struct heap
		open; /* owned: who is behind is first. Not in it: the one that is read just now */
	uint32_t opened; /* so many of the list have been */
	const struct streams_ops *ops;
	void *to;
	uint64_t began_ns;
	struct progress progress;
	int err; /* of a reader: ends the reading */
};

static void say_error(const struct streams *f, const char *path, int err)
{
	if (!f->opt.brief && !f->opt.silent)
		pr_err("Failed to read '%s': %s\n", path,
		       err == -ESPIPE	? "it has to be a file: it is read more than once"
		       : err == -ESTALE ? "another file has its name now"
					: zst_text__error(err));
}

/* ---- Pieces --------------------------------------------------------------------------------------------- */

static int add_stream(struct streams *f, const char *path, off_t at, off_t end)
{
	struct stream *s = reallocarray(f->list, f->n + 1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	f->list = s;
	s += f->n;
	memset(s, 0, sizeof(*s));
	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	s->begin = at;
	s->end = end;
	s->fd = -1;
	f->n++;
	return 0;
}

/* Each header in buf begins a piece; @from: where the one before began. */
static int split_at(struct streams *f, const char *path, const char *buf, size_t len, off_t buf_at,
		    off_t *from)
{
	static const char begin[] = "{\"recordType\":\"header\"";
	const char *hit = buf;
	int err = 0;

	while (!err && f->n < STREAMS_MAX &&
	       (hit = memmem(hit, len - (size_t)(hit - buf), begin, sizeof(begin) - 1))) {
		off_t off = buf_at + (hit - buf);

		if (off > *from)
			err = add_stream(f, path, *from, off);
		*from = off;
		hit++;
	}
	return err;
}

/* No text within a record can look like the beginning of a header: its quotes would be escaped. */
static int split(struct streams *f, const char *path, int fd, off_t size)
{
	const size_t chunk = 1 << 20, over = 20; /* less than what is looked for */
	char *buf = malloc(chunk + over);
	off_t at = 0, from = 0;
	size_t kept = 0, len;
	int err = buf ? 0 : -ENOMEM;
	ssize_t n;

	while (!err && at < size && (n = pread(fd, buf + kept, chunk, at)) > 0) {
		len = kept + (size_t)n;
		err = split_at(f, path, buf, len, at - (off_t)kept, &from);
		kept = len < over ? len : over;
		memmove(buf, buf + len - kept, kept);
		at += n;
	}
	free(buf);
	return err ? err : add_stream(f, path, from, size);
}

/* After a recording we may be root, and the files lie where the job's user can put others in their place. */
static int open_flags(const struct streams *f)
{
	return O_RDONLY | O_CLOEXEC | (f->opt.brief ? O_NOFOLLOW | O_NONBLOCK : 0);
}

/* What kind of file it is decides into which pieces it is read. */
static int add_opened(struct streams *f, const char *path, int fd)
{
	struct stat st;
	bool regular;
	int err;

	if (fstat(fd, &st))
		return -errno;
	regular = S_ISREG(st.st_mode);
	if (f->opt.brief) /* one header, and no time to look for more */
		return regular ? add_stream(f, path, 0, zst_file_is_stream(fd) ? -1 : st.st_size)
			       : -ESTALE;
	if (f->opt.again && (!regular || fd == STDIN_FILENO))
		return -ESPIPE;
	err = regular ? zst_file_refuse(fd) : 0;
	if (err)
		return err;
	/* of what is compressed the text has no places: it is one piece, to be read from one end to the other */
	if (regular && fd != STDIN_FILENO && !zst_file_is_stream(fd))
		return split(f, path, fd, st.st_size);
	return add_stream(f, path, 0, -1);
}

/* Another file may have its name when it is opened again. */
static void note_file(struct streams *f, uint32_t from, int fd)
{
	struct stat st;

	for (; from < f->n && !fstat(fd, &st); from++) {
		f->list[from].dev = st.st_dev;
		f->list[from].ino = st.st_ino;
	}
}

static int add_file(void *to, const char *path)
{
	struct streams *f = to;
	uint32_t from = f->n;
	struct stat st;
	int fd, err;

	f->totals.files++;
	/* before it is opened: that waits, of a pipe that has a name, for somebody who writes */
	if (f->opt.again && !stat(path, &st) && !S_ISREG(st.st_mode))
		fd = -1, errno = ESPIPE;
	else
		fd = strcmp(path, "-") ? open(path, open_flags(f)) : STDIN_FILENO;
	err = fd < 0 ? -errno : add_opened(f, path, fd);
	note_file(f, from, fd);
	if (fd > STDIN_FILENO)
		close(fd);
	if (err)
		say_error(f, path, err);
	return err;
}

/* ---- Lines ---------------------------------------------------------------------------------------------- */

static void close_stream(struct streams *f, struct stream *s)
{
	if (s->reader)
		f->ops->end(s->reader);
	s->reader = NULL;
	zst_text__end(&s->text);
	if (s->fd > STDIN_FILENO)
		close(s->fd);
	s->fd = -1;
	free(s->buf);
	s->buf = NULL;
	s->eof = true;
}

static int open_stream(struct streams *f, struct stream *s)
{
	struct stat st;

	s->fd = strcmp(s->path, "-") ? open(s->path, open_flags(f)) : STDIN_FILENO;
	if (s->fd < 0)
		return -errno;
	if (fstat(s->fd, &st) || st.st_dev != s->dev || st.st_ino != s->ino)
		return -ESTALE;
	s->at = s->begin;
	s->len = 0;
	s->too_long = false;
	s->cap = f->n > MANY ? BUFFER / 4 : BUFFER;
	s->buf = malloc(s->cap);
	s->reader = f->ops->begin(f->to, s->path, (uint32_t)(s - f->list));
	return s->buf && s->reader ? 0 : -ENOMEM;
}

static void lines_of(struct streams *f, struct stream *s)
{
	char *at = s->buf, *end = s->buf + s->len, *nl;

	while (!f->err && (nl = memchr(at, '\n', (size_t)(end - at)))) {
		if (s->too_long)
			s->too_long = false;
		else if (nl - at > JSON_MAX_LINE)
			f->totals.too_long++;
		else if (nl > at)
			f->err = f->ops->line(s->reader, at, (size_t)(nl - at), true);
		at = nl + 1;
	}
	s->len = (size_t)(end - at);
	memmove(s->buf, at, s->len);
	if (s->len > JSON_MAX_LINE) {
		f->totals.too_long += !s->too_long;
		s->too_long = true;
	}
	if (s->too_long)
		s->len = 0;
}

/* A line longer than the buffer: have more of it, up to the limit. */
static int make_room(struct stream *s)
{
	size_t cap = s->cap ? s->cap * 2 : BUFFER;
	char *buf;

	if (s->len < s->cap)
		return 0;
	buf = realloc(s->buf, cap);
	if (!buf)
		return -ENOMEM;
	s->buf = buf;
	s->cap = cap;
	return 0;
}

/* As zst_text__read(); a piece of a file is no compressed one's. */
static ssize_t read_text(struct stream *s, size_t want)
{
	ssize_t n;

	if (s->end < 0)
		return zst_text__read(&s->text, s->fd, s->buf + s->len, want);
	do {
		n = pread(s->fd, s->buf + s->len, want, s->at);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* One more piece of the stream; 0 or -errno. */
static int read_some(struct streams *f, struct stream *s)
{
	int err = make_room(s);
	size_t want = s->cap - s->len;
	ssize_t n;

	if (err)
		return err;
	if (s->end >= 0 && (off_t)want > s->end - s->at)
		want = (size_t)(s->end - s->at);
	n = read_text(s, want);
	if (n < 0)
		return (int)n;
	s->at += n;
	s->len += (size_t)n;
	f->totals.bytes += (uint64_t)n;
	if (n) {
		lines_of(f, s);
		return 0;
	}
	/* a newline may be missing behind a whole record, where cat has put a header */
	if (s->len && !s->too_long)
		f->err = f->ops->line(s->reader, s->buf, s->len, false);
	close_stream(f, s);
	return 0;
}

/* ---- Side by side --------------------------------------------------------------------------------------- */

static int64_t now_of(const struct streams *f, const struct stream *s)
{
	return f->ops->now ? f->ops->now(s->reader) : 0;
}

static bool is_behind(const void *pa, const void *pb)
{
	const struct stream *a = pa, *b = pb;

	return a->now != b->now ? a->now < b->now : a < b;
}

/* It goes on when it is its turn. A reader comes no further but by its own lines, so how far it is holds until then. */
static int put_back(struct streams *f, struct stream *s)
{
	s->now = now_of(f, s);
	return heap__push(&f->open, s, is_behind);
}

/* The stream that is behind the others; @next: how far that is which is behind next. */
static struct stream *behind(struct streams *f, int64_t *next, int *err)
{
	uint32_t max = f->ops->now ? f->open_max : 1;
	struct stream *s;

	while (f->open.n < max && f->opened < f->n) {
		s = &f->list[f->opened++];
		*err = open_stream(f, s);
		if (!*err)
			*err = put_back(f, s);
		if (*err)
			return s;
	}
	if (!f->open.n)
		return NULL;
	s = heap__pop(&f->open, is_behind);
	*next = f->open.n ? ((const struct stream *)f->open.at[0])->now : INT64_MAX;
	return s;
}

static bool out_of_time(struct streams *f)
{
	int64_t limit = f->opt.limit_ns;

	if (!limit || (int64_t)(monotonic_ns() - f->began_ns) < limit)
		return false;
	f->totals.cut = true;
	return true;
}

/* Up to where the next one is, and a bit further. */
static int advance(struct streams *f, struct stream *s, int64_t next)
{
	uint64_t from = f->totals.bytes;
	int err = 0;

	do {
		err = read_some(f, s);
		progress__show(&f->progress, f->totals.bytes, f->totals.total_bytes);
	} while (!err && !s->eof && !f->err && f->totals.bytes - from < STEP_BYTES &&
		 (next == INT64_MAX || now_of(f, s) < next + STEP_NS));
	return err;
}

static void tell_floor(struct streams *f, const struct stream *s, int64_t *floor)
{
	int64_t now = now_of(f, s);

	if (now <= *floor)
		return;
	*floor = now;
	if (f->ops->floor)
		f->ops->floor(f->to, now);
}

static int read_all(struct streams *f)
{
	int64_t next, floor = INT64_MIN;
	int err = 0, first = 0;
	struct stream *s;

	while (!f->err && !out_of_time(f) && (s = behind(f, &next, &err))) {
		if (!err) {
			tell_floor(f, s, &floor);
			err = advance(f, s, next);
		}
		if (!err && !s->eof)
			err = put_back(f, s);
		if (!err)
			continue;
		say_error(f, s->path, err);
		close_stream(f, s);
		first = first ?: err;
		err = 0;
	}
	return f->err ?: first;
}

/* ---- From outside ----------------------------------------------------------------------------------------- */

/* As many as we may have; the rest of the program has few. */
static uint32_t may_open(void)
{
	struct rlimit files = {0};
	const rlim_t few = 64;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return few;
	if (files.rlim_cur < files.rlim_max && files.rlim_cur < STREAMS_MAX + few) {
		files.rlim_cur =
			files.rlim_max < STREAMS_MAX + few ? files.rlim_max : STREAMS_MAX + few;
		setrlimit(RLIMIT_NOFILE, &files);
		getrlimit(RLIMIT_NOFILE, &files);
	}
	return files.rlim_cur > 2 * few ? (uint32_t)(files.rlim_cur - few) : (uint32_t)few;
}

struct streams *streams__new(char *const *paths, const struct streams_options *opt, int *err)
{
	struct streams *f = calloc(1, sizeof(*f));
	int one;

	*err = 0;
	if (!f)
		return NULL;
	f->opt = *opt;
	f->open_max = may_open();
	for (; *paths; paths++) {
		one = opt->brief ? add_file(f, *paths) : lines_visit(*paths, false, add_file, f);
		*err = one ? one : *err;
	}
	return f;
}

static void rewind_all(struct streams *f)
{
	struct stream *s;

	f->err = 0;
	f->open.n = 0;
	f->opened = 0;
	f->totals = (struct streams_totals){.files = f->totals.files};
	for (s = f->list; s < f->list + f->n; s++) {
		s->eof = false;
		if (s->end >= 0)
			f->totals.total_bytes += (uint64_t)(s->end - s->begin);
	}
}

int streams__read(struct streams *f, const struct streams_ops *ops, void *to)
{
	uint32_t i;
	int err;

	f->ops = ops;
	f->to = to;
	f->began_ns = monotonic_ns();
	rewind_all(f);
	if (ops->now && f->n > f->open_max)
		pr_warn("Of %u pieces of traces only %u can be open at a time (ulimit -n): some of "
			"what "
			"belongs together may not be found\n",
			f->n, f->open_max);
	f->progress = (struct progress){0};
	if (ops->what)
		progress__begin(&f->progress, ops->what);
	err = read_all(f);
	progress__end(&f->progress);
	for (i = 0; i < f->n; i++)
		close_stream(f, &f->list[i]);
	return err;
}

const struct streams_totals *streams__totals(const struct streams *f)
{
	return &f->totals;
}

void streams__free(struct streams *f)
{
	uint32_t i;

	if (!f)
		return;
	for (i = 0; i < f->n; i++)
		free(f->list[i].path);
	free(f->list);
	free(f->open.at);
	free(f);
}
