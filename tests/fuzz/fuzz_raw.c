// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer over captures: reader, the door of the pipeline and all behind it, for a file that anybody may have
 * written. Without the header of the file, which is put before; what decode makes of records that only a kernel can
 * have made is fuzz_decode's business, so what is held here is that nothing reads or writes where it must not.
 */
#include <stdio.h>
#include "../unit/chunks.h"
#include "log.h"
#include "pipeline.h"
#include "raw.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cleanup_dir(void)
{
	rmdir(chunks_dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_level = LOG_ERR;
	if (!mkdtemp(chunks_dir))
		return 1;
	atexit(cleanup_dir);
	return 0;
}

static void session_end(struct session *s)
{
	const struct input_finish in = {.how = "loader-stopped"};

	if (s->begun && !s->finished)
		pipeline__apply(s, INPUT_FINISH, &in, sizeof(in));
	pipeline__free(s);
}

static void session_begin(struct session *s, bool mute)
{
	s->dir = chunks_dir;
	s->own_files = true;
	s->uid = (uid_t)-1;
	s->gid = (gid_t)-1;
	s->mute = mute;
}

static void convert(struct raw_reader *r, struct session *s, bool mute)
{
	struct raw_rec rec;

	session_begin(s, mute);
	while (raw_reader__next(r, &rec) == 1) {
		if (rec.kind == INPUT_SESSION) {
			session_end(s);
			session_begin(s, mute);
		}
		if (pipeline__apply(s, rec.kind, rec.data, rec.size))
			break;
	}
	session_end(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct raw_file_hdr h = {
		.magic = RAW_MAGIC, .version = RAW_VERSION, .ring_abi = SCOPE_ABI};
	unsigned char *file = malloc(sizeof(h) + size);
	struct session *s = calloc(1, sizeof(*s));
	struct raw_reader r;

	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), data, size);
	if (raw_reader__of(&r, file, sizeof(h) + size))
		abort();
	convert(&r, s, size & 1);
	raw_reader__close(&r);
	chunks_files(NULL);
	free(s);
	free(file);
	return 0;
}
