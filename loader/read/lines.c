// SPDX-License-Identifier: BSD-2-Clause
/* Lines of traces; see lines.h. A line beyond the limit is passed over, never kept whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check_json.h"
#include "lines.h"
#include "log.h"
#include "zst.h"

struct reader {
	const struct lines_ops *ops;
	void *to;
	int stop; /* what a callback returned */
	char *buf;
	size_t len, cap;
	struct zst_text text; /* of the file */
	bool too_long;	      /* within such a line */
	uint64_t done, total; /* bytes of the files before, of all */
};

static void lines_of_buffer(struct reader *r)
{
	char *at = r->buf, *end = r->buf + r->len, *nl;

	while (!r->stop && (nl = memchr(at, '\n', end - at))) {
		if (r->too_long)
			r->too_long = false;
		else if (nl - at > JSON_MAX_LINE)
			r->stop = r->ops->too_long(r->to);
		else
			r->stop = r->ops->line(r->to, at, nl - at, true);
		at = nl + 1;
	}
	r->len = end - at;
	memmove(r->buf, at, r->len);
	if (r->len > JSON_MAX_LINE && !r->too_long && !r->stop) {
		r->stop = r->ops->too_long(r->to);
		r->too_long = true;
	}
	if (r->too_long)
		r->len = 0;
}

static void tell_progress(struct reader *r, int fd)
{
	off_t at = r->ops->progress && r->total ? lseek(fd, 0, SEEK_CUR) : -1;

	if (at >= 0)
		r->ops->progress(r->to, r->done + (uint64_t)at, r->total);
}

/* 0 or -errno of read(). */
static int read_fd(struct reader *r, int fd)
{
	ssize_t n;

	r->len = 0;
	r->too_long = false;
	while (!r->stop) {
		n = zst_text__read(&r->text, fd, r->buf + r->len, r->cap - r->len);
		if (n < 0)
			return (int)n;
		if (!n)
			break;
		r->len += n;
		lines_of_buffer(r);
		tell_progress(r, fd);
	}
	if (r->len && !r->stop)
		r->stop = r->ops->line(r->to, r->buf, r->len, false);
	if (!r->stop)
		r->stop = r->ops->end(r->to);
	return 0;
}

static int read_file(void *to, const char *path)
{
	struct reader *r = to;
	bool is_stdin = !strcmp(path, "-");
	struct stat st;
	int fd, err;

	if (r->stop)
		return 0;
	fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	r->stop = r->ops->begin(r->to, is_stdin ? "(stdin)" : path);
	if (!err)
		err = read_fd(r, fd);
	zst_text__end(&r->text);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		r->done += (uint64_t)st.st_size;
	if (fd >= 0 && !is_stdin)
		close(fd);
	if (err && r->ops->failed)
		r->ops->failed(r->to, err);
	else if (err && !r->ops->quiet)
		pr_err("Failed to read '%s': %s\n", path, zst_text__error(err));
	return err;
}

static int add_size(void *to, const char *path)
{
	struct reader *r = to;
	struct stat st;

	if (strcmp(path, "-") && !stat(path, &st) && S_ISREG(st.st_mode))
		r->total += (uint64_t)st.st_size;
	return 0;
}

static int is_trace(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	if (entry->d_type != DT_REG && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return 0;
	return !strncmp(entry->d_name, "trace_", 6) &&
	       ((len > 12 && !strcmp(entry->d_name + len - 6, ".jsonl")) ||
		(len > 16 && !strcmp(entry->d_name + len - 10, ".jsonl.zst")));
}

static int may_be_dir(const struct dirent *entry)
{
	return entry->d_name[0] != '.' &&
	       (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
}

/* Names as scandir() gives them, or none. */
static void free_names(struct dirent **names, int n)
{
	int i;

	for (i = 0; i < n; i++)
		free(names[i]);
	if (n >= 0)
		free(names);
}

static bool has_traces(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, is_trace, NULL);

	free_names(names, n);
	return n > 0;
}

/* Whether a directory in it has some: recordings lie in one each, and who wants all of them names the one above. */
static bool has_recordings(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, may_be_dir, NULL), i;
	bool has = false;
	char *dir;

	for (i = 0; i < n && !has; i++) {
		if (asprintf(&dir, "%s/%s", path, names[i]->d_name) < 0)
			break;
		has = has_traces(dir);
		free(dir);
	}
	free_names(names, n);
	return has;
}

static void tell_no_traces(const char *path)
{
	size_t len = strlen(path);

	if (!has_recordings(path)) {
		pr_err("Failed to read '%s': no trace_*.jsonl in it, nor any .zst\n", path);
		return;
	}
	while (len > 1 && path[len - 1] == '/')
		len--;
	pr_err("Failed to read '%s': no trace_*.jsonl in it, nor any .zst, but directories in it "
	       "have some: give these, as %.*s/*/\n",
	       path, (int)len, path);
}

/* A pipe would be waited for, also where a link leads to it. What leads nowhere is told by who opens it. */
static bool is_no_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

static int visit_entry(const char *dir, const char *name, int (*visit)(void *to, const char *file),
		       void *to, int *visited)
{
	char *file;
	int err = 0;

	if (asprintf(&file, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	if (!is_no_file(file)) {
		(*visited)++;
		err = visit(to, file);
	}
	free(file);
	return err;
}

/* Its traces, by name. */
static int visit_dir(const char *path, bool quiet, int (*visit)(void *to, const char *file),
		     void *to)
{
	struct dirent **names;
	int n = scandir(path, &names, is_trace, alphasort), i, err = 0, one, visited = 0;
	int failed = n < 0 ? errno : 0;

	for (i = 0; i < n; i++) {
		one = visit_entry(path, names[i]->d_name, visit, to, &visited);
		err = one ? one : err;
	}
	free_names(names, n);
	if (visited || err)
		return err;
	if (!quiet && failed)
		pr_err("Failed to read '%s': %s\n", path, strerror(failed));
	else if (!quiet)
		tell_no_traces(path);
	return -ENOENT;
}

int lines_visit(const char *path, bool quiet, int (*visit)(void *to, const char *file), void *to)
{
	struct stat st;

	if (strcmp(path, "-") && !stat(path, &st) && S_ISDIR(st.st_mode))
		return visit_dir(path, quiet, visit, to);
	return visit(to, path);
}

static int visit_all(struct reader *r, char *const *paths, bool quiet,
		     int (*visit)(void *to, const char *file))
{
	int err = 0, one;

	for (; *paths && !r->stop; paths++) {
		one = lines_visit(*paths, quiet, visit, r);
		err = one ? one : err;
	}
	return err;
}

int lines_read(char *const *paths, const struct lines_ops *ops, void *to)
{
	struct reader r = {.ops = ops, .to = to, .cap = 4 * JSON_MAX_LINE};
	int err;

	r.buf = malloc(r.cap);
	if (!r.buf)
		return -ENOMEM;
	if (ops->progress)
		visit_all(&r, paths, true, add_size);
	err = visit_all(&r, paths, ops->quiet, read_file);
	free(r.buf);
	return r.stop ? r.stop : err;
}

static int is_same(void *to, const char *file)
{
	const struct stat *want = to;
	struct stat st;

	return !stat(file, &st) && st.st_dev == want->st_dev && st.st_ino == want->st_ino ? -EEXIST
											  : 0;
}

bool lines_have(char *const *paths, const char *path)
{
	struct stat st;

	if (!path || stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	for (; *paths; paths++)
		if (lines_visit(*paths, true, is_same, &st) == -EEXIST)
			return true;
	return false;
}

/*
 * Where the next file may begin, the last place: a header that another one follows is torn itself. No text within a record looks like
 * it, as its quotes are escaped. NULL: nowhere.
 */
static const char *torn_by_cat(const char *s, size_t len)
{
	static const char begin[] = "{\"recordType\":\"header\"";
	const char *at = NULL, *next = len ? s + 1 : s, *end = s + len;

	while ((next = memmem(next, (size_t)(end - next), begin, sizeof(begin) - 1)))
		at = next++;
	return at;
}

int lines_parse(struct json_doc *doc, const char **s, size_t *len, bool *torn)
{
	int err = json_doc__parse(doc, *s, *len);
	const char *next = err == -EINVAL ? torn_by_cat(*s, *len) : NULL;
	struct json_doc whole;

	*torn = next;
	if (!next)
		return err;
	whole = *doc;
	*len -= (size_t)(next - *s);
	*s = next;
	err = json_doc__parse(doc, next, *len);
	if (err == -EINVAL) {
		doc->err = whole.err;
		doc->err_at = whole.err_at;
		doc->err_utf8 = whole.err_utf8;
		doc->err_dup = whole.err_dup;
	}
	return err;
}
