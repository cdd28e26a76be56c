// SPDX-License-Identifier: BSD-2-Clause
/*
 * The inputs of `ncclscope view`. They are read twice, by report and by us, so what is no file is copied into one
 * first. What goes into the page is whole lines, in blocks that can be unpacked one by one: when somebody
 * wants to see all of an event, the page looks its line up again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check_json.h"
#include "copies.h"
#include "lines.h"
#include "log.h"
#include "progress.h"
#include "view.h"
#include "write_all.h"
#include "zst.h"

#define BUFFER	    (2 * JSON_MAX_LINE)
#define BLOCK_BYTES (4 << 20)
#define CUT_BYTES                                                                                  \
	256 /* what is left of a line that is too long: the page counts it as one it cannot read */

/* ---- Which ones ---------------------------------------------------------------------------------------- */

/* *reads: whether an error was of reading, and not of writing. */
static int copy_all(int from, int to, bool *reads)
{
	char buf[64 << 10];
	ssize_t n;
	int err;

	while ((n = read(from, buf, sizeof(buf)))) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		err = write_all(to, buf, (size_t)n);
		*reads = !err;
		if (err)
			return err;
	}
	return 0;
}

static const char *spool_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

/* A file without a name, which goes with its descriptor. */
static int open_spool(void)
{
	int fd = open(spool_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* *told: what went wrong has been. */
static int spool(struct view_input *input, int fd, bool *told)
{
	bool reads = true;
	int err;

	input->spool = open_spool();
	err = input->spool < 0 ? input->spool : copy_all(fd, input->spool, &reads);
	*told = input->spool < 0 || !reads;
	if (*told)
		pr_err("Failed to keep what comes in TMPDIR, '%s': %s\n", spool_dir(),
		       strerror(-err));
	if (err)
		return err;
	free(input->path);
	if (asprintf(&input->path, "/proc/self/fd/%d", input->spool) < 0) {
		input->path = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int open_input(struct view_input *input, const char *path, uint64_t *bytes, bool *told)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st = {0};

	if (fd < 0 || fstat(fd, &st))
		err = -errno;
	else if (S_ISDIR(st.st_mode))
		err = -EISDIR;
	else if (is_stdin || !S_ISREG(st.st_mode))
		err = spool(input, fd, told);
	else
		err = zst_file_refuse(fd);
	if (!err && input->spool < 0)
		*bytes += (uint64_t)st.st_size;
	if (fd >= 0 && !is_stdin)
		close(fd);
	return err;
}

static void free_input(struct view_input *input)
{
	free(input->path);
	free(input->name);
	free(input->given);
	if (input->spool >= 0)
		close(input->spool);
}

static int add_file(void *to, const char *path)
{
	struct view_inputs *in = to;
	struct view_input input = {.spool = -1}, *list;
	const char *slash = strrchr(path, '/');
	bool told = false;
	int err;

	input.path = strdup(path);
	input.given = strdup(strcmp(path, "-") ? path : "(stdin)");
	input.name = strdup(!strcmp(path, "-") ? "(stdin)" : slash ? slash + 1 : path);
	list = reallocarray(in->list, in->n + 1, sizeof(*list));
	if (list)
		in->list = list;
	err = input.path && input.name && input.given && list
		      ? open_input(&input, path, &in->bytes, &told)
		      : -ENOMEM;
	if (err) {
		if (!told)
			pr_err("Failed to read '%s': %s\n", path, zst_text__error(err));
		free_input(&input);
		return err;
	}
	in->list[in->n++] = input;
	return 0;
}

int view_inputs__add(struct view_inputs *in, const char *path)
{
	return lines_visit(path, false, add_file, in);
}

void view_inputs__free(struct view_inputs *in)
{
	size_t i;

	for (i = 0; i < in->n; i++)
		free_input(&in->list[i]);
	free(in->list);
	memset(in, 0, sizeof(*in));
}

/* ---- Lines -------------------------------------------------------------------------------------------- */

struct reader {
	struct view_page *page;
	const char *name; /* of the file, until its first block has begun */
	char *buf;	  /* BUFFER bytes */
	size_t len;
	size_t in_block; /* bytes of text that the open block has */
	bool open, too_long;
	struct copies copies;
	struct copies_trace trace;
	struct zst_text text;
	struct progress progress;
	uint64_t done, total; /* bytes of the files before, of all */
	int err;	      /* of the page */
};

static void close_block(struct reader *r)
{
	if (r->open && !r->err)
		r->err = view_page__close(r->page);
	r->open = false;
}

static void put_lines(struct reader *r, const char *s, size_t len)
{
	if (r->open && r->in_block >= BLOCK_BYTES)
		close_block(r);
	if (!r->open && !r->err) {
		r->err = view_page__open(r->page, "trace", r->name);
		r->name = NULL;
		r->open = true;
		r->in_block = 0;
	}
	if (!r->err && len)
		r->err = view_page__put(r->page, s, len);
	r->in_block += len;
}

static void release_header(struct reader *r)
{
	const char *s;
	size_t len;

	if (copies__header(&r->trace, &s, &len))
		put_lines(r, s, len);
}

static void begin_trace(struct reader *r, const char *s, size_t len)
{
	release_header(r);
	copies__end(&r->trace, ""); /* the report has told what there is to tell of copies */
	r->err = r->err ?: copies__begin(&r->trace, s, len);
}

/* The line behind a header. */
static void end_header(struct reader *r, const char *s, size_t len)
{
	int what = copies__line(&r->copies, &r->trace, s, len, "");

	if (what < 0)
		r->err = what;
	release_header(r);
}

/* Whole lines, of each trace once. No text within a record can look like the beginning of a header: its quotes would be escaped. */
static void put_once(struct reader *r, const char *s, size_t len)
{
	static const char begin[] = "{\"recordType\":\"header\"";
	const char *end = s + len, *header, *nl;

	while (s < end && !r->err) {
		header = memmem(s, (size_t)(end - s), begin, sizeof(begin) - 1);
		nl = memchr(s, '\n', (size_t)(end - s));
		nl = nl ? nl + 1 : end;
		if (header == s) {
			begin_trace(r, s, (size_t)(nl - s));
			s = nl;
			continue;
		}
		if (r->trace.begins)
			end_header(r, s, (size_t)(nl - s));
		header = header ? header : end;
		if (!r->trace.is_copy)
			put_lines(r, s, (size_t)(header - s));
		s = header;
	}
}

/* A line of which there is more than may be. */
static void cut_line(struct reader *r)
{
	put_once(r, r->buf, CUT_BYTES);
	put_once(r, "\n", 1);
	r->too_long = true;
	r->len = 0;
}

/* Whole lines of the buffer into the page, the rest to its beginning. */
static void whole_lines(struct reader *r)
{
	char *from = r->buf, *nl;

	if (r->too_long) {
		nl = memchr(from, '\n', r->len);
		if (!nl) {
			r->len = 0;
			return;
		}
		r->too_long = false;
		from = nl + 1;
	}
	nl = memrchr(from, '\n', r->len - (size_t)(from - r->buf));
	if (nl)
		put_once(r, from, (size_t)(nl + 1 - from));
	else
		nl = from - 1;
	r->len -= (size_t)(nl + 1 - r->buf);
	memmove(r->buf, nl + 1, r->len);
	if (r->len > JSON_MAX_LINE)
		cut_line(r);
}

static int read_file(struct reader *r, const struct view_input *input)
{
	int fd = open(input->path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	r->name = input->name;
	r->len = 0;
	r->too_long = false;
	while (!r->err &&
	       (n = zst_text__read(&r->text, fd, r->buf + r->len, BUFFER - r->len)) > 0) {
		r->len += (size_t)n;
		whole_lines(r);
		progress__show(&r->progress, r->done + (uint64_t)lseek(fd, 0, SEEK_CUR), r->total);
	}
	r->done += (uint64_t)lseek(fd, 0, SEEK_CUR);
	/* a line that does not end may be whole all the same, or torn: the page will see */
	if (r->len && !r->too_long) {
		r->buf[r->len++] = '\n';
		put_once(r, r->buf, r->len);
	}
	release_header(r);
	if (r->name && !r->trace.is_copy) /* an empty one */
		put_lines(r, "", 0);
	copies__end(&r->trace, "");
	close_block(r);
	zst_text__end(&r->text);
	close(fd);
	return n < 0 ? (int)n : 0;
}

int view_inputs__read(const struct view_inputs *in, struct view_page *page, int *page_err)
{
	struct reader r = {.page = page, .buf = malloc(BUFFER), .total = in->bytes};
	int err = 0, one;
	size_t i;

	if (!r.buf) {
		*page_err = -ENOMEM;
		return 0;
	}
	progress__begin(&r.progress, "Writing");
	for (i = 0; i < in->n && !r.err; i++) {
		one = read_file(&r, &in->list[i]);
		if (one)
			pr_err("Failed to read '%s': %s\n", in->list[i].given,
			       zst_text__error(one));
		err = one ? one : err;
	}
	progress__end(&r.progress);
	copies__free(&r.copies);
	copies__trace_free(&r.trace);
	free(r.buf);
	*page_err = r.err;
	return err;
}
