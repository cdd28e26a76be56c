/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the node's GPUs do: clocks, and what holds them down, temperature, power, errors, by NVML. Its calls go into the driver, which
 * may take seconds or for ever when a GPU fails, and its library is not ours: a process of its own makes them, and nobody waits for that.
 * It has NVML open only while it is asked: an open one keeps the driver from being replaced, and GPUs from being reset.
 *
 *	gpu_sampler__start(&g, NULL)           early, as it forks; gpu_sampler__stop(&g) at the end
 *	gpu_sampler__ask(&g, now)              every now and then, while there is somebody to look for
 *	while (gpu_sampler__next(&g, &m, &sig) > 0)   what has come
 */
#ifndef NCCLSCOPE_GPU_H
#define NCCLSCOPE_GPU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GPU_LIBRARY  "libnvidia-ml.so.1"
#define GPU_MAX	     64 /* of a node */
#define GPU_UUID_LEN 36 /* as nvidia-smi prints it after "GPU-" */
#define GPU_EVERY_MS 1000
#define GPU_IDLE_MS  30000 /* NVML is open for so long after it was asked last */

/* In captures: append-only, and no more than fit into `known`. */
enum gpu_value {
	/* As they are: */
	GPU_SM_CLOCK, /* MHz */
	GPU_SM_CLOCK_MAX,
	GPU_MEM_CLOCK,
	GPU_UTIL,	 /* % of the driver's last period in which a kernel ran */
	GPU_TEMPERATURE, /* degrees Celsius */
	GPU_POWER,	 /* mW */
	GPU_POWER_LIMIT,
	GPU_PCIE_WIDTH, /* lanes */
	GPU_PCIE_WIDTH_MAX,
	GPU_REASONS, /* bits: gpu_reason_name() */
	/* For how long clocks were held down, ns: */
	GPU_HELD_SW_POWER_CAP,
	GPU_HELD_SYNC_BOOST,
	GPU_HELD_SW_THERMAL,
	GPU_HELD_HW_THERMAL,
	GPU_HELD_POWER_BRAKE,
	GPU_HELD_THERMAL, /* of drivers that do not have the two above */
	GPU_HELD_BOARD_LIMIT,
	GPU_HELD_RELIABILITY,
	/* Errors: */
	GPU_ECC_CORRECTED,
	GPU_ECC_UNCORRECTED,
	GPU_NVLINK_CRC_FLIT,
	GPU_NVLINK_CRC_DATA,
	GPU_NVLINK_REPLAY,
	GPU_NVLINK_RECOVERY,
	GPU_PCIE_REPLAY,
	/* Bytes: */
	GPU_NVLINK_SENT,
	GPU_NVLINK_RECEIVED,
	GPU_VALUES,
};

#define GPU_HELD_FIRST	GPU_HELD_SW_POWER_CAP
#define GPU_HELD_LAST	GPU_HELD_RELIABILITY
#define GPU_ERROR_FIRST GPU_ECC_CORRECTED
#define GPU_ERROR_LAST	GPU_PCIE_REPLAY

/* As traces have them: a constant. */
extern const char *const gpu_value_names[GPU_VALUES];

#define GPU_REASON_BITS 9
/* Why clocks are not higher, a bit of GPU_REASONS; NULL: one that we do not know. */
const char *gpu_reason_name(uint32_t bit);

#define GPU_VALUES_MAX 48 /* room for more */

struct gpu_sample {
	uint64_t ns;	/* CLOCK_MONOTONIC, when the first of it was read */
	uint64_t known; /* a bit for each value that there is */
	uint64_t value[GPU_VALUES_MAX];
	uint32_t index; /* as nvidia-smi numbers them */
	uint32_t lost;	/* 1: the driver cannot reach it any more; then nothing is known */
	char uuid[GPU_UUID_LEN];
	char pci[20];  /* "0000:3b:00.0"; "": not known */
	char name[64]; /* "NVIDIA H200" */
};
_Static_assert(GPU_VALUES <= GPU_VALUES_MAX, "struct gpu_sample");

static inline bool gpu_sample__has(const struct gpu_sample *s, enum gpu_value v)
{
	return s->known >> v & 1;
}

/* Whether it is what one might be: texts end, and so on. */
bool gpu_sample__ok(const struct gpu_sample *s);

enum gpu_message_kind {
	GPU_SAMPLE,
	GPU_READY,  /* text: which driver, how many GPUs */
	GPU_FAILED, /* text: why there is nothing, yet or at all */
	GPU_DONE,   /* no more until the next question; not for gpu_sampler__next()'s caller */
};

struct gpu_message {
	uint32_t kind;
	uint32_t pad;
	uint64_t took_ns; /* GPU_DONE: to sample them all */
	union {
		struct gpu_sample sample;
		char text[200];
	};
};

struct gpu_sampler {
	int fd;		   /* -1: none */
	pid_t pid;	   /* 0: it has been waited for */
	uint64_t asked_ns; /* CLOCK_MONOTONIC; 0: all has been answered */
	uint64_t last_ns;  /* when it was asked last */
	uint64_t next_ns;  /* not to be asked before */
	bool answered;	   /* since NVML was opened, as far as we know */
	bool warned;	   /* gpu_sampler__hangs() has been true */
};

/* @library: a file in place of GPU_LIBRARY; NULL: that. 0 or -errno. */
int gpu_sampler__start(struct gpu_sampler *g, const char *library);
/* For one sample of each GPU, unless it is busy with that still, or it is not time yet. */
void gpu_sampler__ask(struct gpu_sampler *g, uint64_t now);
/* 1; 0: nothing more has come; -ENODATA: it has ended, by itself or (*sig, told once) by a signal, and nothing more will come. */
int gpu_sampler__next(struct gpu_sampler *g, struct gpu_message *m, int *sig);
/* Once: it has given no answer for so long (ns) that a GPU, or its driver, hangs; else 0. */
uint64_t gpu_sampler__hangs(struct gpu_sampler *g, uint64_t now);
void gpu_sampler__stop(struct gpu_sampler *g);

/* gpu_nvml.c: the life of that process: answers to what comes from @fd, until nothing can come any more. */
void gpu_nvml__run(int fd, const char *library);

#endif
