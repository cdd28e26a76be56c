// SPDX-License-Identifier: BSD-2-Clause
/*
 * Bootstrap: the unique id carries the address of a root listener, as NCCL's does; the root thread
 * then gathers and hands out what the ranks tell each other (addresses, names of shared memory).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "internal.h"

struct boot_id {
	uint64_t magic;
	struct sockaddr_in addr;
};

struct root {
	int listen_fd;
	uint64_t magic;
	int timeout_s;
};

struct join_msg {
	uint64_t magic;
	int32_t rank;
	int32_t nranks;
};

static int boot_timeout_s(void)
{
	return settings()->timeout_s;
}

static void set_timeout(int fd)
{
	struct timeval tv = {.tv_sec = boot_timeout_s()};
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof(one));
}

/* The rank's element of STANDIN_BIND_ADDR=A[,B...]; the loopback address without it. */
struct in_addr boot_bind_addr(int rank)
{
	const char *s = getenv("STANDIN_BIND_ADDR");
	struct in_addr ip = {.s_addr = htonl(INADDR_LOOPBACK)};
	char buf[INET_ADDRSTRLEN];
	int n = 1, i;
	size_t len;
	const char *p;

	if (!s || !*s)
		return ip;
	for (p = s; *p; p++)
		n += *p == ',';
	for (p = s, i = rank % n; i > 0; i--)
		p = strchr(p, ',') + 1;
	len = strcspn(p, ",");
	if (len < sizeof(buf)) {
		memcpy(buf, p, len);
		buf[len] = '\0';
		if (inet_pton(AF_INET, buf, &ip) == 1)
			return ip;
	}
	si_warn("Failed to read address %d of STANDIN_BIND_ADDR '%s', taking 127.0.0.1", rank, s);
	ip.s_addr = htonl(INADDR_LOOPBACK);
	return ip;
}

/* ---- the root ---- */

static int root_accept(struct root *r, int **fds)
{
	struct pollfd pfd = {.fd = r->listen_fd, .events = POLLIN};
	int n = -1, have = 0, fd;
	struct join_msg m;

	while (n < 0 || have < n) {
		if (poll(&pfd, 1, r->timeout_s * 1000) <= 0)
			return -ETIMEDOUT;
		fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		set_timeout(fd);
		if (net_read_all(fd, &m, sizeof(m)) || m.magic != r->magic || m.nranks < 1 ||
		    m.rank < 0 || m.rank >= m.nranks) {
			close(fd);
			continue;
		}
		if (n < 0) {
			n = m.nranks;
			*fds = malloc(n * sizeof(**fds));
			if (!*fds)
				return -ENOMEM;
			memset(*fds, -1, n * sizeof(**fds));
		}
		if (m.rank >= n || (*fds)[m.rank] >= 0) {
			close(fd);
			continue;
		}
		(*fds)[m.rank] = fd;
		have++;
	}
	return n;
}

/* One round: a block from each, all blocks to each. Fails when any rank goes. */
static int root_round(int *fds, int n)
{
	uint32_t size = 0, got;
	char *all = NULL;
	int i, err = 0;

	for (i = 0; i < n && !err; i++) {
		/* Between rounds a rank may be busy for hours: only the first byte may take that. */
		struct pollfd pfd = {.fd = fds[i], .events = POLLIN};

		poll(&pfd, 1, -1);
		err = net_read_all(fds[i], &got, sizeof(got));
		if (err)
			break;
		if (!i) {
			size = got;
			all = malloc((size_t)n * size + 1);
		}
		if (!all || got != size)
			err = -EINVAL;
		else
			err = net_read_all(fds[i], all + (size_t)i * size, size);
	}
	for (i = 0; i < n && !err; i++)
		err = net_write_all(fds[i], all, (size_t)n * size);
	free(all);
	return err;
}

static void *root_main(void *arg)
{
	struct root *r = arg;
	int *fds = NULL, n, i;

	n = root_accept(r, &fds);
	close(r->listen_fd);
	while (n > 0 && !root_round(fds, n))
		;
	for (i = 0; fds && i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
	free(r);
	return NULL;
}

int boot_make_id(ncclUniqueId *id, struct in_addr ip)
{
	struct root *r = calloc(1, sizeof(*r));
	struct boot_id b = {0};
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	if (!r)
		return -ENOMEM;
	if (getrandom(&b.magic, sizeof(b.magic), 0) != sizeof(b.magic))
		b.magic = now_ns() ^ (uint64_t)getpid() << 32;
	r->magic = b.magic;
	r->timeout_s = boot_timeout_s();
	r->listen_fd = net_listen(&ip, &b.addr);
	if (r->listen_fd < 0) {
		err = r->listen_fd;
		free(r);
		return err;
	}
	memset(id, 0, sizeof(*id));
	memcpy(id, &b, sizeof(b));
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = -pthread_create(&thread, &attr, root_main, r);
	pthread_attr_destroy(&attr);
	return err;
}

/* ---- the ranks ---- */

int boot_join(const ncclUniqueId *id, int rank, int nranks, struct in_addr ip, int *fd)
{
	struct join_msg m = {.rank = rank, .nranks = nranks};
	struct boot_id b;
	int err;

	memcpy(&b, id, sizeof(b));
	m.magic = b.magic;
	*fd = net_connect(&b.addr, &ip, boot_timeout_s() * 1000);
	if (*fd < 0)
		return *fd;
	set_timeout(*fd);
	err = net_write_all(*fd, &m, sizeof(m));
	if (err) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

int boot_allgather(int fd, const void *mine, void *all, size_t size, int nranks)
{
	uint32_t sz = size;
	int err = net_write_all(fd, &sz, sizeof(sz));

	if (!err)
		err = net_write_all(fd, mine, size);
	if (!err)
		err = net_read_all(fd, all, size * nranks);
	if (err)
		si_warn("Failed to exchange bootstrap data with the other ranks: %s",
			strerror(err == -EAGAIN ? ETIMEDOUT : -err));
	return err;
}
