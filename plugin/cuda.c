// SPDX-License-Identifier: BSD-2-Clause
/*
 * GPU identity without linking or initialising CUDA: libcuda is asked only if the process has it
 * loaded already, and only for the device of the calling thread's current context.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include "plugin.h"

/* From the CUDA driver API's documentation: CUresult is an int, CUdevice an int. */
struct cu_uuid {
	/* Unsigned on purpose: CUDA says `char`, and bytes from 0x80 on would print sign-extended. */
	unsigned char bytes[16];
};
typedef int (*cu_ctx_get_device)(int *device);
typedef int (*cu_device_get_uuid)(struct cu_uuid *uuid, int device);

static void format_uuid(const struct cu_uuid *u, char out[SCOPE_GPU_UUID_LEN])
{
	static const char hex[] = "0123456789abcdef";
	int i, o = 0;

	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[o++] = '-';
		out[o++] = hex[u->bytes[i] >> 4];
		out[o++] = hex[u->bytes[i] & 15];
	}
}

static int is_cuda(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size;
	(void)arg;
	return !strncmp(base ? base + 1 : info->dlpi_name, "libcuda.so", strlen("libcuda.so"));
}

void cuda_uuid(char uuid[SCOPE_GPU_UUID_LEN])
{
	cu_ctx_get_device get_device;
	cu_device_get_uuid get_uuid;
	struct cu_uuid u;
	int device;
	void *cuda;

	memset(uuid, 0, SCOPE_GPU_UUID_LEN);
	/*
	 * Where it is not loaded, dlopen would read ld.so.cache all the same, NOLOAD or not; and in a
	 * child that was forked while another thread did so, unmap what now lies in the cache's place.
	 */
	if (!dl_iterate_phdr(is_cuda, NULL))
		return;
	/* NOLOAD: never brings CUDA into a process that has none. */
	cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!cuda)
		return;
	get_device = (cu_ctx_get_device)dlsym(cuda, "cuCtxGetDevice");
	/* _v2 names the MIG instance where there is one, as nvidia-smi does. */
	get_uuid = (cu_device_get_uuid)dlsym(cuda, "cuDeviceGetUuid_v2");
	if (!get_uuid)
		get_uuid = (cu_device_get_uuid)dlsym(cuda, "cuDeviceGetUuid");
	if (get_device && get_uuid && !get_device(&device) && !get_uuid(&u, device))
		format_uuid(&u, uuid);
	dlclose(cuda);
}
