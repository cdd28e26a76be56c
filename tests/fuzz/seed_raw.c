// SPDX-License-Identifier: BSD-2-Clause
/* The small capture of tests/unit/capture.h, whole and in parts, for fuzz_raw: seed_raw DIRECTORY. */
#include <stdio.h>
#include "../unit/capture.h"
#include "raw.h"

static FILE *out;

static void feed(void *arg, enum input_kind kind, const void *data, size_t size)
{
	const struct raw_rec_hdr h = {
		.size = (uint32_t)size, .kind = (uint16_t)kind, .mark = RAW_MARK};
	static const char zero[8];

	(void)arg;
	fwrite(&h, sizeof(h), 1, out);
	if (size)
		fwrite(data, size, 1, out);
	fwrite(zero, (8 - size % 8) % 8, 1, out);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 2)
		return 2;
	snprintf(path, sizeof(path), "%s/seed-0", argv[1]);
	out = fopen(path, "w");
	if (!out)
		return 1;
	capture_make(feed, NULL);
	return fclose(out) ? 1 : 0;
}
