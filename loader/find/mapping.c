// SPDX-License-Identifier: BSD-2-Clause
/* Lines of /proc/PID/maps; see mapping.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "mapping.h"

const char *mapping__base(const char *line)
{
	const char *slash = strrchr(line, '/');

	return slash ? slash + 1 : "";
}

bool mapping__parse(struct mapping *m, char *line)
{
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
		   &m->end, m->perms, &m->offset, &m->dev_major, &m->dev_minor, &m->ino, &at) < 7 ||
	    !at || line[at] != '/')
		return false;
	m->name = line + at;
	m->name[strcspn(m->name, "\n")] = 0;
	return true;
}

void mapping__path(const struct mapping *m, pid_t pid, char *path, size_t size)
{
	snprintf(path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start, m->end);
}
