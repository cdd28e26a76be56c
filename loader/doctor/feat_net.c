// SPDX-License-Identifier: BSD-2-Clause
/* TCP connections that end in all ways, for doctor's programs to see; see feat_priv.h. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "feat_priv.h"

#define PATIENCE_US 200000 /* where packets are dropped nobody answers */

struct talk {
	int listener, client, server;
	struct sockaddr_in addr; /* of the listener */
};

/* What is accepted has its listener's patience. */
static int talk_socket(void)
{
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int talk_listen(struct talk *t)
{
	socklen_t len = sizeof(t->addr);

	t->addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	t->listener = talk_socket();
	if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&t->addr, len) ||
	    getsockname(t->listener, (struct sockaddr *)&t->addr, &len))
		return -errno;
	return 0;
}

static int talk_connect(struct talk *t)
{
	t->client = talk_socket();
	if (t->client < 0)
		return -errno;
	return connect(t->client, (struct sockaddr *)&t->addr, sizeof(t->addr)) ? -errno : 0;
}

/* To a port that nobody listens at: the kernel drops that packet. */
static int be_refused(struct talk *t)
{
	int err = talk_connect(t);

	if (t->client >= 0)
		close(t->client);
	t->client = -1;
	return err == -ECONNREFUSED ? 0 : err ? err : -EISCONN;
}

/* Its last close leaves a byte unread: that is a reset. */
static int talk(struct talk *t)
{
	char buf[FEAT_TALK_BYTES] = "";

	t->server = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
	if (t->server < 0 || send(t->client, buf, sizeof(buf), 0) != sizeof(buf) ||
	    recv(t->server, buf, sizeof(buf), MSG_WAITALL) != sizeof(buf) ||
	    shutdown(t->client, SHUT_WR) || send(t->server, "", 1, 0) != 1 ||
	    recv(t->client, buf, 1, MSG_PEEK) != 1)
		return errno ? -errno : -EIO;
	return 0;
}

int feat_talk(void)
{
	struct talk t = {-1, -1, -1, {0}};
	int err;

	err = talk_listen(&t);
	if (!err)
		err = be_refused(&t);
	if (!err && listen(t.listener, 1))
		err = -errno;
	if (!err)
		err = talk_connect(&t);
	if (!err)
		err = talk(&t);
	if (t.client >= 0)
		close(t.client);
	if (t.server >= 0)
		close(t.server);
	if (t.listener >= 0)
		close(t.listener);
	return err;
}
