// SPDX-License-Identifier: BSD-2-Clause
/*
 * What keeps a CPU from a job's thread, with a name that a trace can tell: a busy loop, or packets whose
 * receiving side the kernel handles in soft interrupts. Where and how it runs, taskset and chrt say.
 *
 *   sched_load hog NAME                    computes
 *   sched_load hog NAME BURST_US PAUSE_US  computes and sleeps in turn; a line "begin end" (us) for each burst
 *   sched_load forks NAME US BURST_US PAUSE_US
 *                                          processes, one after the other, each of which is there for so long, and
 *                                          computes and sleeps in turn
 *   sched_load flood PERCENT               UDP packets on the loopback device, for so much of the time of the CPU
 *                                          that gets them
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIFE_S 60 /* whoever forgets it */
#define BURST  60 /* of packets whose way is timed */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* A line only for a burst that may be followed by another: it ends by a signal. */
static void hog(long burst_us, long pause_us)
{
	uint64_t begin = now_ns(), now;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (;;) {
		now = now_ns();
		if (!burst_us || now < begin + (uint64_t)burst_us * 1000)
			continue;
		printf("%.3f %.3f\n", begin / 1e3, now / 1e3);
		usleep(pause_us);
		begin = now_ns();
	}
}

static void compute(long us)
{
	uint64_t end = now_ns() + (uint64_t)us * 1000;

	while (now_ns() < end)
		;
}

/* As a compiler is started for each file. */
static void forks(long us, long burst_us, long pause_us)
{
	uint64_t end;

	while (fork() > 0)
		wait(NULL);
	for (end = now_ns() + (uint64_t)us * 1000; now_ns() < end; usleep(pause_us))
		compute(burst_us);
}

/* Bursts, with pauses by how long each took to get through. */
static void flood(long percent)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(9),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval patience = {.tv_usec = 50000};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), i;
	uint64_t begin;
	char data[64];

	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
		perror("sched_load: Failed to make a socket");
		return;
	}
	memset(data, 0, sizeof(data));
	for (;;) {
		begin = now_ns();
		for (i = 0; i < BURST; i++)
			send(fd, data, sizeof(data), MSG_DONTWAIT);
		for (i = 0; i < BURST && recv(fd, data, sizeof(data), 0) > 0; i++)
			;
		usleep((now_ns() - begin) / 1000 * (100 - percent) / percent);
	}
}

int main(int argc, char **argv)
{
	alarm(LIFE_S);
	if (argc == 3 && !strcmp(argv[1], "flood") && atol(argv[2]) > 0 && atol(argv[2]) < 100) {
		flood(atol(argv[2]));
		return 1;
	}
	if (argc >= 3 && !strcmp(argv[1], "hog")) {
		prctl(PR_SET_NAME, argv[2]);
		hog(argc == 5 ? atol(argv[3]) : 0, argc == 5 ? atol(argv[4]) : 0);
	}
	if (argc == 6 && !strcmp(argv[1], "forks")) {
		prctl(PR_SET_NAME, argv[2]);
		forks(atol(argv[3]), atol(argv[4]), atol(argv[5]));
		return 0;
	}
	fprintf(stderr, "Usage: sched_load hog NAME [BURST_US PAUSE_US] | "
			"forks NAME US BURST_US PAUSE_US | flood PERCENT\n");
	return 2;
}
