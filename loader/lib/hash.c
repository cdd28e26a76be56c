// SPDX-License-Identifier: BSD-2-Clause
/* The key of this process' hash tables: see hash.h. */
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include "hash.h"

uint64_t hash_key[3];

/* Before there are threads. Where random numbers are not to be had yet, what the kernel gave the program at its start. */
__attribute__((constructor)) static void make_key(void)
{
	const void *at_start = (const void *)getauxval(
		AT_RANDOM); // NOLINT(performance-no-int-to-ptr): so it is given

	if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) != sizeof(hash_key)) {
		memcpy(hash_key, at_start, 2 * sizeof(*hash_key)); /* 16 bytes */
		hash_key[2] = hash_key[0] + hash_key[1];
	}
	hash_key[1] |= 1;
	hash_key[2] |= 1;
}
