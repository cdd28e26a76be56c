// SPDX-License-Identifier: BSD-2-Clause
/* A process that may hang; see patience.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "aside.h"
#include "clock.h"
#include "notify.h"
#include "patience.h"
#include "pid_stat.h"
#include "rescue.h"

#define PATIENCE_NS (1000 * 1000000ull)	 /* asleep: a disk is not that slow as a rule */
#define PATIENT_NS  (10000 * 1000000ull) /* for one that runs, or waits for a CPU */
#define LOOK_MS	    50
#define RESCUE_NS   (100 * 1000000ull) /* it may be kept from its CPU */
#define RESCUE_S    1		       /* of a CPU at most, real-time, at a time */
#define HANGING_MAX 12		       /* the unit's TasksMax has room for them */
#define PER_USER    2
#define BUDGET_NS   (2000 * 1000000ull) /* a user's processes may be waited for so long at once, */
#define BUDGET	    20			/* and for one part in so many of the time */
#define WAITS_MAX   64
#define PAUSE_S	    30
#define PAUSE_MAX_S 600

/* What goes before the bytes; a descriptor comes with it, if there is one. */
struct envelope {
	int (*fn)(struct patience_call *call); /* the same address there: it is a fork */
	size_t len;
	int err; /* what fn returned; on the way back */
	bool with_fd;
};

/* The process, and our end of its socket; pid 0: none. */
static struct reader {
	pid_t pid;
	int sock;
} reader = {.sock = -1};

/* Those that hang, and whom they were looking at; pid 0: a free place. */
static struct {
	pid_t pid;
	uint32_t uid;
} hanging[HANGING_MAX];

/*
 * Users that were waited for: until when all that they took is more than their part of the time. Where there are more of them,
 * those that took the most are known.
 */
static struct wait {
	uint32_t uid;
	uint64_t until_ns;
} waits[WAITS_MAX];

/* ---- Over the socket ---------------------------------------------------------------------------- */

/* Both ends: -EPIPE when the other one is gone. */
static int send_all(int sock, const void *buf, size_t len)
{
	const char *at = buf;
	ssize_t n;

	while (len) {
		n = send(sock, at, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int send_envelope(int sock, const struct envelope *e, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)e, .iov_len = sizeof(*e)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (e->with_fd) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*e) ? 0 : n < 0 ? -errno : -EPIPE;
}

/* What the call under way has been waited for while the reader slept: that it waits for a CPU is not its user's doing. */
static uint64_t asleep_ns;

/* Until there is something to receive. For the reader for good, `watched` -1; else until it hangs: -ETIMEDOUT. */
static int wait_for(int sock, pid_t watched)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint64_t begin = monotonic_ns(), took;
	struct pid_stat st;
	bool runs;
	int n;

	for (;;) {
		n = poll(&p, 1, watched < 0 ? -1 : LOOK_MS);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		took = monotonic_ns() - begin;
		if (watched < 0)
			continue;
		rescue__here(begin + took);
		notify__tick(begin + took); /* waiting is bounded: we are alive */
		runs = !pid_stat__read(watched, &st) && st.state == 'R';
		asleep_ns += runs ? 0 : LOOK_MS * 1000000ull;
		if (took < RESCUE_NS)
			continue;
		if (runs) /* it stays so: where it had to wait for a CPU it would again */
			rescue__raise(watched);
		if (took > (runs ? PATIENT_NS : PATIENCE_NS))
			return -ETIMEDOUT;
	}
}

static int recv_all(int sock, void *buf, size_t len, pid_t watched)
{
	char *at = buf;
	ssize_t n;
	int err;

	while (len) {
		err = wait_for(sock, watched);
		if (err)
			return err;
		n = recv(sock, at, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int recv_envelope(int sock, struct envelope *e, int *fd, pid_t watched)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = e, .iov_len = sizeof(*e)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c;
	ssize_t n;
	int err = wait_for(sock, watched);

	*fd = -1;
	if (err)
		return err;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return recv_all(sock, (char *)e + n, sizeof(*e) - (size_t)n, watched);
}

/* An envelope and its bytes, malloc'ed: NULL where there are none. */
static int recv_letter(int sock, struct envelope *e, void **bytes, int *fd, pid_t watched)
{
	int err = recv_envelope(sock, e, fd, watched);

	*bytes = NULL;
	if (!err && e->len) {
		*bytes = malloc(e->len);
		err = *bytes ? recv_all(sock, *bytes, e->len, watched) : -ENOMEM;
	}
	if (err) {
		free(*bytes);
		*bytes = NULL;
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
	return err;
}

/* ---- The other process ------------------------------------------------------------------------- */

/* One call. -errno: the socket's end. */
static int serve(int sock)
{
	struct patience_call call = {.out_fd = -1};
	struct envelope e;
	void *in;
	int err = recv_letter(sock, &e, &in, &call.in_fd, -1);

	if (err)
		return err;
	call.in = in;
	call.in_len = e.len;
	e.err = e.fn(&call);
	e.len = call.out ? call.out_len : 0;
	e.with_fd = call.out_fd >= 0;
	err = send_envelope(sock, &e, call.out_fd);
	if (!err)
		err = send_all(sock, call.out, e.len);
	free(in);
	free(call.out);
	if (call.in_fd >= 0)
		close(call.in_fd);
	if (call.out_fd >= 0)
		close(call.out_fd);
	return err;
}

static _Noreturn void be_reader(int sock, pid_t parent)
{
	/* What it reads is hostile: however long that takes, as a real-time process it is not to take a CPU from others. */
	const struct rlimit rttime = {RESCUE_S * 1000000, RESCUE_S * 1000000};

	setrlimit(RLIMIT_RTTIME, &rttime);
	aside__begin("ncclscope-read", parent, sock);
	while (!serve(ASIDE_SOCK))
		;
	_exit(0);
}

static int reader_new(void)
{
	pid_t parent = getpid(), pid;
	int s[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		return -errno;
	pid = fork();
	if (!pid)
		be_reader(s[1], parent);
	close(s[1]);
	if (pid < 0) {
		close(s[0]);
		return -errno;
	}
	reader = (struct reader){.pid = pid, .sock = s[0]};
	return 0;
}

/* ---- This one ---------------------------------------------------------------------------------- */

/* A place for one more of that user's that hangs; -1: there may be none. Those that came to an end make room. */
static int hanging_place(uint32_t uid)
{
	int i, theirs = 0, place = -1;

	for (i = 0; i < HANGING_MAX; i++) {
		if (hanging[i].pid && waitpid(hanging[i].pid, NULL, WNOHANG))
			hanging[i].pid = 0;
		theirs += hanging[i].pid && hanging[i].uid == uid;
		if (!hanging[i].pid)
			place = i;
	}
	return theirs < PER_USER ? place : -1;
}

/* That user's; else the place of who took least. */
static struct wait *wait_of(uint32_t uid)
{
	struct wait *w, *least = waits;

	for (w = waits; w < waits + WAITS_MAX; w++) {
		if (w->until_ns && w->uid == uid)
			return w;
		if (w->until_ns < least->until_ns)
			least = w;
	}
	return least;
}

/* Each call has its patience; many that come just within it would have none left for whoever waits for us. */
static bool has_budget(uint32_t uid)
{
	const struct wait *w = wait_of(uid);

	return w->uid != uid || w->until_ns <= monotonic_ns() + BUDGET * BUDGET_NS;
}

static void wait_count(uint32_t uid)
{
	struct wait *w = wait_of(uid);
	uint64_t now_ns = monotonic_ns();

	if (!asleep_ns)
		return;
	if (w->uid != uid || w->until_ns < now_ns)
		*w = (struct wait){.uid = uid, .until_ns = now_ns};
	w->until_ns += BUDGET * asleep_ns;
}

uint64_t patience__pause(uint64_t last_ns)
{
	const uint64_t max_ns = PAUSE_MAX_S * NSEC_PER_SEC;
	uint64_t ns = last_ns ? 2 * last_ns : PAUSE_S * NSEC_PER_SEC;

	return ns < max_ns ? ns : max_ns;
}

void patience__end(void)
{
	if (!reader.pid)
		return;
	close(reader.sock);
	waitpid(reader.pid, NULL, 0);
	reader = (struct reader){.sock = -1};
}

static void leave_behind(int place, uint32_t uid)
{
	kill(reader.pid, SIGKILL); /* it dies when it comes back */
	close(reader.sock);
	hanging[place].pid = reader.pid;
	hanging[place].uid = uid;
	reader = (struct reader){.sock = -1};
}

/* Asks the reader, and waits for its answer. */
static int call_reader(int (*fn)(struct patience_call *call), struct patience_call *call,
		       struct envelope *e)
{
	int err;

	*e = (struct envelope){.fn = fn, .len = call->in_len, .with_fd = call->in_fd >= 0};
	err = send_envelope(reader.sock, e, call->in_fd);
	if (!err)
		err = send_all(reader.sock, call->in, call->in_len);
	if (!err)
		err = recv_letter(reader.sock, e, &call->out, &call->out_fd, reader.pid);
	return err;
}

int patience__call(int (*fn)(struct patience_call *call), struct patience_call *call, uint32_t uid)
{
	int place = hanging_place(uid), err;
	struct envelope e;

	call->out = NULL;
	call->out_len = 0;
	call->out_fd = -1;
	err = place < 0 || !has_budget(uid) ? -EBUSY : reader.pid ? 0 : reader_new();
	if (err)
		return err;
	asleep_ns = 0;
	err = call_reader(fn, call, &e);
	wait_count(uid);
	if (err) { /* it hangs; or whatever is under way there is out of step with us */
		leave_behind(place, uid);
		return err;
	}
	call->out_len = e.len;
	return e.err;
}
