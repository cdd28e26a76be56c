/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a GPU's nanoseconds to CLOCK_MONOTONIC, without asking the GPU. NCCL's kernels stamp their begin and end with
 * globaltimer, which has an epoch and a rate of its own. Each stamp was made after something that the host did, as to launch the
 * kernel, and before the host saw it: what the two clocks are apart lies between these bounds, the closest of which are kept. They grow
 * apart again by what two clocks may drift. Pure; stamps are a job's and not trusted.
 */
#ifndef NCCLSCOPE_GPU_CLOCK_H
#define NCCLSCOPE_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Two quartz oscillators of 50 ppm each. */
#define GPU_DRIFT_PPM 100

/* A stamp tells the GPU's time of up to so long ago: an H200 counts in steps of 32 ns, other GPUs of 1024. */
#define GPU_GRAIN_NS 1024

/* Bounds that are further apart than twice this are no fit. */
#define GPU_ERROR_MAX_NS 10000000

/* What CLOCK_MONOTONIC is ahead of the GPU's, at least or at most. */
struct gpu_bound {
	int64_t ns;
	uint64_t at_ns; /* CLOCK_MONOTONIC when that was known; 0: it is not */
};

/* One GPU's; all zero: nothing is known. */
struct gpu_clock {
	struct gpu_bound low, high;
};

/*
 * A stamp in the GPU's ns that was made after `after_ns` and before `before_ns`, CLOCK_MONOTONIC; 0: that bound is not known.
 * What contradicts all that is known makes an end of it: the clock was set.
 */
void gpu_clock__add(struct gpu_clock *g, uint64_t stamp_ns, uint64_t after_ns, uint64_t before_ns);

/* What CLOCK_MONOTONIC is ahead of the GPU's at now_ns, with the bound of its error. False: there is no fit. */
bool gpu_clock__offset(const struct gpu_clock *g, uint64_t now_ns, int64_t *offset_ns,
		       uint64_t *error_ns);

#endif
