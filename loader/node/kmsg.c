// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's log; see kmsg.h. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "kmsg.h"

#define RECORD_MAX 8192 /* the kernel's own bound, CONSOLE_EXT_LOG_MAX, since 3.5 */
#define FACILITY   8	/* from here on it is not the kernel's: syslog(3) */

/* A number and the character behind it. False: there is none of these. */
static bool take_number(const char **at, const char *end, char until, uint64_t *n)
{
	const char *p = *at;

	*n = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, (uint64_t)(*p - '0'), n))
			return false;
	if (p == *at || p == end || *p != until)
		return false;
	*at = p + 1;
	return true;
}

/* Where the kernel's own lie is not for everybody. ("osc-ffff8801...", of Lustre; the kernel's %p has been a hash since 4.15.) */
static void mask_addresses(char *text, size_t len)
{
	size_t i, k;

	for (i = 0; i + 12 <= len; i = k + 1) {
		for (k = i; k < len && isxdigit((unsigned char)text[k]); k++)
			;
		if (k - i >= 12 && !memcmp(text + i, "ffff", 4))
			memset(text + i, 'x', k - i);
	}
}

/* "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT\n KEY=VALUE\n..." (Documentation/ABI/testing/dev-kmsg) */
bool kmsg__parse(const char *record, size_t len, struct kmsg_line *line, uint64_t *seq)
{
	const char *at = record, *end = record + len, *text;
	uint64_t priority, us;

	*seq = 0;
	if (!take_number(&at, end, ',', &priority) || !take_number(&at, end, ',', seq) ||
	    !take_number(&at, end, ',', &us))
		return false;
	text = memchr(at, ';', (size_t)(end - at));
	if (!text || priority >= FACILITY)
		return false;
	text++;
	at = memchr(text, '\n', (size_t)(end - text));
	line->len = (size_t)((at ? at : end) - text);
	if (line->len > sizeof(line->text))
		line->len = sizeof(line->text);
	memcpy(line->text, text, line->len);
	mask_addresses(line->text, line->len);
	line->device = at && memmem(at, (size_t)(end - at), "\n DEVICE=", 9);
	line->level = (uint32_t)priority;
	line->ns = us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX;
	line->sign = kmsg__sign(line);
	return true;
}

int kmsg__open(struct kmsg *k)
{
	*k = (struct kmsg){.fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC),
			   .opened_ns = monotonic_ns()};
	return k->fd < 0 ? -errno : 0;
}

void kmsg__close(struct kmsg *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

int kmsg__next(struct kmsg *k, struct kmsg_line *line, uint32_t *budget)
{
	char record[RECORD_MAX];
	uint64_t seq;
	ssize_t n;
	bool ours;

	while (k->fd >= 0 && *budget) {
		n = read(k->fd, record, sizeof(record));
		if (n < 0 &&
		    (errno == EPIPE || errno == EINTR)) /* overwritten: goes on with the oldest */
			continue;
		if (n < 0 && errno == EAGAIN) {
			k->is_read = true;
			return 0;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		--*budget;
		ours = kmsg__parse(record, (size_t)n, line, &seq);
		if (k->next && seq > k->next)
			k->lost += seq - k->next;
		k->next = seq + 1;
		if (ours && line->sign)
			return 1;
	}
	return k->fd >= 0 ? 0 : -EBADF;
}

bool kmsg__has_share(struct kmsg *k, enum kmsg_sign sign, uint64_t now)
{
	uint64_t at = k->share_ns[sign] > now ? k->share_ns[sign] : now;

	if (at - now > (KMSG_BURST - 1) * (uint64_t)NSEC_PER_SEC) {
		k->lost++;
		return false;
	}
	k->share_ns[sign] = at + NSEC_PER_SEC;
	return true;
}
