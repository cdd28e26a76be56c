// SPDX-License-Identifier: BSD-2-Clause
/*
 * The files of a report, read side by side: always on with the one that is behind, so that the parts that ranks
 * have in an operation come one soon after the other, and only what is open need be kept. A file that cat
 * made of several is several.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "clock.h"
#include "lines.h"
#include "log.h"
#include "progress.h"
#include "report_read.h"
#include "zst.h"

#define BUFFER	    (64 << 10)
#define STREAMS_MAX 4096 /* pieces of files; a file's last one takes what is beyond */
#define OPEN_MAX    256	 /* read side by side */
#define STEP_NS	    INT64_C(20000000)
#define STEP_BYTES  (1 << 20)

/* A piece of a file, from one header to the next. */
struct stream {
	char *path;
	off_t at, end; /* end: -1 unknown */
	int fd;
	struct zst_text text; /* of what is read from one end to the other */
	char *buf;	      /* owned */
	size_t len, cap;
	bool eof, too_long;
	struct report_reader *reader;
};

struct files {
	struct report *r;
	struct json_doc doc;
	struct stream *streams;
	uint32_t n;
	uint64_t began_ns;
	struct progress progress;
};

static void say_error(const struct files *f, const char *path, int err)
{
	if (!f->r->opt.brief && !f->r->opt.silent)
		pr_err("Failed to read '%s': %s\n", path, zst_text__error(err));
}

/* ---- Pieces --------------------------------------------------------------------------------------------- */

static int add_stream(struct files *f, const char *path, off_t at, off_t end)
{
	struct stream *s = reallocarray(f->streams, f->n + 1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	f->streams = s;
	s += f->n;
	memset(s, 0, sizeof(*s));
	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	s->at = at;
	s->end = end;
	s->fd = -1;
	f->n++;
	if (end >= 0)
		f->r->totals.total_bytes += (uint64_t)(end - at);
	return 0;
}

/* Each header in buf begins a piece; @from: where the one before began. */
static int split_at(struct files *f, const char *path, const char *buf, size_t len, off_t buf_at,
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
static int split(struct files *f, const char *path, int fd, off_t size)
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
static int open_flags(const struct files *f)
{
	return O_RDONLY | O_CLOEXEC | (f->r->opt.brief ? O_NOFOLLOW | O_NONBLOCK : 0);
}

/* Of such a file the text has no places: it is one piece, to be read from one end to the other. */
static bool is_compressed(int fd)
{
	char magic[4];
	ssize_t n = pread(fd, magic, sizeof(magic), 0);

	return n > 0 && zst_is_stream(magic, (size_t)n);
}

static int add_file(void *to, const char *path)
{
	struct files *f = to;
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, open_flags(f)), err;
	struct stat st;

	f->r->totals.files++;
	if (fd < 0 || fstat(fd, &st))
		err = -errno;
	else if (f->r->opt.brief) /* one header, and no time to look for more */
		err = S_ISREG(st.st_mode)
			      ? add_stream(f, path, 0, is_compressed(fd) ? -1 : st.st_size)
			      : -ESTALE;
	else if (S_ISREG(st.st_mode) && !is_stdin && !is_compressed(fd))
		err = split(f, path, fd, st.st_size);
	else
		err = add_stream(f, path, 0, -1);
	if (fd >= 0 && !is_stdin)
		close(fd);
	if (err)
		say_error(f, path, err);
	return err;
}

/* ---- Lines ---------------------------------------------------------------------------------------------- */

static void close_stream(struct stream *s)
{
	report_reader__free(s->reader);
	s->reader = NULL;
	zst_text__end(&s->text);
	if (s->fd > STDIN_FILENO)
		close(s->fd);
	s->fd = -1;
	free(s->buf);
	s->buf = NULL;
	s->eof = true;
}

static int open_stream(struct files *f, struct stream *s)
{
	s->fd = strcmp(s->path, "-") ? open(s->path, open_flags(f)) : STDIN_FILENO;
	if (s->fd < 0)
		return -errno;
	s->cap = BUFFER;
	s->buf = malloc(s->cap);
	s->reader = report_reader__new(f->r, &f->doc, s->path);
	return s->buf && s->reader ? 0 : -ENOMEM;
}

static void lines_of(struct files *f, struct stream *s)
{
	char *at = s->buf, *end = s->buf + s->len, *nl;

	while (!f->r->err && (nl = memchr(at, '\n', (size_t)(end - at)))) {
		if (s->too_long)
			s->too_long = false;
		else if (nl - at > JSON_MAX_LINE)
			f->r->totals.skipped++;
		else if (nl > at)
			report_reader__line(s->reader, at, (size_t)(nl - at), true);
		at = nl + 1;
	}
	s->len = (size_t)(end - at);
	memmove(s->buf, at, s->len);
	if (s->len > JSON_MAX_LINE) {
		f->r->totals.skipped += !s->too_long;
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
static int read_some(struct files *f, struct stream *s)
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
	f->r->totals.bytes += (uint64_t)n;
	if (n) {
		lines_of(f, s);
		return 0;
	}
	/* a newline may be missing behind a whole record, where cat has put a header */
	if (s->len && !s->too_long)
		report_reader__line(s->reader, s->buf, s->len, false);
	close_stream(s);
	return 0;
}

/* ---- Side by side --------------------------------------------------------------------------------------- */

/* The stream that is behind the others; @next: how far that is which is behind next. */
static struct stream *behind(struct files *f, int64_t *next, int *err)
{
	struct stream *s, *least = NULL;
	int64_t now, least_ns = INT64_MAX;
	uint32_t i, open = 0;

	*next = INT64_MAX;
	for (i = 0; i < f->n && open < OPEN_MAX; i++) {
		s = &f->streams[i];
		if (s->eof)
			continue;
		if (!s->reader) {
			*err = open_stream(f, s);
			if (*err)
				return s;
		}
		open++;
		now = report_reader__now(s->reader);
		if (!least || now < least_ns) {
			*next = least ? least_ns : *next;
			least = s;
			least_ns = now;
		} else if (now < *next) {
			*next = now;
		}
	}
	return least;
}

static bool out_of_time(struct files *f)
{
	int64_t limit = f->r->opt.limit_ns;

	if (!limit || (int64_t)(monotonic_ns() - f->began_ns) < limit)
		return false;
	f->r->totals.cut = true;
	return true;
}

/* Up to where the next one is, and a bit further. */
static int advance(struct files *f, struct stream *s, int64_t next)
{
	uint64_t from = f->r->totals.bytes;
	int err = 0;

	do {
		err = read_some(f, s);
		progress__show(&f->progress, f->r->totals.bytes, f->r->totals.total_bytes);
	} while (!err && !s->eof && !f->r->err && f->r->totals.bytes - from < STEP_BYTES &&
		 (next == INT64_MAX || report_reader__now(s->reader) < next + STEP_NS));
	return err;
}

static int read_all(struct files *f)
{
	int64_t next, floor = INT64_MIN;
	int err = 0, first = 0;
	struct stream *s;

	while (!f->r->err && !out_of_time(f) && (s = behind(f, &next, &err))) {
		if (!err) {
			if (report_reader__now(s->reader) > floor) {
				floor = report_reader__now(s->reader);
				report_expire(f->r, floor);
			}
			err = advance(f, s, next);
		}
		if (!err)
			continue;
		say_error(f, s->path, err);
		close_stream(s);
		first = first ?: err;
		err = 0;
	}
	progress__end(&f->progress);
	return first;
}

int report_read(struct report *r, char *const *paths)
{
	struct files f = {.r = r, .began_ns = monotonic_ns()};
	int err = json_doc__init(&f.doc), one;
	uint32_t i;

	for (; f.doc.nodes && *paths; paths++) {
		one = r->opt.brief ? add_file(&f, *paths)
				   : lines_visit(*paths, false, add_file, &f);
		err = one ? one : err;
	}
	if (!r->opt.brief)
		progress__begin(&f.progress, "Reading");
	one = f.doc.nodes ? read_all(&f) : 0;
	err = one ? one : err;
	for (i = 0; i < f.n; i++) {
		close_stream(&f.streams[i]);
		free(f.streams[i].path);
	}
	free(f.streams);
	json_doc__free(&f.doc);
	return r->err ? r->err : err;
}
