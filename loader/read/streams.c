// SPDX-License-Identifier: BSD-2-Clause
/*
 * Side by side: always on with the stream that is behind, by what its reader says of how far it has come. See streams.h.
 *
 * There may be more streams than descriptors. As many as may keep theirs; each of the others is opened when its text is used up, has a
 * piece of it read ahead, and is closed. Which ones keep theirs does not change: all have their turns, so whoever was read longest ago
 * comes next, and is the worst one to close.
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

#define BUFFER	    (64 << 10) /* of each; a quarter where there are many */
#define AHEAD	    (64 << 10) /* of what is closed in between: opening takes its time */
#define FIRST_BYTES (64 << 10) /* a header and the first time behind it */
#define STREAMS_MAX 4096       /* read side by side */
#define GAP_US	    2000000    /* those that begin nearer to each other are of one job or window, */
#define SPAN_US	    30000000   /* but not for longer: one may follow another without end */
#define PIECES_MAX  65536      /* of files; a file's last one takes what is beyond */
#define FILES_MAX   4096       /* descriptors */
#define FILES_REST  64	       /* for the rest of the program, which has few */
#define MANY	    256
#define STEP_NS	    INT64_C(20000000)
#define STEP_BYTES  (1 << 20)

struct stream {
	char *path;
	off_t begin, at, end; /* end: -1 unknown */
	dev_t dev;	      /* with ino: which file it was when it was added */
	ino_t ino;
	off_t size;	      /* and how large, at least */
	bool again;	      /* it can be opened again */
	int fd;		      /* -1: closed in between */
	off_t fd_at;	      /* where it was then; of what is read from one end to the other, */
	struct zst_text text; /* whose text this is */
	char *ahead;	      /* owned; of a piece: text from `at` on */
	size_t ahead_at, ahead_len;
	char *buf; /* owned */
	size_t len, cap;
	bool eof, too_long;
	bool told; /* what went wrong has been; read once more, it will again */
	void *reader;
	int64_t now;   /* how far its reader has come, when it was last asked */
	int64_t first; /* where it begins, in us of the real clock; 0: not known */
};

struct streams {
	struct streams_options opt;
	struct streams_totals totals;
	struct stream *list;
	uint32_t n, cap;
	struct stream **order; /* owned: who begins first; NULL: they are STREAMS_MAX at most */
	uint32_t files_max;    /* descriptors that are kept */
	uint32_t files;	       /* that there are */
	/* while they are read */
	struct heap
		begun; /* owned: who is behind is first. Not in it: the one that is read just now */
	uint32_t next; /* to begin */
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
		       : err == -EMFILE ? "more files would be open than may be: raise 'ulimit -n'"
					: zst_text__error(err));
}

/* ---- Pieces --------------------------------------------------------------------------------------------- */

static int add_stream(struct streams *f, const char *path, off_t at, off_t end)
{
	uint32_t cap = f->cap ? 2 * f->cap : 64;
	struct stream *s;

	if (f->n == f->cap) {
		s = reallocarray(f->list, cap, sizeof(*s));
		if (!s)
			return -ENOMEM;
		f->list = s;
		f->cap = cap;
	}
	s = &f->list[f->n];
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

static const char header_begin[] = "{\"recordType\":\"header\"";

/* Each header in buf begins a piece; @from: where the one before began. */
static int split_at(struct streams *f, const char *path, const char *buf, size_t len, off_t buf_at,
		    off_t *from)
{
	const char *hit = buf;
	int err = 0;

	while (!err && f->n < PIECES_MAX &&
	       (hit = memmem(hit, len - (size_t)(hit - buf), header_begin,
			     sizeof(header_begin) - 1))) {
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
	/* from one look to the next: all but a byte of what is looked for, so that none is in neither or in both */
	const size_t chunk = 1 << 20, over = sizeof(header_begin) - 2;
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
		f->list[from].size = st.st_size;
		f->list[from].again = S_ISREG(st.st_mode) && fd != STDIN_FILENO;
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

/* ---- Descriptors ----------------------------------------------------------------------------------------- */

/* Where it is in its file is known when it is opened again. */
static void close_file(struct streams *f, struct stream *s)
{
	if (s->fd <= STDIN_FILENO)
		return;
	if (s->again && s->end < 0)
		s->fd_at = lseek(s->fd, 0, SEEK_CUR);
	close(s->fd);
	s->fd = -1;
	f->files--;
}

/* There are fewer descriptors than the limit says, as others have been inherited: one that need not be kept is closed. */
static bool have_fewer(struct streams *f)
{
	struct stream *s;

	for (s = f->list; s < f->list + f->n; s++)
		if (s->fd > STDIN_FILENO && s->again) {
			close_file(f, s);
			f->files_max = f->files;
			return true;
		}
	return false;
}

/* Not another one that has its name now, nor one that has been cut: what is there would not go on where we were. */
static int check_file(const struct stream *s, off_t least)
{
	struct stat st;

	if (fstat(s->fd, &st) || st.st_dev != s->dev || st.st_ino != s->ino)
		return -ESTALE;
	return st.st_size < least ? -ESTALE : 0;
}

/* @least: how large it must be. */
static int open_file(struct streams *f, struct stream *s, off_t least)
{
	if (!strcmp(s->path, "-")) {
		s->fd = STDIN_FILENO;
		return check_file(s, least);
	}
	do {
		s->fd = open(s->path, open_flags(f));
	} while (s->fd < 0 && errno == EMFILE && have_fewer(f));
	if (s->fd < 0)
		return -errno;
	f->files++;
	return check_file(s, least);
}

/* What can be opened again keeps no descriptor beyond those that there may be. */
static void spare_file(struct streams *f, struct stream *s)
{
	if (s->again && f->files > f->files_max)
		close_file(f, s);
}

static int read_ahead(struct stream *s)
{
	off_t left = s->end - s->at;
	size_t kept = s->ahead_len - s->ahead_at, want;
	ssize_t n;

	if (!s->ahead)
		s->ahead = malloc(AHEAD);
	if (!s->ahead)
		return -ENOMEM;
	memmove(s->ahead, s->ahead + s->ahead_at, kept);
	s->ahead_at = 0;
	s->ahead_len = kept;
	want = left < AHEAD ? (size_t)left - kept : AHEAD - kept;
	do {
		n = pread(s->fd, s->ahead + kept, want, s->at + (off_t)kept);
	} while (n < 0 && errno == EINTR);
	s->ahead_len += n > 0 ? (size_t)n : 0;
	return n < 0 ? -errno : 0;
}

static size_t take_ahead(struct stream *s, char *to, size_t want)
{
	size_t n = s->ahead_len - s->ahead_at;

	n = n < want ? n : want;
	if (n)
		memcpy(to, s->ahead + s->ahead_at, n);
	s->ahead_at += n;
	return n;
}

/* Of an open one; as read_text(). */
static ssize_t read_open(struct stream *s, char *to, size_t want)
{
	ssize_t n;

	if (s->end < 0)
		return zst_text__read(&s->text, s->fd, to, want);
	do {
		n = pread(s->fd, to, want, s->at);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static void say_not_again(struct streams *f, const struct stream *s, int err)
{
	if (!f->opt.brief && !f->opt.silent)
		pr_err("Failed to read '%s' further: %s; it had to be opened again, as not more "
		       "files may be open: raise 'ulimit -n', or read it when it stays as it is\n",
		       s->path,
		       err == -ESTALE ? "it is another file now, or has been cut" : strerror(-err));
}

/* A descriptor may have become free since it was closed: then it is its to keep. */
static ssize_t read_again(struct streams *f, struct stream *s, char *to, size_t want)
{
	int err = open_file(f, s, s->size);
	ssize_t n;

	if (!err && s->end < 0 && lseek(s->fd, s->fd_at, SEEK_SET) < 0)
		err = -errno;
	if (err) {
		say_not_again(f, s, err);
		s->told = true;
		return err;
	}
	if (s->end < 0 || f->files <= f->files_max) {
		s->ahead_at = s->ahead_len = 0; /* `at` goes on without it */
		n = read_open(s, to, want);
	} else {
		err = read_ahead(s);
		n = err ? err : (ssize_t)take_ahead(s, to, want);
	}
	spare_file(f, s);
	return n;
}

/*
 * As zst_text__read(); a piece of a file is no compressed one's. What is closed is opened when there is less text of it left than is
 * wanted, of what is compressed when its decoder asks for more: all are read as much at a time as if they stayed open.
 */
static ssize_t read_text(struct streams *f, struct stream *s, char *to, size_t want)
{
	ssize_t n = -EBADF;

	if (s->fd >= 0)
		return read_open(s, to, want);
	if (s->end < 0 && s->text.begun)
		n = zst_text__read(&s->text, -1, to, want);
	else if (s->end >= 0 && s->ahead_len - s->ahead_at >= want)
		n = (ssize_t)take_ahead(s, to, want);
	return n == -EBADF ? read_again(f, s, to, want) : n;
}

/* ---- Which one begins first ----------------------------------------------------------------------------- */

static int64_t number_behind(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

/* By the header of what it begins with, and the first time behind that. */
static int64_t first_in(const char *text)
{
	const char *behind = strchr(text, '\n');
	int64_t us;

	if (!behind || __builtin_add_overflow(number_behind(text, "\"realtimeOffset\":"),
					      number_behind(behind, "\"ts\":"), &us))
		return 0;
	return us;
}

/* What it begins with, as text. What cannot be read is told when its turn comes. */
static void read_first(const struct streams *f, const struct stream *s, char *text)
{
	int fd = s->again ? open(s->path, open_flags(f)) : -1;
	struct zst_text zst = {0};
	size_t len = 0, want = FIRST_BYTES;
	ssize_t n;

	if (s->end >= 0 && s->end - s->begin < FIRST_BYTES)
		want = (size_t)(s->end - s->begin);
	while (fd >= 0 && len < want) {
		n = s->end < 0 ? zst_text__read(&zst, fd, text + len, want - len)
			       : pread(fd, text + len, want - len, s->begin + (off_t)len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = 0;
	zst_text__end(&zst);
	if (fd >= 0)
		close(fd);
}

static int begins_first(const void *pa, const void *pb)
{
	const struct stream *a = *(struct stream *const *)pa, *b = *(struct stream *const *)pb;

	return a->first != b->first ? (a->first < b->first ? -1 : 1) : (a > b) - (a < b);
}

/* Who begins with others stays in the order given, in which a node's are together. */
static void begin_together(struct streams *f)
{
	int64_t last = f->order[0]->first, together = last;
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		/* in order; whoever writes a trace chooses its times */
		if ((uint64_t)f->order[i]->first - (uint64_t)last > GAP_US ||
		    (uint64_t)f->order[i]->first - (uint64_t)together > SPAN_US)
			together = f->order[i]->first;
		last = f->order[i]->first;
		f->order[i]->first = together;
	}
}

/* Of more than can be read side by side those wait that begin later, in whichever order they are given. */
static int put_in_order(struct streams *f)
{
	char *text = malloc(FIRST_BYTES + 1);
	uint32_t i;

	f->order = calloc(f->n, sizeof(struct stream *));
	if (!text || !f->order) {
		free(text);
		return -ENOMEM;
	}
	for (i = 0; i < f->n; i++) {
		f->order[i] = &f->list[i];
		read_first(f, &f->list[i], text);
		f->list[i].first = first_in(text);
	}
	qsort(f->order, f->n, sizeof(struct stream *), begins_first);
	begin_together(f);
	qsort(f->order, f->n, sizeof(struct stream *), begins_first);
	free(text);
	return 0;
}

/* ---- Lines ---------------------------------------------------------------------------------------------- */

static void close_stream(struct streams *f, struct stream *s)
{
	if (s->reader)
		f->ops->end(s->reader);
	s->reader = NULL;
	zst_text__end(&s->text);
	close_file(f, s);
	s->fd = -1;
	free(s->buf);
	s->buf = NULL;
	free(s->ahead);
	s->ahead = NULL;
	s->eof = true;
}

static int open_stream(struct streams *f, struct stream *s)
{
	int err;

	s->at = s->begin;
	s->fd_at = 0;
	s->len = s->ahead_at = s->ahead_len = 0;
	s->too_long = false;
	err = open_file(f, s, 0);
	if (err)
		return err;
	spare_file(f, s);
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
	n = read_text(f, s, s->buf + s->len, want);
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
	return heap__push(&f->begun, s, is_behind);
}

static struct stream *next_to_begin(struct streams *f)
{
	uint32_t i = f->next++;

	return f->order && f->ops->now ? f->order[i] : &f->list[i];
}

/* The stream that is behind the others; @next: how far that is which is behind next. */
static struct stream *behind(struct streams *f, int64_t *next, int *err)
{
	uint32_t max = !f->ops->now ? 1 : f->n < STREAMS_MAX ? f->n : STREAMS_MAX;
	struct stream *s;

	while (f->begun.n < max && f->next < f->n) {
		s = next_to_begin(f);
		*err = open_stream(f, s);
		if (!*err)
			*err = put_back(f, s);
		if (*err)
			return s;
	}
	if (!f->begun.n)
		return NULL;
	s = heap__pop(&f->begun, is_behind);
	*next = f->begun.n ? ((const struct stream *)f->begun.at[0])->now : INT64_MAX;
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
		if (!s->told)
			say_error(f, s->path, err);
		s->told = true;
		close_stream(f, s);
		first = first ?: err;
		err = 0;
	}
	return f->err ?: first;
}

/* ---- From outside ----------------------------------------------------------------------------------------- */

/* As many as we may have; where that is few, the rest of the program needs its share. */
static uint32_t may_open(void)
{
	const rlim_t most = FILES_MAX + FILES_REST;
	struct rlimit files = {0};

	if (getrlimit(RLIMIT_NOFILE, &files))
		return FILES_REST;
	if (files.rlim_cur < files.rlim_max && files.rlim_cur < most) {
		files.rlim_cur = files.rlim_max < most ? files.rlim_max : most;
		setrlimit(RLIMIT_NOFILE, &files);
		getrlimit(RLIMIT_NOFILE, &files);
	}
	return (uint32_t)(files.rlim_cur > 2 * FILES_REST ? files.rlim_cur - FILES_REST
							  : files.rlim_cur / 2);
}

struct streams *streams__new(char *const *paths, const struct streams_options *opt, int *err)
{
	struct streams *f = calloc(1, sizeof(*f));
	int one;

	*err = 0;
	if (!f)
		return NULL;
	f->opt = *opt;
	f->files_max = may_open();
	for (; *paths; paths++) {
		one = opt->brief ? add_file(f, *paths) : lines_visit(*paths, false, add_file, f);
		*err = one ? one : *err;
	}
	if (f->n > STREAMS_MAX && put_in_order(f)) {
		streams__free(f);
		return NULL;
	}
	return f;
}

static void rewind_all(struct streams *f)
{
	struct stream *s;

	f->err = 0;
	f->begun.n = 0;
	f->next = 0;
	f->totals = (struct streams_totals){.files = f->totals.files, .waited = f->order};
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
	free(f->order);
	free(f->begun.at);
	free(f);
}
