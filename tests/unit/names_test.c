// SPDX-License-Identifier: BSD-2-Clause
/* loader/trace/nccl_names.c, plugin/names.c, loader/correlate/syscalls.c: numbers, words and masks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <cmocka.h>
#include "nccl_names.h"
#include "plugin.h"
#include "syscalls.h"

/* Ready for a line: what its parts would be. */
static void is_text(const struct json_text *t, const char *want)
{
	assert_int_equal(t->len, strlen(want));
	assert_memory_equal(t->at, want, t->len);
}

static void test_types(void **state)
{
	static const struct {
		uint32_t bit;
		const char *name, *brief;
	} types[] = {
		{0x0001, "ncclProfileGroup", "group"},
		{0x0002, "ncclProfileColl", "coll"},
		{0x0004, "ncclProfileP2p", "p2p"},
		{0x0008, "ncclProfileProxyOp", "proxyop"},
		{0x0010, "ncclProfileProxyStep", "proxystep"},
		{0x0020, "ncclProfileProxyCtrl", "proxyctrl"},
		{0x0040, "ncclProfileKernelCh", "kernelch"},
		{0x0080, "ncclProfileNetPlugin", "netplugin"},
		{0x0100, "ncclProfileGroupApi", "groupapi"},
		{0x0200, "ncclProfileCollApi", "collapi"},
		{0x0400, "ncclProfileP2pApi", "p2papi"},
		{0x0800, "ncclProfileKernelLaunch", "kernellaunch"},
		{0x1000, "ncclProfileCeColl", "cecoll"},
		{0x2000, "ncclProfileCeSync", "cesync"},
		{0x4000, "ncclProfileCeBatch", "cebatch"},
		{0x8000, "ncclProfileKernelPhase", "kernelphase"},
	};
	uint32_t i, mask;
	char text[80];

	(void)state;
	for (i = 0; i < 16; i++) {
		assert_int_equal(types[i].bit, 1u << i);
		assert_string_equal(event_type_name(i), types[i].name);
		snprintf(text, sizeof(text), ",\"type\":\"%s\"", types[i].name);
		is_text(event_type_text(i), text);
		assert_string_equal(event_type_short(i), types[i].brief);
		assert_int_equal(event_mask_parse(types[i].brief, &mask), 0);
		assert_int_equal(mask, types[i].bit);
	}
	assert_null(event_type_name(16));
	assert_null(event_type_text(16));
	assert_null(event_type_short(UINT32_MAX));
}

static void test_states(void **state)
{
	static const char *const names[] = {"ProxyOpSendPosted",      "ProxyOpSendRemFifoWait",
					    "ProxyOpSendTransmitted", "ProxyOpSendDone",
					    "ProxyOpRecvPosted",      "ProxyOpRecvReceived",
					    "ProxyOpRecvTransmitted", "ProxyOpRecvDone",
					    "ProxyStepSendGPUWait",   "ProxyStepSendWait",
					    "ProxyStepRecvWait",      "ProxyStepRecvFlushWait",
					    "ProxyStepRecvGPUWait",   "ProxyCtrlIdle",
					    "ProxyCtrlActive",	      "ProxyCtrlSleep",
					    "ProxyCtrlWakeup",	      "ProxyCtrlAppend",
					    "ProxyCtrlAppendEnd",     "ProxyOpInProgress",
					    "ProxyStepSendPeerWait",  "NetPluginUpdate",
					    "KernelChStop",	      "GroupStartApiStop",
					    "GroupEndApiStart",	      "CeCollStart",
					    "CeCollComplete",	      "CeSyncStart",
					    "CeSyncComplete",	      "CeBatchStart",
					    "CeBatchComplete",	      "KernelPhaseStop"};
	char text[80];
	uint32_t i;

	(void)state;
	for (i = 0; i < 32; i++) {
		assert_string_equal(event_state_name(i), names[i]);
		snprintf(text, sizeof(text), ",\"name\":\"%s\",\"id\":%u", names[i], i);
		is_text(event_state_text(i), text);
	}
	assert_null(event_state_name(32));
	assert_null(event_state_text(32));
	assert_null(event_state_name(255));
}

static void test_mask(void **state)
{
	static const struct {
		const char *text;
		int64_t mask; /* -1: refused */
	} cases[] = {
		{"0", 0},	   {"1", 1},
		{"0x10", 16},	   {"65535", 0xffff},
		{"65536", -1},	   {"0x1g", -1},
		{"none", 0},	   {"all", 0xffff},
		{"ALL", 0xffff},   {"coll,p2p", 6},
		{"Coll,P2P", 6},   {"coll,coll", 2},
		{"", -1},	   {"coll,", -1},
		{",coll", -1},	   {"collx", -1},
		{"col", -1},	   {"coll p2p", -1},
		{"-1", -1},	   {"coll,,p2p", -1},
		{"proxystep", 16}, {"18446744073709551617", -1},
		{"none,coll", 2},  {"1,2", -1},
	};
	uint32_t i, mask;
	int err;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		err = event_mask_parse(cases[i].text, &mask);
		if (err != (cases[i].mask < 0 ? -EINVAL : 0) || (!err && mask != cases[i].mask))
			fail_msg("'%s': %d, 0x%x", cases[i].text, err, mask);
	}
}

/*
 * The other way round than the code: for each type, the bits of the mask under which NCCL emits it
 * (2.28.9, src/plugin/profiler.cc; the copy engine as of 2.30).
 */
static bool emitted(uint32_t type, uint32_t mask)
{
	const uint32_t G = 1, C = 2, P = 4, OP = 8, ST = 0x10, CTRL = 0x20, KC = 0x40, NET = 0x80;
	const uint32_t CAPI = 0x200, PAPI = 0x400, KL = 0x800, CE = 0x7000, KP = 0x8000;
	const uint32_t ops = OP | ST | KC | NET | KP;
	const uint32_t under[16] = {G | C | P | ops,
				    C | ops,
				    P | ops,
				    OP | ST | NET,
				    ST | NET,
				    CTRL,
				    KC,
				    NET,
				    ~CTRL,
				    CAPI | C | ops | CE,
				    PAPI | P | ops,
				    KL,
				    CE,
				    0x2000,
				    0x4000,
				    KP};

	return mask & under[type];
}

static void test_closure(void **state)
{
	uint32_t mask, what, got;

	(void)state;
	for (mask = 0; mask <= 0xffff; mask++) {
		got = event_mask_closure(mask);
		for (what = 0; what < 16; what++)
			if (!!(got & 1u << what) != emitted(what, mask))
				fail_msg("mask 0x%x: closure 0x%x, type %s", mask, got,
					 event_type_name(what));
	}
}

static void test_v1_enumerations(void **state)
{
	(void)state;
	assert_string_equal(name_func(0), "Broadcast");
	assert_string_equal(name_func(4), "AllReduce");
	assert_string_equal(name_func(7), "Recv");
	assert_string_equal(name_func(8), "");
	assert_string_equal(name_datatype(0), "ncclInt8");
	assert_string_equal(name_datatype(7), "ncclFloat32");
	assert_string_equal(name_datatype(9), "ncclBfloat16");
	assert_string_equal(name_datatype(255), "");
	assert_string_equal(name_algo(0), "TREE");
	assert_string_equal(name_algo(1), "RING");
	assert_string_equal(name_algo(6), "PAT");
	assert_string_equal(name_algo(7), "");
	assert_string_equal(name_proto(0), "LL");
	assert_string_equal(name_proto(2), "SIMPLE");
	assert_string_equal(name_proto(3), "");
}

static void test_syscalls(void **state)
{
	static const struct {
		int nr;
		const char *name;
	} calls[] = {
		{SYS_read, "read"},
		{SYS_futex, "futex"},
		{SYS_clock_nanosleep, "clock_nanosleep"},
		{SYS_epoll_pwait, "epoll_pwait"},
		{SYS_recvmsg, "recvmsg"},
		{SYS_wait4, "wait4"},
		{SYS_restart_syscall, "restart_syscall"},
		{SYS_newfstatat, "newfstatat"}, /* where arm64's headers go by a name in between */
#if defined(__x86_64__)
		{0, "read"}, /* the first */
		{7, "poll"},
		{232, "epoll_wait"},
		{156, "_sysctl"},
#elif defined(__aarch64__)
		{0, "io_setup"},
		{73, "ppoll"},
		{222, "mmap"},
		{244, NULL}, /* where an architecture's own begin */
#endif
		{-1, NULL},
		{-38, NULL},
		{INT32_MIN, NULL},
		{100000, NULL},
		{INT32_MAX, NULL},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (!calls[i].name && !syscall_name(calls[i].nr))
			continue;
		if (!calls[i].name || !syscall_name(calls[i].nr) ||
		    strcmp(syscall_name(calls[i].nr), calls[i].name) != 0)
			fail_msg("system call %d", calls[i].nr);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_mask),
		cmocka_unit_test(test_closure),
		cmocka_unit_test(test_v1_enumerations),
		cmocka_unit_test(test_syscalls),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
