// SPDX-License-Identifier: BSD-2-Clause
/* GPUs: names, and the process that looks at them; see gpu.h. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "aside.h"
#include "clock.h"
#include "gpu.h"

/* ---- Names ------------------------------------------------------------------------------------- */

/* Of clocks held down: as their reasons. */
const char *const gpu_value_names[GPU_VALUES] = {
	[GPU_SM_CLOCK] = "smClock",
	[GPU_SM_CLOCK_MAX] = "smClockMax",
	[GPU_MEM_CLOCK] = "memClock",
	[GPU_UTIL] = "util",
	[GPU_TEMPERATURE] = "temperature",
	[GPU_POWER] = "power",
	[GPU_POWER_LIMIT] = "powerLimit",
	[GPU_PCIE_WIDTH] = "pcieWidth",
	[GPU_PCIE_WIDTH_MAX] = "pcieWidthMax",
	[GPU_REASONS] = "reasons",
	[GPU_HELD_SW_POWER_CAP] = "swPowerCap",
	[GPU_HELD_SYNC_BOOST] = "syncBoost",
	[GPU_HELD_SW_THERMAL] = "swThermalSlowdown",
	[GPU_HELD_HW_THERMAL] = "hwThermalSlowdown",
	[GPU_HELD_POWER_BRAKE] = "hwPowerBrakeSlowdown",
	[GPU_HELD_THERMAL] = "thermal",
	[GPU_HELD_BOARD_LIMIT] = "boardLimit",
	[GPU_HELD_RELIABILITY] = "reliability",
	[GPU_ECC_CORRECTED] = "eccCorrected",
	[GPU_ECC_UNCORRECTED] = "eccUncorrected",
	[GPU_NVLINK_CRC_FLIT] = "nvlinkCrcFlit",
	[GPU_NVLINK_CRC_DATA] = "nvlinkCrcData",
	[GPU_NVLINK_REPLAY] = "nvlinkReplay",
	[GPU_NVLINK_RECOVERY] = "nvlinkRecovery",
	[GPU_PCIE_REPLAY] = "pcieReplay",
	[GPU_NVLINK_SENT] = "nvlinkSent",
	[GPU_NVLINK_RECEIVED] = "nvlinkReceived",
};

const char *gpu_reason_name(uint32_t bit)
{
	/* nvmlClocksEventReason*, in the order of their bits. */
	static const char *const names[GPU_REASON_BITS] = {
		"gpuIdle",     "applicationsClocks", "swPowerCap",	  "hwSlowdown",
		"syncBoost",   "swThermalSlowdown",  "hwThermalSlowdown", "hwPowerBrakeSlowdown",
		"displayClock"};

	return bit < GPU_REASON_BITS ? names[bit] : NULL;
}

bool gpu_sample__ok(const struct gpu_sample *s)
{
	size_t i;

	for (i = 0; i < sizeof(s->uuid); i++)
		if (!strchr("0123456789abcdef-", s->uuid[i]) || !s->uuid[i])
			return false;
	return s->index < GPU_MAX && s->lost <= 1 && !(s->known >> GPU_VALUES) &&
	       memchr(s->pci, 0, sizeof(s->pci)) && memchr(s->name, 0, sizeof(s->name));
}

/* ---- The process ------------------------------------------------------------------------------- */

#define REST		  5 /* times as long as an answer took: GPUs are not to be kept busy by us */
#define REST_MAX_NS	  (30 * NSEC_PER_SEC)
#define RETRY_NS	  (10 * NSEC_PER_SEC) /* NVML, or its driver, may come later than we */
#define PATIENCE_NS	  (5 * NSEC_PER_SEC)
#define FIRST_PATIENCE_NS (60 * NSEC_PER_SEC) /* GPUs may have to be woken first */

static void be_sampler(int sock, const char *library)
{
	gpu_nvml__run(sock, library ?: GPU_LIBRARY);
}

int gpu_sampler__start(struct gpu_sampler *g, const char *library)
{
	*g = (struct gpu_sampler){.fd = -1};
	return aside__start(&g->fd, &g->pid, "ncclscope-gpu", be_sampler, library);
}

void gpu_sampler__ask(struct gpu_sampler *g, uint64_t now)
{
	if (g->fd < 0 || g->asked_ns || now < g->next_ns)
		return;
	if (send(g->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
		return;
	if (now > g->last_ns + GPU_IDLE_MS * UINT64_C(1000000) / 2)
		g->answered = false; /* it has NVML closed by now, or soon */
	g->asked_ns = g->last_ns = now;
}

/* How long it took is its own word: we may have come late to read it. */
static void answered(struct gpu_sampler *g, const struct gpu_message *m)
{
	uint64_t now = monotonic_ns(), rest;
	bool failed = m->kind == GPU_FAILED;

	rest = m->took_ns < REST_MAX_NS / REST ? REST * m->took_ns : REST_MAX_NS;
	g->next_ns = failed ? now + RETRY_NS : g->asked_ns + GPU_EVERY_MS * UINT64_C(1000000);
	if (!failed && g->next_ns < now + rest)
		g->next_ns = now + rest;
	g->asked_ns = 0;
	g->answered |= !failed;
	g->warned = false;
}

int gpu_sampler__next(struct gpu_sampler *g, struct gpu_message *m, int *sig)
{
	ssize_t n;

	*sig = 0;
	if (g->fd < 0) {
		*sig = aside__reap(&g->pid, 1);
		return -ENODATA;
	}
	do {
		do
			n = recv(g->fd, m, sizeof(*m), MSG_DONTWAIT);
		while (n < 0 && errno == EINTR);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n == (ssize_t)sizeof(*m) && (m->kind == GPU_DONE || m->kind == GPU_FAILED))
			answered(g, m);
	} while (n == (ssize_t)sizeof(*m) && m->kind == GPU_DONE);
	if (n == (ssize_t)sizeof(*m)) {
		if (m->kind != GPU_SAMPLE)
			m->text[sizeof(m->text) - 1] = 0;
		return 1;
	}
	if (n) /* it says what it should not */
		kill(g->pid, SIGKILL);
	close(g->fd);
	g->fd = -1;
	*sig = aside__reap(&g->pid, ASIDE_TRIES);
	return -ENODATA;
}

uint64_t gpu_sampler__hangs(struct gpu_sampler *g, uint64_t now)
{
	uint64_t patience = g->answered ? PATIENCE_NS : FIRST_PATIENCE_NS;

	if (g->fd < 0 || g->warned || !g->asked_ns || now < g->asked_ns + patience)
		return 0;
	g->warned = true;
	return now - g->asked_ns;
}

void gpu_sampler__stop(struct gpu_sampler *g)
{
	aside__stop(&g->fd, &g->pid);
	*g = (struct gpu_sampler){.fd = -1};
}
