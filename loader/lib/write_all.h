/* SPDX-License-Identifier: BSD-2-Clause */
/* write(2) until all is written. In a header, as what writes is linked into tests by itself. */
#ifndef NCCLSCOPE_WRITE_ALL_H
#define NCCLSCOPE_WRITE_ALL_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* From *done on, which is how far it has come, also when it fails. 0 or -errno; -ENOSPC: it takes nothing, and does not say why. */
static inline int write_from(int fd, const void *data, size_t len, size_t *done)
{
	ssize_t n;

	while (*done < len) {
		n = write(fd, (const char *)data + *done, len - *done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		*done += (size_t)n;
	}
	return 0;
}

static inline int write_all(int fd, const void *data, size_t len)
{
	size_t done = 0;

	return write_from(fd, data, len, &done);
}

#endif
