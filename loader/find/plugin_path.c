// SPDX-License-Identifier: BSD-2-Clause
/* Finds the NCCL profiler plugin on this node: given, in the environment, or installed with us. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plugin_path.h"

#ifndef NCCLSCOPE_LIBDIR
#define NCCLSCOPE_LIBDIR "/usr/local/lib"
#endif

static int real_file(const char *path, char *buf, size_t len)
{
	char real[PATH_MAX];
	struct stat st;

	if (!realpath(path, real) || stat(real, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (strlen(real) >= len)
		return -ENAMETOOLONG;
	strcpy(buf, real);
	return 0;
}

static int executable_dir(char *buf, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", buf, len);
	char *slash;

	if (n < 0)
		return -errno;
	if ((size_t)n >= len)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	slash = strrchr(buf, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

const char *plugin__named(const char *opt)
{
	const char *env = getenv("NCCLSCOPE_PLUGIN");

	if (opt && *opt)
		return opt;
	return env && *env ? env : NULL;
}

int plugin__find(const char *opt, char *buf, size_t len)
{
	static const char *const beside[] = {"", "/../lib", "/../lib/ncclscope"};
	const char *named = plugin__named(opt);
	char dir[PATH_MAX], path[2 * PATH_MAX];
	unsigned int i;

	if (named)
		return real_file(named, buf, len);
	if (!executable_dir(dir, sizeof(dir))) {
		for (i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
			snprintf(path, sizeof(path), "%s%s/%s", dir, beside[i], PLUGIN_FILE);
			if (!real_file(path, buf, len))
				return 0;
		}
	}
	return real_file(NCCLSCOPE_LIBDIR "/" PLUGIN_FILE, buf, len) ? -ENOENT : 0;
}
