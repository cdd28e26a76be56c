// SPDX-License-Identifier: BSD-2-Clause
/* loader/trace/trace_text.c: text that is kept is what would be written anew, whoever it was made for before. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "proc.h"
#include "trace_keys.h"

#define GPU "8f6b1c2d-1111-2222-3333-4444555566\"\n" /* 36 characters, of a job */

static char line[EVENT_MAX];

static struct json begin(void)
{
	return (struct json){line, line + sizeof(line)};
}

static void is_line(const struct json *j, const char *want)
{
	assert_int_equal(j->at - line, strlen(want));
	assert_memory_equal(line, want, strlen(want));
}

static void thread_is(struct proc *p, uint32_t tid, uint32_t host_tid)
{
	const struct corr_thread t = {.tid = tid, .host_tid = host_tid};
	struct json j = begin();
	char want[128], *at = want;

	put_thread(&j, p, &t);
	at += sprintf(at, ",\"pid\":%u,\"tid\":%u", p->id.ns_tgid, tid);
	if (p->id.tgid != p->id.ns_tgid)
		at += sprintf(at, ",\"hostPid\":%u", p->id.tgid);
	if (host_tid != tid)
		sprintf(at, ",\"hostTid\":%u", host_tid);
	is_line(&j, want);
}

static void test_threads(void **state)
{
	struct proc *p = calloc(1, sizeof(*p));
	int i;

	(void)state;
	p->id.tgid = p->id.ns_tgid = 7;
	thread_is(p, 0, 0);
	for (i = 0; i < 1000; i++)
		thread_is(p, (uint32_t)rand() % 64, (uint32_t)rand() % 64);
	free(p);
	p = calloc(1, sizeof(*p));
	p->id.tgid = UINT32_MAX; /* as long as it gets */
	p->id.ns_tgid = UINT32_MAX - 1;
	thread_is(p, UINT32_MAX, UINT32_MAX - 1);
	thread_is(p, UINT32_MAX, UINT32_MAX);
	thread_is(p, UINT32_MAX, UINT32_MAX);
	free(p);
}

static void comm_is(struct proc *p, const struct corr_comm *comm, const char *gpu_uuid)
{
	struct json j = begin();
	char want[512];

	put_comm(&j, p, comm, false);
	snprintf(want, sizeof(want),
		 ",\"gpuUuid\":\"%s\",\"commId\":%" PRIu64 ",\"commHash\":\"0x%" PRIx64
		 "\",\"rank\":%d",
		 gpu_uuid, (uint64_t)comm->info.hash, (uint64_t)comm->info.hash, comm->info.rank);
	is_line(&j, want);
}

/* Name and rank may come later than the communicator; many share the few places. */
static void test_comms(void **state)
{
	struct proc *p = calloc(1, sizeof(*p));
	struct corr_comm comm[16] = {0};
	struct json j;
	int i;

	(void)state;
	for (i = 0; i < 16; i++)
		comm[i].info.ctx = (uint64_t)77 << SCOPE_ID_TAG_SHIFT | (uint64_t)i;
	for (i = 0; i < 1000; i++) {
		struct corr_comm *c = &comm[rand() % 16];

		if (!(rand() % 4))
			c->info.hash = (uint64_t)rand() << (rand() % 33);
		if (!(rand() % 4))
			c->info.rank = rand() % 3 - 1;
		comm_is(p, c, "");
	}
	memcpy(comm[3].info.gpu_uuid, GPU, SCOPE_GPU_UUID_LEN);
	comm[3].info.ctx = 99;
	comm_is(p, &comm[3], "8f6b1c2d-1111-2222-3333-4444555566\\\"\\n");
	comm_is(p, &comm[3], "8f6b1c2d-1111-2222-3333-4444555566\\\"\\n");
	j = begin();
	put_comm(&j, p, NULL, true);
	is_line(&j, ",\"gpuUuid\":\"\",\"commId\":0,\"rank\":-1");
	j = begin();
	put_comm(&j, p, &comm[3], true); /* a step that was told of another's ProxyOp later */
	is_line(&j, ",\"gpuUuid\":\"\",\"commId\":0,\"rank\":-1");
	j = begin();
	put_comm(&j, p, NULL, false);
	is_line(&j, ",\"gpuUuid\":\"\",\"commId\":0,\"commHash\":\"0x0\",\"rank\":-1");
	free(p);
}

/* Escaped, each of 36 bytes may take six. */
static void test_longest(void **state)
{
	struct proc *p = calloc(1, sizeof(*p));
	struct corr_comm comm = {.info = {.ctx = 1, .hash = UINT64_MAX, .rank = INT32_MIN}};
	struct json j = begin(), again;

	(void)state;
	memset(comm.info.gpu_uuid, 1, SCOPE_GPU_UUID_LEN);
	put_comm(&j, p, &comm, false);
	again = j;
	put_comm(&again, p, &comm, false);
	assert_int_equal(again.at - j.at, j.at - line);
	assert_memory_equal(j.at, line, (size_t)(j.at - line));
	assert_true(j.at - line <= TRACE_COMM_MAX);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_comms),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests_name("trace_text", tests, NULL, NULL);
}
