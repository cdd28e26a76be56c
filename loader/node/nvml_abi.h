/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What we call of NVML, NVIDIA's library for looking at GPUs (libnvidia-ml.so.1, part of the driver), whose header is in no free
 * distribution. It is loaded where there is one. Its ABI only grows; what has changed has a number in its name.
 */
#ifndef NCCLSCOPE_NVML_ABI_H
#define NCCLSCOPE_NVML_ABI_H

#include <stdint.h>

#define NVML_DRIVER_NOT_LOADED 9
#define NVML_GPU_IS_LOST       15 /* "has fallen off the bus" */
#define NVML_CLOCK_SM	       1
#define NVML_CLOCK_MEM	       2
#define NVML_TEMPERATURE_GPU   0
#define NVML_TEXT_MAX	       96 /* a UUID, a name, a version */
#define NVML_ALL_LINKS	       UINT32_MAX

/* Fields, which are asked for by number: nanoseconds for which clocks were held down, since the driver was loaded; */
#define NVML_FIELD_HELD_POWER	    74
#define NVML_FIELD_HELD_THERMAL	    75
#define NVML_FIELD_HELD_SYNC_BOOST  76
#define NVML_FIELD_HELD_BOARD_LIMIT 77
#define NVML_FIELD_HELD_RELIABILITY 79
#define NVML_FIELD_HELD_SW_THERMAL  269 /* newer drivers' */
#define NVML_FIELD_HELD_HW_THERMAL  270
#define NVML_FIELD_HELD_POWER_BRAKE 271
/* errors; */
#define NVML_FIELD_ECC_CORRECTED   3
#define NVML_FIELD_ECC_UNCORRECTED 4
#define NVML_FIELD_NVLINK_CRC_FLIT 38
#define NVML_FIELD_NVLINK_CRC_DATA 45
#define NVML_FIELD_NVLINK_REPLAY   52
#define NVML_FIELD_NVLINK_RECOVERY 59
#define NVML_FIELD_PCIE_REPLAY	   94
/* KiB over all links, without what the protocol takes. */
#define NVML_FIELD_NVLINK_SENT	   138
#define NVML_FIELD_NVLINK_RECEIVED 139

enum nvml_type {
	NVML_DOUBLE,
	NVML_UINT,
	NVML_ULONG,
	NVML_ULONG_LONG,
	NVML_LONG_LONG,
	NVML_INT,
	NVML_USHORT,
};

struct nvml_field {
	uint32_t id, scope;
	int64_t timestamp_us, latency_us;
	int32_t type; /* enum nvml_type */
	int32_t err;  /* of this one */
	union {
		double d;
		int32_t i;
		uint32_t u;
		unsigned long ul;
		uint64_t ull;
		int64_t sll;
		uint16_t us;
	} value;
};
_Static_assert(sizeof(struct nvml_field) == 40, "NVML's");

struct nvml_pci {
	char bus_id_legacy[16];
	uint32_t domain, bus, device;
	uint32_t ids, subsystem;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci) == 68, "NVML's");

struct nvml_utilization {
	uint32_t gpu, memory; /* % */
};

struct nvml_device; /* a handle */

#endif
