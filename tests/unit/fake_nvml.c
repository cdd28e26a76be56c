// SPDX-License-Identifier: BSD-2-Clause
/*
 * In place of libnvidia-ml.so.1: GPUs as the file of $FAKE_NVML describes them, which is read anew at each question. Its lines are
 * "GPU KEY VALUE", the keys below; what a GPU has no line for it does not support. "fieldN V" is the value of field N, and "rateN V" what
 * that grows by in a second. "- init E": nvmlInit() fails so. "G lost 1", "G hang 1", "G crash 1": it answers so, not at all, or never again.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "nvml_abi.h"

#define GPUS 16

struct nvml_device {
	int index;
};

static struct nvml_device devices[GPUS];

int nvmlInit_v2(void);
const char *nvmlErrorString(int err);
int nvmlSystemGetDriverVersion(char *text, uint32_t size);
int nvmlDeviceGetCount_v2(uint32_t *n);
int nvmlDeviceGetHandleByIndex_v2(uint32_t i, struct nvml_device **dev);
int nvmlDeviceGetUUID(struct nvml_device *dev, char *text, uint32_t size);
int nvmlDeviceGetName(struct nvml_device *dev, char *text, uint32_t size);
int nvmlDeviceGetPciInfo_v3(struct nvml_device *dev, struct nvml_pci *pci);
int nvmlDeviceGetClockInfo(struct nvml_device *dev, int32_t which, uint32_t *mhz);
int nvmlDeviceGetMaxClockInfo(struct nvml_device *dev, int32_t which, uint32_t *mhz);
int nvmlDeviceGetUtilizationRates(struct nvml_device *dev, struct nvml_utilization *u);
int nvmlDeviceGetTemperature(struct nvml_device *dev, int32_t which, uint32_t *celsius);
int nvmlDeviceGetPowerUsage(struct nvml_device *dev, uint32_t *mw);
int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *dev, uint32_t *mw);
int nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *dev, uint32_t *lanes);
int nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *dev, uint32_t *lanes);
int nvmlDeviceGetFieldValues(struct nvml_device *dev, int32_t n, struct nvml_field *fields);
/* The newer name or, with FAKE_NVML_OLD, the older one. */
int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *dev, uint64_t *bits);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *dev, uint64_t *bits);

/* What the file says of it, into `text`. */
static int look_up(const char *gpu, const char *key, char *text, size_t size)
{
	const char *path = getenv("FAKE_NVML");
	FILE *f = path ? fopen(path, "r") : NULL;
	char line[256], g[16], k[32], v[128];
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%15s %31s %127[^\n]", g, k, v) == 3 && !strcmp(g, gpu) &&
		    !strcmp(k, key)) {
			snprintf(text, size, "%s", v);
			found = 1;
		}
	if (f)
		fclose(f);
	return found;
}

static int has(const struct nvml_device *dev, const char *key, uint64_t *n)
{
	char gpu[16], text[128];

	snprintf(gpu, sizeof(gpu), "%d", dev->index);
	if (!look_up(gpu, key, text, sizeof(text)))
		return 0;
	*n = strtoull(text, NULL, 0);
	return 1;
}

static int number(const struct nvml_device *dev, const char *key, uint32_t *n)
{
	uint64_t v;

	while (has(dev, "hang", &v))
		pause();
	if (has(dev, "crash", &v))
		raise(SIGKILL);
	if (has(dev, "lost", &v))
		return NVML_GPU_IS_LOST;
	if (!has(dev, key, &v))
		return 3; /* not supported */
	*n = (uint32_t)v;
	return 0;
}

static int string(const struct nvml_device *dev, const char *key, char *text, uint32_t size)
{
	char gpu[16];

	snprintf(gpu, sizeof(gpu), "%d", dev->index);
	return look_up(gpu, key, text, size) ? 0 : 3;
}

int nvmlInit_v2(void)
{
	char text[16];

	return look_up("-", "init", text, sizeof(text)) ? atoi(text) : 0;
}

const char *nvmlErrorString(int err)
{
	return err == NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *text, uint32_t size)
{
	snprintf(text, size, "570.00.fake");
	return 0;
}

int nvmlDeviceGetCount_v2(uint32_t *n)
{
	char uuid[64];

	for (*n = 0; *n < GPUS; (*n)++) {
		devices[*n].index = (int)*n;
		if (string(&devices[*n], "uuid", uuid, sizeof(uuid)))
			break;
	}
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(uint32_t i, struct nvml_device **dev)
{
	*dev = &devices[i];
	return i < GPUS ? 0 : 2;
}

int nvmlDeviceGetUUID(struct nvml_device *dev, char *text, uint32_t size)
{
	return string(dev, "uuid", text, size);
}

int nvmlDeviceGetName(struct nvml_device *dev, char *text, uint32_t size)
{
	return string(dev, "name", text, size);
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *dev, struct nvml_pci *pci)
{
	char text[32];

	if (string(dev, "pci", text, sizeof(text)) ||
	    sscanf(text, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3)
		return 3;
	return 0;
}

int nvmlDeviceGetClockInfo(struct nvml_device *dev, int32_t which, uint32_t *mhz)
{
	return number(dev, which == NVML_CLOCK_SM ? "sm" : "mem", mhz);
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *dev, int32_t which, uint32_t *mhz)
{
	uint64_t n;

	if (!has(dev, which == NVML_CLOCK_SM ? "smmax" : "memmax", &n))
		return 3;
	*mhz = (uint32_t)n;
	return 0;
}

#ifdef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *dev, uint64_t *bits)
#else
int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *dev, uint64_t *bits)
#endif
{
	return has(dev, "reasons", bits) ? 0 : 3;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *dev, struct nvml_utilization *u)
{
	return number(dev, "util", &u->gpu);
}

int nvmlDeviceGetTemperature(struct nvml_device *dev, int32_t which, uint32_t *celsius)
{
	return which ? 2 : number(dev, "temperature", celsius);
}

int nvmlDeviceGetPowerUsage(struct nvml_device *dev, uint32_t *mw)
{
	return number(dev, "power", mw);
}

int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *dev, uint32_t *mw)
{
	return number(dev, "limit", mw);
}

int nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *dev, uint32_t *lanes)
{
	return number(dev, "width", lanes);
}

int nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *dev, uint32_t *lanes)
{
	uint64_t n;

	if (!has(dev, "widthmax", &n))
		return 3;
	*lanes = (uint32_t)n;
	return 0;
}

/* A few by narrower types, as drivers do. */
static void answer(const struct nvml_device *dev, struct nvml_field *f)
{
	char field[32], rate[32];
	uint64_t v = 0, grows = 0;
	struct timespec now;
	int known;

	snprintf(field, sizeof(field), "field%u", f->id);
	snprintf(rate, sizeof(rate), "rate%u", f->id);
	known = has(dev, field, &v);
	known |= has(dev, rate, &grows);
	f->err = known ? 0 : 3;
	clock_gettime(CLOCK_MONOTONIC, &now);
	v += (uint64_t)((double)grows * ((double)now.tv_sec + (double)now.tv_nsec / 1e9));
	if (f->id == NVML_FIELD_PCIE_REPLAY) {
		f->type = NVML_UINT;
		f->value.u = (uint32_t)v;
	} else {
		f->type = NVML_ULONG_LONG;
		f->value.ull = v;
	}
	if ((f->id == NVML_FIELD_NVLINK_SENT) != (f->scope == NVML_ALL_LINKS) &&
	    f->id != NVML_FIELD_NVLINK_RECEIVED)
		f->err = 2;
}

int nvmlDeviceGetFieldValues(struct nvml_device *dev, int32_t n, struct nvml_field *fields)
{
	int32_t i;

	for (i = 0; i < n; i++)
		answer(dev, &fields[i]);
	return 0;
}
