// SPDX-License-Identifier: BSD-2-Clause
/*
 * GPU identity without linking or initialising CUDA: libcuda is asked only if the process has it
 * loaded already, and only for the device of the calling thread's current context.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "plugin.h"

#define MAPS_LINE (PATH_MAX + 128) /* of /proc/self/maps: what precedes a path is 73 bytes */

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

/*
 * Where libcuda is loaded from: false if it is not. The kernel is asked, not the dynamic linker: in a child that was
 * forked while another thread was in dl_iterate_phdr(), its lock is held for ever. And dlopen() of the bare name
 * would read ld.so.cache, NOLOAD or not; and in a child that was forked while another thread did so, unmap what now
 * lies in the cache's place.
 */
static bool cuda_path(char path[MAPS_LINE])
{
	const char *name;
	bool found = false;
	FILE *maps;

	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return false;
	while (!found && fgets(path, MAPS_LINE, maps)) {
		name = strrchr(path, '/');
		found = name && !strncmp(name + 1, "libcuda.so", strlen("libcuda.so"));
	}
	fclose(maps);
	if (!found)
		return false;
	path[strcspn(path, "\n")] = '\0';
	name = strchr(path, '/');
	memmove(path, name, strlen(name) + 1);
	return true;
}

/*
 * As dlsym() takes it; NULL: it is not loaded. Opened once and never closed: a child that was forked amid another
 * thread's dlopen() is ended by its own.
 */
static void *cuda_loaded(void)
{
	static void *kept;
	void *cuda = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
	char path[MAPS_LINE];

	if (cuda || !cuda_path(path))
		return cuda;
	/* NOLOAD: never brings CUDA into a process that has none. */
	cuda = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (cuda)
		__atomic_store_n(&kept, cuda, __ATOMIC_RELEASE);
	return cuda;
}

void cuda_uuid(char uuid[SCOPE_GPU_UUID_LEN])
{
	cu_ctx_get_device get_device;
	cu_device_get_uuid get_uuid;
	struct cu_uuid u;
	int device;
	void *cuda;

	memset(uuid, 0, SCOPE_GPU_UUID_LEN);
	cuda = cuda_loaded();
	if (!cuda)
		return;
	get_device = (cu_ctx_get_device)dlsym(cuda, "cuCtxGetDevice");
	/* _v2 names the MIG instance where there is one, as nvidia-smi does. */
	get_uuid = (cu_device_get_uuid)dlsym(cuda, "cuDeviceGetUuid_v2");
	if (!get_uuid)
		get_uuid = (cu_device_get_uuid)dlsym(cuda, "cuDeviceGetUuid");
	if (get_device && get_uuid && !get_device(&device) && !get_uuid(&u, device))
		format_uuid(&u, uuid);
}
