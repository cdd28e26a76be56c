// SPDX-License-Identifier: BSD-2-Clause
/* GPUs by NVML, in a process of its own: it may hang in the driver, or crash. See gpu.h. */
#include <ctype.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clock.h"
#include "gpu.h"
#include "nvml_abi.h"

struct nvml {
	void *lib; /* NULL: it is not open */
	int (*init)(void);
	int (*count)(uint32_t *n);
	int (*by_index)(uint32_t i, struct nvml_device **dev);
	int (*uuid)(struct nvml_device *dev, char *text, uint32_t size);
	/* Any of these may be missing. */
	int (*shutdown)(void);
	const char *(*error)(int err);
	int (*driver)(char *text, uint32_t size);
	int (*name)(struct nvml_device *dev, char *text, uint32_t size);
	int (*pci)(struct nvml_device *dev, struct nvml_pci *pci);
	int (*clock)(struct nvml_device *dev, int32_t which, uint32_t *mhz);
	int (*max_clock)(struct nvml_device *dev, int32_t which, uint32_t *mhz);
	int (*reasons)(struct nvml_device *dev, uint64_t *bits);
	int (*utilization)(struct nvml_device *dev, struct nvml_utilization *u);
	int (*temperature)(struct nvml_device *dev, int32_t which, uint32_t *celsius);
	int (*power)(struct nvml_device *dev, uint32_t *mw);
	int (*power_limit)(struct nvml_device *dev, uint32_t *mw);
	int (*pcie_width)(struct nvml_device *dev, uint32_t *lanes);
	int (*pcie_width_max)(struct nvml_device *dev, uint32_t *lanes);
	int (*fields)(struct nvml_device *dev, int32_t n, struct nvml_field *fields);
};

/* A GPU, and what of it stays. */
struct gpu {
	struct nvml_device *dev;
	struct gpu_sample fixed;
};

/* ---- Saying it --------------------------------------------------------------------------------- */

/* Nobody there to take it: then our time is over. */
static void send_message(int fd, const struct gpu_message *m)
{
	if (send(fd, m, sizeof(*m), MSG_NOSIGNAL) != (ssize_t)sizeof(*m))
		_exit(0);
}

__attribute__((format(printf, 3, 4))) static void say(int fd, enum gpu_message_kind kind,
						      const char *fmt, ...)
{
	struct gpu_message m = {.kind = kind};
	va_list args;

	va_start(args, fmt);
	vsnprintf(m.text, sizeof(m.text), fmt, args);
	va_end(args);
	send_message(fd, &m);
}

static const char *error_text(const struct nvml *n, int err)
{
	const char *text = n->error ? n->error(err) : NULL;

	return text ?: "an error of NVML";
}

/* ---- The library ------------------------------------------------------------------------------- */

/* The newer name goes first. */
static void *function(void *lib, const char *name, const char *older)
{
	void *f = dlsym(lib, name);

	return f || !older ? f : dlsym(lib, older);
}

static bool load(int fd, const char *library, struct nvml *n)
{
	void *lib = dlopen(library, RTLD_NOW);

	if (!lib) {
		say(fd, GPU_FAILED, "%s", dlerror());
		return false;
	}
	*n = (struct nvml){.lib = lib};
	n->shutdown = function(lib, "nvmlShutdown", NULL);
	n->init = function(lib, "nvmlInit_v2", NULL);
	n->count = function(lib, "nvmlDeviceGetCount_v2", NULL);
	n->by_index = function(lib, "nvmlDeviceGetHandleByIndex_v2", NULL);
	n->uuid = function(lib, "nvmlDeviceGetUUID", NULL);
	n->error = function(lib, "nvmlErrorString", NULL);
	n->driver = function(lib, "nvmlSystemGetDriverVersion", NULL);
	n->name = function(lib, "nvmlDeviceGetName", NULL);
	n->pci = function(lib, "nvmlDeviceGetPciInfo_v3", NULL);
	n->clock = function(lib, "nvmlDeviceGetClockInfo", NULL);
	n->max_clock = function(lib, "nvmlDeviceGetMaxClockInfo", NULL);
	n->reasons = function(lib, "nvmlDeviceGetCurrentClocksEventReasons",
			      "nvmlDeviceGetCurrentClocksThrottleReasons");
	n->utilization = function(lib, "nvmlDeviceGetUtilizationRates", NULL);
	n->temperature = function(lib, "nvmlDeviceGetTemperature", NULL);
	n->power = function(lib, "nvmlDeviceGetPowerUsage", NULL);
	n->power_limit = function(lib, "nvmlDeviceGetEnforcedPowerLimit", NULL);
	n->pcie_width = function(lib, "nvmlDeviceGetCurrPcieLinkWidth", NULL);
	n->pcie_width_max = function(lib, "nvmlDeviceGetMaxPcieLinkWidth", NULL);
	n->fields = function(lib, "nvmlDeviceGetFieldValues", NULL);
	if (n->init && n->count && n->by_index && n->uuid)
		return true;
	say(fd, GPU_FAILED, "%s is no NVML: it has not all of nvmlInit_v2 and those that name GPUs",
	    library);
	return false;
}

/* ---- A GPU ------------------------------------------------------------------------------------- */

static void set(struct gpu_sample *s, enum gpu_value v, uint64_t n)
{
	s->known |= 1ull << v;
	s->value[v] = n;
}

/* What an answer says of a value of 32 bits, which is at `n` then. */
static void note(struct gpu_sample *s, int err, enum gpu_value v, const uint32_t *n)
{
	if (err == NVML_GPU_IS_LOST)
		s->lost = 1;
	else if (!err)
		set(s, v, *n);
}

/* Without its "GPU-"; false: it has none, and nobody could say whose it is. */
static bool read_uuid(const struct nvml *n, struct gpu *g)
{
	char text[NVML_TEXT_MAX] = "";
	int i;

	if (n->uuid(g->dev, text, sizeof(text) - 1) || strncmp(text, "GPU-", 4) != 0 ||
	    strlen(text) != 4 + GPU_UUID_LEN)
		return false;
	for (i = 0; i < GPU_UUID_LEN; i++)
		g->fixed.uuid[i] = (char)tolower((unsigned char)text[4 + i]);
	return true;
}

static bool gpu_open(const struct nvml *n, uint32_t i, struct gpu *g)
{
	struct nvml_pci pci = {0};
	char name[NVML_TEXT_MAX] = "";
	uint32_t v;

	*g = (struct gpu){.fixed.index = i};
	if (n->by_index(i, &g->dev) || !read_uuid(n, g))
		return false;
	if (n->name && !n->name(g->dev, name, sizeof(name) - 1))
		snprintf(g->fixed.name, sizeof(g->fixed.name), "%.63s", name);
	if (n->pci && !n->pci(g->dev, &pci))
		snprintf(g->fixed.pci, sizeof(g->fixed.pci), "%04x:%02x:%02x.0",
			 pci.domain & 0xffffff, pci.bus & 0xff, pci.device & 0xff);
	if (n->max_clock && !n->max_clock(g->dev, NVML_CLOCK_SM, &v))
		set(&g->fixed, GPU_SM_CLOCK_MAX, v);
	if (n->pcie_width_max && !n->pcie_width_max(g->dev, &v))
		set(&g->fixed, GPU_PCIE_WIDTH_MAX, v);
	return true;
}

static uint32_t open_all(const struct nvml *n, struct gpu gpus[GPU_MAX])
{
	uint32_t count = 0, i, k = 0;

	if (n->count(&count))
		count = 0;
	for (i = 0; i < count && i < GPU_MAX; i++)
		if (gpu_open(n, i, &gpus[k]))
			k++;
	return k;
}

static void read_now(const struct nvml *n, struct nvml_device *dev, struct gpu_sample *s)
{
	struct nvml_utilization util = {0};
	uint64_t bits = 0;
	uint32_t v = 0;

	if (n->clock) {
		note(s, n->clock(dev, NVML_CLOCK_SM, &v), GPU_SM_CLOCK, &v);
		note(s, n->clock(dev, NVML_CLOCK_MEM, &v), GPU_MEM_CLOCK, &v);
	}
	if (n->reasons && !n->reasons(dev, &bits))
		set(s, GPU_REASONS, bits);
	if (n->utilization)
		note(s, n->utilization(dev, &util), GPU_UTIL, &util.gpu);
	if (n->temperature)
		note(s, n->temperature(dev, NVML_TEMPERATURE_GPU, &v), GPU_TEMPERATURE, &v);
	if (n->power)
		note(s, n->power(dev, &v), GPU_POWER, &v);
	if (n->power_limit)
		note(s, n->power_limit(dev, &v), GPU_POWER_LIMIT, &v);
	if (n->pcie_width)
		note(s, n->pcie_width(dev, &v), GPU_PCIE_WIDTH, &v);
}

static const struct {
	uint16_t field, value;
	uint16_t unit;
} counters[] = {
	{NVML_FIELD_HELD_POWER, GPU_HELD_SW_POWER_CAP, 1},
	{NVML_FIELD_HELD_THERMAL, GPU_HELD_THERMAL, 1},
	{NVML_FIELD_HELD_SYNC_BOOST, GPU_HELD_SYNC_BOOST, 1},
	{NVML_FIELD_HELD_BOARD_LIMIT, GPU_HELD_BOARD_LIMIT, 1},
	{NVML_FIELD_HELD_RELIABILITY, GPU_HELD_RELIABILITY, 1},
	{NVML_FIELD_HELD_SW_THERMAL, GPU_HELD_SW_THERMAL, 1},
	{NVML_FIELD_HELD_HW_THERMAL, GPU_HELD_HW_THERMAL, 1},
	{NVML_FIELD_HELD_POWER_BRAKE, GPU_HELD_POWER_BRAKE, 1},
	{NVML_FIELD_ECC_CORRECTED, GPU_ECC_CORRECTED, 1},
	{NVML_FIELD_ECC_UNCORRECTED, GPU_ECC_UNCORRECTED, 1},
	{NVML_FIELD_NVLINK_CRC_FLIT, GPU_NVLINK_CRC_FLIT, 1},
	{NVML_FIELD_NVLINK_CRC_DATA, GPU_NVLINK_CRC_DATA, 1},
	{NVML_FIELD_NVLINK_REPLAY, GPU_NVLINK_REPLAY, 1},
	{NVML_FIELD_NVLINK_RECOVERY, GPU_NVLINK_RECOVERY, 1},
	{NVML_FIELD_PCIE_REPLAY, GPU_PCIE_REPLAY, 1},
	{NVML_FIELD_NVLINK_SENT, GPU_NVLINK_SENT, 1024},
	{NVML_FIELD_NVLINK_RECEIVED, GPU_NVLINK_RECEIVED, 1024},
};

#define NCOUNTERS (sizeof(counters) / sizeof(counters[0]))

/* False: there is none, or no number that a counter might have. */
static bool field_number(const struct nvml_field *f, uint64_t *n)
{
	int64_t i = 0;

	if (f->err)
		return false;
	switch (f->type) {
	case NVML_UINT:
		*n = f->value.u;
		return true;
	case NVML_ULONG:
		*n = f->value.ul;
		return true;
	case NVML_ULONG_LONG:
		*n = f->value.ull;
		return true;
	case NVML_USHORT:
		*n = f->value.us;
		return true;
	case NVML_INT:
		i = f->value.i;
		break;
	case NVML_LONG_LONG:
		i = f->value.sll;
		break;
	default:
		return false;
	}
	*n = (uint64_t)i;
	return i >= 0;
}

static void read_counters(const struct nvml *n, struct nvml_device *dev, struct gpu_sample *s)
{
	struct nvml_field fields[NCOUNTERS] = {0};
	uint64_t v;
	size_t i;

	for (i = 0; i < NCOUNTERS; i++) {
		fields[i].id = counters[i].field;
		fields[i].scope = counters[i].unit == 1024 ? NVML_ALL_LINKS : 0;
	}
	if (!n->fields || n->fields(dev, NCOUNTERS, fields))
		return;
	for (i = 0; i < NCOUNTERS; i++)
		if (field_number(&fields[i], &v))
			set(s, counters[i].value, v * counters[i].unit);
	if (gpu_sample__has(s, GPU_HELD_SW_THERMAL) || gpu_sample__has(s, GPU_HELD_HW_THERMAL))
		s->known &= ~(1ull << GPU_HELD_THERMAL); /* the sum of these */
}

static void sample(int fd, const struct nvml *n, const struct gpu *g)
{
	struct gpu_message m = {.kind = GPU_SAMPLE, .sample = g->fixed};
	struct gpu_sample *s = &m.sample;

	s->ns = monotonic_ns();
	read_now(n, g->dev, s);
	read_counters(n, g->dev, s);
	if (s->lost)
		s->known = 0;
	send_message(fd, &m);
}

/* ---- All --------------------------------------------------------------------------------------- */

/* As it is then, also where that was in part. */
static void nvml_close(struct nvml *n, bool initialised)
{
	if (initialised && n->shutdown)
		n->shutdown();
	if (n->lib)
		dlclose(n->lib);
	n->lib = NULL;
}

/* Each time anew: driver and library may have been replaced, GPUs have come and gone. False: it has been said why. */
static bool nvml_open(int fd, const char *library, struct nvml *n, struct gpu gpus[GPU_MAX],
		      uint32_t *count)
{
	char driver[NVML_TEXT_MAX] = "";
	int err;

	if (!load(fd, library, n))
		goto cleanup;
	err = n->init();
	if (err) {
		say(fd, GPU_FAILED, "%s", error_text(n, err));
		goto cleanup;
	}
	if (!n->driver || n->driver(driver, sizeof(driver) - 1))
		snprintf(driver, sizeof(driver), "?");
	*count = open_all(n, gpus);
	if (!*count) {
		say(fd, GPU_FAILED, "driver %.60s, no GPU that NVML tells of", driver);
		nvml_close(n, true);
		return false;
	}
	say(fd, GPU_READY, "driver %.60s, %u GPU%s", driver, *count, *count == 1 ? "" : "s");
	return true;
cleanup:
	nvml_close(n, false);
	return false;
}

/* Waits for a question; false: there will be none. NVML is closed where none comes for long. */
static bool is_asked(int fd, struct nvml *n)
{
	struct pollfd question = {.fd = fd, .events = POLLIN};
	char byte;

	if (!poll(&question, 1, n->lib ? GPU_IDLE_MS : -1))
		nvml_close(n, true);
	return recv(fd, &byte, 1, 0) == 1;
}

static void sample_all(int fd, const struct nvml *n, const struct gpu *gpus, uint32_t count)
{
	struct gpu_message done = {.kind = GPU_DONE};
	uint64_t begin = monotonic_ns();
	uint32_t i;

	for (i = 0; i < count; i++)
		sample(fd, n, &gpus[i]);
	done.took_ns = monotonic_ns() - begin;
	send_message(fd, &done);
}

void gpu_nvml__run(int fd, const char *library)
{
	struct gpu gpus[GPU_MAX];
	struct nvml n = {0};
	uint32_t count = 0;

	while (is_asked(fd, &n))
		if (n.lib || nvml_open(fd, library, &n, gpus, &count))
			sample_all(fd, &n, gpus, count);
}
