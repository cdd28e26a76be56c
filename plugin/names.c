// SPDX-License-Identifier: BSD-2-Clause
/*
 * The enumerations that only v1 of the profiler ABI (NCCL 2.23) passes, as the strings that NCCL 2.24
 * and later pass themselves.
 */
#include "plugin.h"

#define NAME(table, i) ((i) < sizeof(table) / sizeof(*(table)) && (table)[i] ? (table)[i] : "")

const char *name_func(uint8_t func)
{
	static const char *const names[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					    "AllReduce", "SendRecv", "Send",	  "Recv"};

	return NAME(names, func);
}

const char *name_datatype(uint8_t datatype)
{
	static const char *const names[] = {"ncclInt8",	    "ncclUint8",      "ncclInt32",
					    "ncclUint32",   "ncclInt64",      "ncclUint64",
					    "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
					    "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

	return NAME(names, datatype);
}

const char *name_algo(uint8_t algo)
{
	static const char *const names[] = {
		"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};

	return NAME(names, algo);
}

const char *name_proto(uint8_t proto)
{
	static const char *const names[] = {"LL", "LL128", "SIMPLE"};

	return NAME(names, proto);
}
