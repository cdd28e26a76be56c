// SPDX-License-Identifier: BSD-2-Clause
/*
 * slow_fs DIR MILLISECONDS MOUNTPOINT: what is written below MOUNTPOINT lands in DIR, and what is read comes from
 * there, each time after so long, as on a busy or distant disk; a stopped server is a disk that hangs. No
 * fallocate, as on NFS. And as there, that the disk is full is told by close(2) alone: while there is a file "full" in DIR.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int base; /* the directory, opened */
static unsigned int delay_us;

/* A path of FUSE's as one below the directory. */
static const char *below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int result(int res)
{
	return res < 0 ? -errno : 0;
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	return result(fi ? fstat((int)fi->fh, st)
			 : fstatat(base, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	int fd = openat(base, below(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);

	if (fd < 0)
		return -errno;
	fi->fh = (uint64_t)fd;
	fi->direct_io = 1; /* each write comes here, as it was made */
	return 0;
}

static int fs_write(const char *path, const char *buf, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	ssize_t n;

	(void)path;
	usleep(delay_us);
	n = pwrite((int)fi->fh, buf, size, off);
	return n < 0 ? -errno : (int)n;
}

static int fs_flush(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	(void)fi;
	return faccessat(base, "full", F_OK, 0) ? 0 : -ENOSPC;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	int fd = openat(base, below(path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	fi->fh = (uint64_t)fd;
	return 0;
}

static int fs_read(const char *path, char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	ssize_t n;

	(void)path;
	usleep(delay_us);
	n = pread((int)fi->fh, buf, size, off);
	return n < 0 ? -errno : (int)n;
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)path;
	return fi ? result(ftruncate((int)fi->fh, size)) : -ENOTSUP;
}

static int fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	(void)fi;
	return result(fchownat(base, below(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	return result(fchmodat(base, below(path), mode, 0));
}

static int fs_mkdir(const char *path, mode_t mode)
{
	return result(mkdirat(base, below(path), mode));
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return result(close((int)fi->fh));
}

static const struct fuse_operations operations = {
	.getattr = fs_getattr,
	.create = fs_create,
	.open = fs_open,
	.read = fs_read,
	.write = fs_write,
	.flush = fs_flush,
	.truncate = fs_truncate,
	.chown = fs_chown,
	.chmod = fs_chmod,
	.mkdir = fs_mkdir,
	.release = fs_release,
};

int main(int argc, char **argv)
{
	/* One thread: one disk. */
	char *args[] = {argv[0], "-f", "-s", argc == 4 ? argv[3] : NULL};

	if (argc != 4) {
		fprintf(stderr, "Usage: slow_fs DIR MILLISECONDS MOUNTPOINT\n");
		return 2;
	}
	base = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0) {
		perror(argv[1]);
		return 1;
	}
	delay_us = (unsigned int)strtoul(argv[2], NULL, 10) * 1000;
	return fuse_main(4, args, &operations, NULL);
}
