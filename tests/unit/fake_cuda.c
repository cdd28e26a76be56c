// SPDX-License-Identifier: BSD-2-Clause
/*
 * In place of libcuda.so.1: one device with a UUID most of whose bytes are 0x80 or more. CUDA_NO_V2 and
 * CUDA_NO_UUID leave functions out; the environment makes them fail. FAKE_CUDA_GPU=N: the UUID's last byte.
 */
#include <stdlib.h>
#include <string.h>

int cuCtxGetDevice(int *device);
int cuDeviceGetUuid(void *uuid, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);

/* CUDA_ERROR_INVALID_CONTEXT: this thread has none. */
int cuCtxGetDevice(int *device)
{
	if (getenv("FAKE_CUDA_NO_CONTEXT"))
		return 201;
	*device = 3;
	return 0;
}

#ifndef CUDA_NO_UUID
static int get(void *uuid, int device, unsigned char first)
{
	static const unsigned char bytes[16] = {0,    0xff, 0x80, 0x7f, 0xde, 0xad, 0xbe, 0xef,
						0x99, 0x88, 0xc0, 0xff, 0xee, 0x0a, 0xb0, 0xf1};

	if (getenv("FAKE_CUDA_NO_UUID") || device != 3)
		return 101;
	memcpy(uuid, bytes, sizeof(bytes));
	*(unsigned char *)uuid = first;
	if (getenv("FAKE_CUDA_GPU"))
		((unsigned char *)uuid)[15] = (unsigned char)atoi(getenv("FAKE_CUDA_GPU"));
	return 0;
}

int cuDeviceGetUuid(void *uuid, int device)
{
	return get(uuid, device, 0x81);
}

#ifndef CUDA_NO_V2
int cuDeviceGetUuid_v2(void *uuid, int device)
{
	return get(uuid, device, 0x82);
}
#endif
#endif
