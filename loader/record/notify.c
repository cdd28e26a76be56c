// SPDX-License-Identifier: BSD-2-Clause
/* sd_notify(3)'s protocol, which is a datagram; see notify.h. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "log.h"
#include "notify.h"

static struct sockaddr_un to;
static socklen_t to_len; /* 0: nobody asked */
static int sock = -1;
static uint64_t every_ns, next_ns; /* of the watchdog; 0: none */
static bool ready;		   /* the watchdog waits for us from then on */

static uint64_t number(const char *name)
{
	const char *v = getenv(name);

	return v ? strtoull(v, NULL, 10) : 0;
}

void notify__init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (len > 1 && len < sizeof(to.sun_path) && (*path == '/' || *path == '@')) {
		to.sun_family = AF_UNIX;
		memcpy(to.sun_path, path, len);
		if (*path == '@')
			to.sun_path[0] = 0;
		to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
		sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (!getenv("WATCHDOG_PID") || number("WATCHDOG_PID") == (uint64_t)getpid())
		every_ns = number("WATCHDOG_USEC") * 1000 / 2;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

void notify__say(const char *state)
{
	ready |= !strcmp(state, "READY=1");
	if (sock >= 0 && sendto(sock, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
				(const struct sockaddr *)&to, to_len) < 0)
		pr_debug("Failed to tell '%s' of '%s': %s, continuing\n",
			 to.sun_path[0] ? to.sun_path : "systemd", state, strerror(errno));
}

void notify__tick(uint64_t now_ns)
{
	if (!ready || !every_ns || now_ns < next_ns)
		return;
	notify__say("WATCHDOG=1");
	next_ns = now_ns + every_ns;
}
