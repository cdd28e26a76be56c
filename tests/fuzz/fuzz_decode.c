// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer over decode, correlate and the writer: whatever jobs put into their buffers, nothing reads
 * or writes where it must not, and what comes out is a trace, line by line.
 */
#include <stdio.h>
#include "../unit/chunks.h"
#include "check.h"
#include "fuzz_item.h"
#include "log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct check checker = {.max_shown = 1};

static void cleanup_dir(void)
{
	rmdir(chunks_dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_level = LOG_ERR;
	checker.file = "trace";
	if (!mkdtemp(chunks_dir) || json_doc__init(&checker.doc))
		return 1;
	atexit(cleanup_dir);
	return 0;
}

/*
 * In place of check.c's: a job may claim any number (a pid below 0, say), and the trace repeats it; but
 * which keys a line has, and of what type, is ours.
 */
void find_at(struct check *c, enum level level, uint64_t line, const char *code, const char *fmt,
	     ...)
{
	if (level != FIND_ERROR || !strcmp(code, "key-value"))
		return;
	fprintf(stderr, "line %llu: %s: %s\n", (unsigned long long)line, code, fmt);
	c->nr[level]++;
}

const char *quote(const char *s, size_t len)
{
	(void)len;
	return s;
}

static void line_must_be_good(const char *line, size_t len)
{
	enum etype etype;
	enum kind kind;

	checker.line++;
	if (!json_doc__parse(&checker.doc, line, len))
		keys_check(&checker, &checker.doc.nodes[0], &kind, &etype);
	else
		checker.nr[FIND_ERROR]++;
	if (checker.nr[FIND_ERROR]) {
		fprintf(stderr, "%.*s\n", (int)len, line);
		abort();
	}
}

static void file_must_be_good(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (!f)
		abort();
	while ((len = getline(&line, &cap, f)) > 0) {
		if (line[len - 1] != '\n')
			abort(); /* a file that was closed in good order has no torn line */
		line_must_be_good(line, (size_t)len - 1);
	}
	free(line);
	fclose(f);
}

/* What BPF stamps is not the job's to choose. */
static struct scope_ev_hdr header(const struct fuzz_item *it, uint16_t kind, size_t size)
{
	uint32_t n = it->proc & 3;

	return (struct scope_ev_hdr){.abi = SCOPE_ABI,
				     .kind = kind,
				     .size = (uint32_t)size,
				     .ts_ns = 1000000 + it->pos % 1000000,
				     .start_ns = n < 2 ? 10 : 5000,
				     .tgid = 4194000 + n,
				     .tid = 4194000 + n + it->proc,
				     .ns_tgid = 5 + n,
				     .ns_tid = 5 + n + it->proc,
				     .comm = "job \"\\\xff\n"};
}

static void chunk(struct session *s, const struct fuzz_item *it, const uint8_t *data)
{
	size_t size = sizeof(struct scope_ev_chunk) + it->len;
	struct scope_ev_chunk *c = malloc(size);

	memset(c, 0, sizeof(*c));
	c->h = header(it, SCOPE_EV_CHUNK, size);
	c->tbuf = 1 + (it->proc >> 2);
	c->pos = it->pos;
	c->rec_pos = it->rec_pos;
	c->len = it->len;
	c->rec_cnt = it->rec_cnt;
	c->tag = 0x77;
	c->clock = it->proc & 4 ? SCOPE_CLOCK_TSC : SCOPE_CLOCK_MONOTONIC;
	memcpy(c + 1, data, it->len);
	decode__event(s, c, size);
	free(c);
}

static void end(struct session *s, const struct fuzz_item *it, uint16_t kind)
{
	struct scope_ev_exit e = {.h = header(it, kind, sizeof(e)),
				  .code = (int32_t)it->rec_cnt,
				  .group_dead = it->pos & 1,
				  .lost_recs = it->rec_pos};

	decode__event(s, &e, sizeof(e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session *s = session_new();
	struct proc *p, *tmp;
	struct fuzz_item it;

	while (size >= sizeof(it)) {
		memcpy(&it, data, sizeof(it));
		data += sizeof(it);
		size -= sizeof(it);
		if (it.kind == SCOPE_EV_EXIT || it.kind == SCOPE_EV_EXEC) {
			end(s, &it, it.kind);
			continue;
		}
		if (it.len > size)
			it.len = (uint16_t)size;
		chunk(s, &it, data);
		data += it.len;
		size -= it.len;
		if (it.kind & 64)
			HASH_ITER (hh, s->procs, p, tmp)
				correlate__tick(&p->corr, p->corr.now_ns + it.rec_cnt);
	}
	session_free(s);
	checker.line = 0;
	chunks_files(file_must_be_good);
	return 0;
}
