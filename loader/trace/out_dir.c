// SPDX-License-Identifier: BSD-2-Clause
/*
 * The way to a directory for traces. We are root, and other users own parts of the way: it is gone step by
 * step, each from the directory that the last one led to, and no link is followed that they could have made.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>
#include "log.h"
#include "out.h"

#define LINKS_MAX 40 /* as the kernel's */

struct walk {
	int at;	   /* the directory that we are in */
	uid_t uid; /* who called us, through sudo; -1: nobody else */
	bool links, make;
	int followed;
	char rest[2 * PATH_MAX]; /* of the way */
	char name[NAME_MAX + 1]; /* its first part, taken off */
};

int open_beneath(int dirfd, const char *name, int flags, mode_t mode)
{
	struct open_how how = {.flags = (unsigned int)(flags | O_CLOEXEC | O_NOFOLLOW),
			       .mode = mode,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	long fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

const char *out_dir_error(int err)
{
	if (err == -ELOOP)
		return "there is a symbolic link in it that not only root can change";
	if (err == -EEXIST)
		return "another user has made it, where everybody may";
	return strerror(-err);
}

static bool is_ours(const struct walk *w, uid_t owner)
{
	return owner == 0 || owner == geteuid() || owner == w->uid;
}

/* In /tmp and its like, whose owner guards what is there, but anybody may have been first. */
static bool is_anybodys(const struct stat *dir)
{
	return dir->st_mode & (S_IWGRP | S_IWOTH) && dir->st_mode & S_ISVTX;
}

/* Whether nobody but us can have made this link or put it here, or can change it. */
static bool link_is_safe(const struct walk *w, const struct stat *link)
{
	struct stat dir;

	if (fstat(w->at, &dir) || !is_ours(w, dir.st_uid))
		return false;
	return !(dir.st_mode & (S_IWGRP | S_IWOTH)) ||
	       (is_anybodys(&dir) && is_ours(w, link->st_uid));
}

/* The link's text takes its place in the rest of the way. */
static int follow_link(struct walk *w)
{
	char text[PATH_MAX], rest[sizeof(w->rest)];
	struct stat st;
	ssize_t n = -1;
	int fd, err;

	if (!w->links || ++w->followed > LINKS_MAX)
		return -ELOOP;
	fd = openat(w->at, w->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : link_is_safe(w, &st) ? 0 : -ELOOP;
	if (!err)
		n = readlinkat(fd, "", text, sizeof(text) - 1);
	if (!err && n < 0)
		err = -errno;
	close(fd);
	if (err)
		return err;
	text[n] = 0;
	if (!w->rest[0])
		w->make = false; /* nothing is made behind a link that leads nowhere */
	n = snprintf(rest, sizeof(rest), "%s/%s", text, w->rest);
	if (n >= (ssize_t)sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(w->rest, rest, (size_t)n + 1);
	return 0;
}

/* Takes the next part of the way into w->name, with the slashes around it; false: there is none. */
static bool next_name(struct walk *w, int *err)
{
	char *from = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(from, "/");

	if (!len || len > NAME_MAX) {
		*err = len ? -ENAMETOOLONG : 0;
		return false;
	}
	memcpy(w->name, from, len);
	w->name[len] = 0;
	from += len;
	from += strspn(from, "/");
	memmove(w->rest, from, strlen(from) + 1);
	return true;
}

static int enter(struct walk *w, int fd)
{
	if (fd < 0)
		return fd;
	if (w->at >= 0)
		close(w->at);
	w->at = fd;
	return 0;
}

/* With a dot behind it, so that it is mounted if it is to be when somebody looks; the link has none. */
static int open_dir(const struct walk *w)
{
	char name[NAME_MAX + 3];
	int fd;

	if (!strcmp(w->name, "..")) {
		fd = openat(w->at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	snprintf(name, sizeof(name), "%s/.", w->name);
	return open_beneath(w->at, name, O_PATH | O_DIRECTORY, 0);
}

/* A directory that was there before us. */
static int check_found(const struct walk *w, int fd)
{
	struct stat dir, found;

	if (fstat(w->at, &dir) || fstat(fd, &found))
		return -errno;
	return is_anybodys(&dir) && !is_ours(w, found.st_uid) && strcmp(w->name, "..") ? -EEXIST
										       : 0;
}

static int step(struct walk *w, bool *made)
{
	int fd = open_dir(w), err;

	if (fd == -ENOENT && w->make && !w->rest[0]) {
		*made = !mkdirat(w->at, w->name, 0755);
		if (!*made && errno != EEXIST)
			return -errno;
		fd = open_dir(w);
	}
	if (fd == -ELOOP)
		return follow_link(w);
	if (fd < 0)
		return fd;
	err = check_found(w, fd);
	if (err) {
		close(fd);
		return err;
	}
	return enter(w, fd);
}

static int walk(struct walk *w, bool *made)
{
	int err = 0, fd;

	do {
		if (w->at < 0 || w->rest[0] == '/') {
			fd = open(w->rest[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
			err = enter(w, fd < 0 ? -errno : fd);
		}
		if (err || !next_name(w, &err))
			return err;
		err = step(w, made);
	} while (!err);
	return err;
}

/* Ours to give away if nobody has put another one in its place since. */
static int give(int fd, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid())
		return -EEXIST;
	return fchown(fd, uid, gid) ? -errno : 0;
}

/* The whole way: w->at is there, or -errno. */
static int walk_to(struct walk *w, const char *path, bool *made)
{
	if (!*path)
		return -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(w->rest, path);
	return walk(w, made);
}

int out_dir_find(const char *path, bool links, uid_t uid)
{
	struct walk w = {.at = -1, .uid = uid, .links = links};
	bool made = false;
	int err = walk_to(&w, path, &made);

	if (!err)
		return w.at;
	if (w.at >= 0)
		close(w.at);
	return err;
}

int out_dir_make(const char *path, bool links, uid_t uid, gid_t gid, bool *made)
{
	struct walk w = {.at = -1, .uid = uid, .links = links, .make = true};
	int fd = -1, err;

	*made = false;
	err = walk_to(&w, path, made);
	if (!err) {
		fd = open_beneath(w.at, ".", O_RDONLY | O_DIRECTORY, 0);
		err = fd < 0 ? fd : 0;
	}
	if (!err && *made && uid != (uid_t)-1)
		err = give(fd, uid, gid);
	/* Root may write anywhere but where the file system itself says no: find that out now. */
	if (!err && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		err = -errno;
	if (w.at >= 0)
		close(w.at);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

int out_dir_open(const char *path, bool links, uid_t uid, gid_t gid)
{
	bool made;

	return out_dir_make(path, links, uid, gid, &made);
}

static int check_cwd(void)
{
	char path[PATH_MAX];
	int err = faccessat(AT_FDCWD, ".", W_OK | X_OK, AT_EACCESS) ? -errno : 0;

	if (err)
		pr_err("Failed to make a directory for traces in '%s': %s; name one elsewhere with "
		       "-o\n",
		       getcwd(path, sizeof(path)) ? path : ".", strerror(-err));
	return err;
}

int out_dir_check(const char *dir, uid_t uid, gid_t gid, int *made)
{
	bool is_made;
	int fd;

	if (!dir)
		return check_cwd();
	fd = out_dir_make(dir, true, uid, gid, &is_made);
	if (fd < 0) {
		pr_err("Failed to open the directory '%s' for traces: %s; %sname another with -o\n",
		       dir, out_dir_error(fd),
		       fd == -ENOENT && *dir ? "its parent must exist; " : "");
		return fd;
	}
	if (made && is_made)
		*made = fd;
	else
		close(fd);
	return 0;
}

void unlink_ours(int dirfd, const char *path, int fd, int flags)
{
	char copy[PATH_MAX], *name;
	struct stat ours, there;

	snprintf(copy, sizeof(copy), "%s", path);
	name = basename(copy);
	if (!fstat(fd, &ours) && !fstatat(dirfd, name, &there, AT_SYMLINK_NOFOLLOW) &&
	    ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
		unlinkat(dirfd, name, flags);
}

/* A directory that was made has the last name of the way to it: nothing is made behind a link. */
void out_dir_unmake(const char *dir, int fd)
{
	int parent = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (parent >= 0)
		unlink_ours(parent, dir, fd, AT_REMOVEDIR);
	if (parent >= 0)
		close(parent);
	close(fd);
}
