// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which connection used which socket, and how many bytes went over it: what the trace says of flows
 * is held against this. STANDIN_FLOWS names the file; a connection's lines come when it is closed, or
 * when the process exits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sock *all;

static void put_addr(char *to, size_t size, const struct sockaddr_in *a)
{
	char ip[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &a->sin_addr, ip, sizeof(ip));
	snprintf(to, size, "%s:%d", ip, ntohs(a->sin_port));
}

static void wire_name(struct wire *w)
{
	struct sockaddr_in local = {0}, peer = {0};
	socklen_t len = sizeof(local);
	size_t n;

	getsockname(w->fd, (struct sockaddr *)&local, &len);
	len = sizeof(peer);
	getpeername(w->fd, (struct sockaddr *)&peer, &len);
	put_addr(w->flow, sizeof(w->flow), &local);
	n = strlen(w->flow);
	w->flow[n++] = '>';
	put_addr(w->flow + n, sizeof(w->flow) - n, &peer);
}

/* What the kernel has counted, in times of us. Nothing for a socket that is no longer one. */
static int put_tcp(char *to, size_t size, const struct wire *w)
{
	struct tcp_info t = {0};
	socklen_t len = sizeof(t);

	if (getsockopt(w->fd, IPPROTO_TCP, TCP_INFO, &t, &len))
		return snprintf(to, size, "null");
	return snprintf(to, size,
			"{\"retrans\":%u,\"rxOoo\":%u,\"dsack\":%u,\"rtt\":%u,\"rttMin\":%u,"
			"\"mss\":%u,\"bytesAcked\":%" PRIu64 ",\"bytesReceived\":%" PRIu64
			",\"busy\":%" PRIu64 ",\"rwndLimited\":%" PRIu64
			",\"sndbufLimited\":%" PRIu64 "}",
			t.tcpi_total_retrans, t.tcpi_rcv_ooopack, t.tcpi_dsack_dups, t.tcpi_rtt,
			t.tcpi_min_rtt, t.tcpi_snd_mss, (uint64_t)t.tcpi_bytes_acked,
			(uint64_t)t.tcpi_bytes_received, (uint64_t)t.tcpi_busy_time,
			(uint64_t)t.tcpi_rwnd_limited, (uint64_t)t.tcpi_sndbuf_limited);
}

static void write_wire(int fd, const struct sock *s, const struct wire *w, const char *role)
{
	struct stat ns = {0};
	char line[1024];
	int n;

	stat("/proc/thread-self/ns/net", &ns);
	n = snprintf(line, sizeof(line),
		     "{\"pid\":%d,\"comm\":\"0x%" PRIx64 "\",\"rank\":%d,\"src\":%d,\"dst\":%d,"
		     "\"peer\":%d,\"channel\":%d,\"isSend\":%s,\"kind\":\"%s\",\"role\":\"%s\","
		     "\"flow\":\"%s\",\"netns\":%lu,\"txBytes\":%" PRIu64 ",\"rxBytes\":%" PRIu64
		     ",\"greeting\":%zu,\"tcp\":",
		     (int)getpid(), s->id.comm_hash, s->rank, s->id.src, s->id.dst,
		     s->is_send ? s->id.dst : s->id.src, s->id.channel,
		     s->is_send ? "true" : "false", s->id.p2p ? "p2p" : "coll", role, w->flow,
		     (unsigned long)ns.st_ino, w->tx, w->rx, sizeof(struct hello));
	n += put_tcp(line + n, sizeof(line) - n, w);
	n += snprintf(line + n, sizeof(line) - n, "}\n");
	/* In one piece: several processes write it. */
	if (write(fd, line, n) != n)
		si_warn("Failed to write '%s': %s", settings()->flows, strerror(errno));
}

static void write_sock(const struct sock *s)
{
	int fd = open(settings()->flows, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	int i;

	if (fd < 0) {
		si_warn("Failed to open '%s': %s", settings()->flows, strerror(errno));
		return;
	}
	write_wire(fd, s, &s->ctrl, "ctrl");
	for (i = 0; i < s->nsocks; i++)
		write_wire(fd, s, &s->data[i], "data");
	close(fd);
}

/* Those that nobody has closed: a job that failed, or does not destroy its communicators. */
static void flows_exit(void)
{
	struct sock *s;

	pthread_mutex_lock(&lock);
	for (s = all; s; s = s->next_flow) {
		write_sock(s);
		s->link = NULL;
	}
	all = NULL;
	pthread_mutex_unlock(&lock);
}

static void flows_once(void)
{
	atexit(flows_exit);
}

void flows_add(struct sock *s)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int i;

	wire_name(&s->ctrl);
	for (i = 0; i < s->nsocks; i++)
		wire_name(&s->data[i]);
	if (!settings()->flows)
		return;
	pthread_once(&once, flows_once);
	pthread_mutex_lock(&lock);
	s->next_flow = all;
	s->link = &all;
	if (all)
		all->link = &s->next_flow;
	all = s;
	pthread_mutex_unlock(&lock);
}

void flows_remove(struct sock *s)
{
	pthread_mutex_lock(&lock);
	if (s->link) {
		write_sock(s);
		*s->link = s->next_flow;
		if (s->next_flow)
			s->next_flow->link = s->link;
		s->link = NULL;
	}
	pthread_mutex_unlock(&lock);
}
