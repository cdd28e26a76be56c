// SPDX-License-Identifier: BSD-2-Clause
/* Recorders' status files: written whole, read with suspicion; see status_file.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "log.h"
#include "nccl_names.h"
#include "options.h"
#include "scope_abi.h"
#include "pid_stat.h"
#include "status_file.h"
#include "write_all.h"

#define PREFIX	  "recorder-"
#define SUFFIX	  ".json"
#define TEMPORARY ".tmp"
#define NAME_LEN  32
#define FILE_MAX  (16u << 20)	   /* 64 processes take 18 kB */
#define SILENT_US (5 * 1000000ull) /* without a write: it comes each second */

const char *status_dir(void)
{
	const char *dir = secure_getenv("NCCLSCOPE_STATUS_DIR");

	return dir && *dir ? dir : "/run/ncclscope";
}

/* ---- Values ------------------------------------------------------------------------------------ */

json_t *status_text(const char *s, size_t len)
{
	static const char unknown[] = "\xef\xbf\xbd";
	json_t *v = json_stringn(s, len);
	size_t i, n = 0;
	char *clean;

	if (v)
		return v;
	clean = malloc(len * strlen(unknown) + 1);
	if (!clean)
		return NULL;
	for (i = 0; i < len; i++) {
		if ((unsigned char)s[i] < 0x80)
			clean[n++] = s[i];
		else
			n = (size_t)(stpcpy(clean + n, unknown) - clean);
	}
	v = json_stringn(clean, n);
	free(clean);
	return v;
}

json_t *status_mask(uint32_t mask)
{
	json_t *names = json_array();
	uint32_t what;

	for (what = 0; what < SCOPE_NTYPES; what++)
		if (mask & 1u << what)
			json_array_append_new(names, json_string(event_type_short(what)));
	return names;
}

/* ---- Names and states -------------------------------------------------------------------------- */

static void file_name(char name[NAME_LEN], pid_t pid, const char *suffix)
{
	snprintf(name, NAME_LEN, PREFIX "%d%s", pid, suffix);
}

/* The pid in a name of that form; 0: another file. */
static pid_t name_pid(const char *name, const char *suffix)
{
	size_t len = strlen(name), tail = strlen(suffix);
	char digits[NAME_LEN], again[NAME_LEN];
	pid_t pid;

	if (len >= NAME_LEN || len <= strlen(PREFIX) + tail ||
	    strncmp(name, PREFIX, strlen(PREFIX)))
		return 0;
	snprintf(digits, sizeof(digits), "%.*s", (int)(len - strlen(PREFIX) - tail),
		 name + strlen(PREFIX));
	if (parse_pid(digits, &pid))
		return 0;
	file_name(again, pid, suffix); /* one name for each pid: no leading zeroes */
	return strcmp(again, name) ? 0 : pid;
}

static const char *status_state_name(enum status_state state)
{
	static const char *const names[] = {[STATUS_RUNNING] = "running",
					    [STATUS_WAITING] = "waiting",
					    [STATUS_SILENT] = "silent",
					    [STATUS_DEAD] = "dead"};

	return names[state];
}

/* One of them may be in a time namespace that is ahead by parts of a tick. */
static bool same_start(uint64_t a, uint64_t b)
{
	return a - b + 1 <= 2;
}

enum status_state status_file__state(const json_t *doc, uint64_t now_us)
{
	json_int_t pid = json_integer_value(json_object_get(doc, "pid"));
	json_int_t start = json_integer_value(json_object_get(doc, "startTime"));
	json_int_t updated = json_integer_value(json_object_get(doc, "updatedUs"));
	struct pid_stat proc;

	if (pid <= 0 || pid > INT32_MAX || pid_stat__is_gone((pid_t)pid))
		return STATUS_DEAD;
	/* Where /proc hides other users' processes, there is no more to know than that the pid exists. */
	if (!pid_stat__read((pid_t)pid, &proc) &&
	    (!same_start(proc.start, (uint64_t)start) || pid_stat__is_zombie(&proc)))
		return STATUS_DEAD;
	if (updated < 0 || now_us > (uint64_t)updated + SILENT_US)
		return STATUS_SILENT;
	return json_object_get(doc, "waitsUntilUs") ? STATUS_WAITING : STATUS_RUNNING;
}

/* ---- Writing ----------------------------------------------------------------------------------- */

int status_dir__make(const char *path)
{
	bool made = !mkdir(path, 0755);
	struct stat st;
	int fd, err = 0;

	if (!made && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (made && fchmod(fd, 0755)) /* whatever the umask */
		err = -errno;
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err && ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & 022))
		err = -EPERM;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int status_file__write(int dirfd, pid_t pid, const char *text, size_t len)
{
	char name[NAME_LEN], tmp[NAME_LEN];
	int fd, err;

	file_name(name, pid, SUFFIX);
	file_name(tmp, pid, TEMPORARY);
	unlinkat(dirfd, tmp, 0); /* of a recorder that was killed and had this pid */
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	err = write_all(fd, text, len);
	if (!err && fchmod(fd, 0644))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(dirfd, tmp, dirfd, name))
		err = -errno;
	if (err)
		unlinkat(dirfd, tmp, 0);
	return err;
}

void status_file__remove(int dirfd, pid_t pid)
{
	char name[NAME_LEN];

	file_name(name, pid, SUFFIX);
	unlinkat(dirfd, name, 0);
}

/* ---- Reading ----------------------------------------------------------------------------------- */

/* What the file holds, if the directory's owner or root wrote it; its text is bounded and read once. */
static int read_text(int dirfd, const char *name, char **text, size_t *len)
{
	struct stat dir, st = {0};
	ssize_t n = 1;
	int fd, err = 0;

	*text = NULL;
	*len = 0;
	/* not to be held up by a pipe, nor led elsewhere by a link */
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(dirfd, &dir) || fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (st.st_uid && st.st_uid != dir.st_uid)
		err = -EPERM;
	else if (st.st_size > FILE_MAX)
		err = -EFBIG;
	*text = err ? NULL : malloc((size_t)st.st_size + 1);
	if (!err && !*text)
		err = -ENOMEM;
	while (!err && n > 0 && *len < (size_t)st.st_size) {
		n = read(fd, *text + *len, (size_t)st.st_size - *len);
		if (n < 0)
			err = -errno;
		else
			*len += (size_t)n;
	}
	close(fd);
	return err;
}

/* -EBADMSG: no JSON, or not what a recorder of that pid says. */
static int read_doc(int dirfd, const char *name, pid_t pid, json_t **doc)
{
	char *text;
	size_t len;
	int err = read_text(dirfd, name, &text, &len);

	*doc = NULL;
	if (!err) {
		*doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
		if (json_integer_value(json_object_get(*doc, "pid")) != pid ||
		    !json_is_integer(json_object_get(*doc, "startTime")) ||
		    !json_is_integer(json_object_get(*doc, "updatedUs")))
			err = -EBADMSG;
	}
	if (err) {
		json_decref(*doc);
		*doc = NULL;
	}
	free(text);
	return err;
}

static DIR *list(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

static bool expire(int dirfd, const char *name)
{
	pid_t pid = name_pid(name, SUFFIX), tmp_pid = name_pid(name, TEMPORARY);
	json_t *doc = NULL;
	bool dead = (pid && pid_stat__is_gone(pid)) || (tmp_pid && pid_stat__is_gone(tmp_pid)) ||
		    (pid && pid != getpid() && !read_doc(dirfd, name, pid, &doc) &&
		     status_file__state(doc, 0) == STATUS_DEAD);

	if (dead) {
		pr_debug("Removing '%s', of a recorder that was killed\n", name);
		unlinkat(dirfd, name, 0);
	}
	json_decref(doc);
	return dead;
}

bool status_dir__expire(int dirfd)
{
	DIR *d = list(dirfd);
	struct dirent *e;
	bool any = false;

	while (d && (e = readdir(d)))
		any |= expire(dirfd, e->d_name);
	if (d)
		closedir(d);
	return any;
}

static const char *why(int err)
{
	switch (err) {
	case -EBADMSG:
		return "no recorder's status";
	case -EINVAL:
		return "no regular file";
	case -ELOOP:
		return "a symbolic link";
	case -EPERM:
		return "somebody else's file";
	default:
		return strerror(-err);
	}
}

static int add(json_t *all, json_t *doc, const char *path, const char *name, uint64_t now_us)
{
	json_int_t updated = json_integer_value(json_object_get(doc, "updatedUs"));
	const char *state = status_state_name(status_file__state(doc, now_us));
	json_int_t pid = json_integer_value(json_object_get(doc, "pid"));
	size_t at = 0;

	if (json_object_set_new(doc, "state", json_string(state)) ||
	    json_object_set_new(doc, "file", json_sprintf("%s/%s", path, name)) ||
	    json_object_set_new(doc, "ageUs",
				json_integer(updated >= 0 && now_us > (uint64_t)updated
						     ? (json_int_t)(now_us - (uint64_t)updated)
						     : 0))) {
		json_decref(doc);
		return -ENOMEM;
	}
	while (at < json_array_size(all) &&
	       json_integer_value(json_object_get(json_array_get(all, at), "pid")) < pid)
		at++;
	return json_array_insert_new(all, at, doc) ? -ENOMEM : 0;
}

json_t *status_dir__read(const char *path, uint64_t now_us)
{
	int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = 0;
	DIR *d = dirfd < 0 ? NULL : list(dirfd);
	json_t *all = json_array(), *doc;
	struct dirent *e;
	pid_t pid;

	if (!d && errno != ENOENT)
		pr_warn("Failed to read '%s': %s, continuing without what recorders say\n", path,
			strerror(errno));
	while (d && all && err != -ENOMEM && (e = readdir(d))) {
		pid = name_pid(e->d_name, SUFFIX);
		err = pid ? read_doc(dirfd, e->d_name, pid, &doc) : 0;
		if (pid && !err)
			err = add(all, doc, path, e->d_name, now_us);
		else if (err && err != -ENOENT) /* it may have ended just now */
			pr_warn("Failed to read '%s/%s': %s, skipping\n", path, e->d_name,
				why(err));
	}
	if (d)
		closedir(d);
	if (dirfd >= 0)
		close(dirfd);
	if (err == -ENOMEM) {
		json_decref(all);
		all = NULL;
	}
	return all;
}
