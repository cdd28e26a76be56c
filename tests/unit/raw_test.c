// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/decode/raw.c and the door of the pipeline: what was fed is read back as it was, makes the same trace, byte for byte;
 * a file may end anywhere, and a byte of it may be any other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include "capture.h"
#include "chunks.h"
#include "cmd.h"
#include "digest.h"
#include "log.h"
#include "raw.h"

static char raw_path[sizeof(chunks_dir) + 16];
static char *trace, *again, *digested; /* of the whole directory; owned */
static char **text;

static void keep_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[4096];
	size_t len = *text ? strlen(*text) : 0, n;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		n = strlen(line);
		*text = realloc(*text, len + n + 1);
		memcpy(*text + len, line, n + 1);
		len += n;
	}
	fclose(f);
}

static struct session *session_begin(void)
{
	struct session *s = calloc(1, sizeof(*s));

	s->dir = chunks_dir;
	s->own_files = true;
	s->uid = (uid_t)-1;
	s->gid = (gid_t)-1;
	return s;
}

/* As convert does it with what is torn. */
static void session_end(struct session *s)
{
	const struct input_finish in = {.how = "loader-stopped"};

	if (s->begun && !s->finished)
		assert_int_equal(pipeline__apply(s, INPUT_FINISH, &in, sizeof(in)), 0);
	pipeline__free(s);
	free(s);
}

static void feed(void *arg, enum input_kind kind, const void *data, size_t size)
{
	struct session *s = arg;

	raw_writer__put(s->raw, kind, data, size);
	pipeline__apply(s, kind, data, size);
}

/* The capture in the file, and its trace. */
static int setup(void **state)
{
	struct session *s = session_begin();
	int err;

	(void)state;
	if (!mkdtemp(chunks_dir))
		return -1;
	log_level = LOG_ERR;
	snprintf(raw_path, sizeof(raw_path), "%s.raw", chunks_dir);
	s->raw = raw_writer__open(raw_path, (uid_t)-1, (gid_t)-1, &err);
	assert_int_equal(err, 0);
	capture_make(feed, s);
	assert_true(s->finished);
	assert_int_equal(raw_writer__close(s->raw), 0);
	session_end(s);
	text = &trace;
	chunks_files(keep_text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(raw_path);
	rmdir(chunks_dir);
	free(trace);
	free(again);
	free(digested);
	return 0;
}

static size_t read_raw(unsigned char *buf, size_t size)
{
	int fd = open(raw_path, O_RDONLY);
	ssize_t n = read(fd, buf, size);

	close(fd);
	assert_true(n > 0 && (size_t)n < size);
	return (size_t)n;
}

/* Of memory. What the reader or the pipeline says in the end. */
static int convert(const void *data, size_t size, uint32_t *nkinds)
{
	struct session *s = session_begin();
	struct raw_reader r;
	struct raw_rec rec;
	bool seen[INPUT_KINDS] = {false};
	int err = raw_reader__of(&r, data, size);

	*nkinds = 0;
	if (!err) {
		while ((err = raw_reader__next(&r, &rec)) == 1) {
			*nkinds += !seen[rec.kind];
			seen[rec.kind] = true;
			err = pipeline__apply(s, rec.kind, rec.data, rec.size);
			if (err)
				break;
		}
		raw_reader__close(&r);
	}
	session_end(s);
	return err;
}

static void test_same_bytes(void **state)
{
	static unsigned char buf[1 << 16];
	size_t len = read_raw(buf, sizeof(buf));
	uint32_t nkinds;

	(void)state;
	assert_int_equal(convert(buf, len, &nkinds), 0);
	assert_int_equal(nkinds, INPUT_KINDS - 1); /* one of each */
	text = &again;
	chunks_files(keep_text);
	assert_non_null(again);
	assert_string_equal(again, trace);
	assert_non_null(strstr(trace, "\"host\":\"node7\""));
	assert_non_null(strstr(trace, "\"cmdline\":[\"python3\",\"train.py\"]"));
	assert_non_null(strstr(trace, "\"launcher\":{\"RANK\":\"3\"}"));
	assert_non_null(strstr(trace, "\"commName\":\"world\""));
	assert_non_null(strstr(trace, "\"type\":\"ncclProfileColl\""));
	assert_non_null(strstr(trace, "\"recordType\":\"drop\""));
	assert_non_null(strstr(trace, "\"where\":\"nf_hook_slow\""));
	assert_non_null(strstr(trace, "\"rxDropped\":1"));
	assert_non_null(strstr(trace, "\"symbol_error\":1"));
	assert_non_null(strstr(trace, "\"recordType\":\"lost\""));
	assert_non_null(strstr(trace, "\"end\":\"detached\""));
	assert_non_null(strstr(trace, "\"skipped\":7}")); /* the footer's */
}

/* Waits for it, as the status file does. */
static char *ask_status(struct digest *d)
{
	const struct digest_counts counts = {.chunks = 4321};

	assert_true(digest__ask_status(d, &counts));
	while (!digest__status(d)) {
		assert_false(digest__ask_status(d, &counts));
		digest__turn(d, monotonic_ns());
		usleep(1000);
	}
	return strdup(digest__status(d));
}

/* The thread of a recorder makes what convert makes, and says meanwhile how far it is. */
static void test_digest(void **state)
{
	static unsigned char buf[1 << 16];
	struct session *like = session_begin();
	const struct session *s;
	struct raw_reader r;
	struct raw_rec rec;
	struct digest *d = digest__new(like, 1 << 20, NULL, NULL);
	char *early, *late = NULL;

	(void)state;
	assert_non_null(d);
	digest__put(d, INPUT_KINDS, "", 0); /* what makes no sense costs nobody anything */
	assert_int_equal(digest__start(d), 0);
	early = ask_status(d);
	assert_int_equal(raw_reader__of(&r, buf, read_raw(buf, sizeof(buf))), 0);
	while (raw_reader__next(&r, &rec) == 1) {
		if (rec.kind == INPUT_FINISH) {
			digest__catch_up(d, NULL, NULL);
			assert_int_equal(digest__lag(d).bytes, 0);
			late = ask_status(d);
		}
		digest__put(d, rec.kind, rec.data, rec.size);
	}
	raw_reader__close(&r);
	s = digest__end(d);
	assert_true(s->finished);
	assert_int_equal(s->summary.procs, 1);
	digest__free(d);
	text = &digested;
	chunks_files(keep_text);
	assert_string_equal(digested, trace);
	assert_non_null(strstr(early, "\"chunks\":4321"));
	assert_non_null(strstr(early, "\"processes\":[]"));
	assert_non_null(late);
	assert_non_null(strstr(late, "\"commHash\""));
	free(early);
	free(late);
	free(like);
}

/* A recorder that was killed has left any part of it. */
static void test_torn(void **state)
{
	static unsigned char buf[1 << 16];
	size_t len = read_raw(buf, sizeof(buf)), n;
	uint32_t nkinds, ends = 0;
	int err;

	(void)state;
	for (n = 0; n < len; n++) {
		err = convert(buf, n, &nkinds);
		chunks_files(NULL);
		if (n < sizeof(struct raw_file_hdr))
			assert_int_equal(err, -EPROTO);
		else
			assert_true(err == 0 || err == -ENODATA);
		ends += !err;
	}
	assert_true(ends > INPUT_KINDS && ends < 100); /* between two records */
}

/* Whatever is in it: an error or a trace, and nothing worse. */
static void test_damaged(void **state)
{
	static unsigned char buf[1 << 16];
	size_t len = read_raw(buf, sizeof(buf)), n;
	uint32_t nkinds, bit, refused = 0;
	unsigned char was;

	(void)state;
	for (n = 0; n < len; n += 1 + n % 3) {
		bit = (uint32_t)(n * 7 % 8);
		was = buf[n];
		buf[n] ^= (unsigned char)(1 << bit);
		refused += convert(buf, len, &nkinds) != 0;
		chunks_files(NULL);
		buf[n] = was;
	}
	assert_true(refused > 0);
}

static void test_foreign(void **state)
{
	struct raw_file_hdr h = {.magic = RAW_MAGIC, .version = RAW_VERSION + 1};
	struct raw_reader r;

	(void)state;
	assert_int_equal(raw_reader__of(&r, "", 0), -EPROTO);
	assert_int_equal(raw_reader__of(&r, "{\"recordType\":\"header\"}", 23), -EPROTO);
	assert_int_equal(raw_reader__of(&r, &h, sizeof(h)), -EPROTO);
	assert_non_null(strstr(r.why, "version"));
	assert_int_equal(raw_reader__open(&r, open("/", O_RDONLY)), -EISDIR);
	assert_non_null(strstr(r.why, "directory"));
}

/* The command on a file of these bytes, into chunks_dir: its exit status; what it says into `said`. */
static int run_convert(const void *data, size_t size, char *said, size_t said_size)
{
	char path[sizeof(raw_path) + 8], dir[sizeof(chunks_dir)];
	char *argv[] = {"convert", "-q", "--threads=0", path, "-o", dir, NULL};
	int fd, status, say[2];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	strcpy(dir, chunks_dir);
	snprintf(path, sizeof(path), "%s.cmd", raw_path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
	assert_int_equal(pipe(say), 0);
	pid = fork();
	if (!pid) {
		dup2(say[1], STDERR_FILENO);
		_exit(cmd_convert(6, argv));
	}
	close(say[1]);
	while ((n = read(say[0], said + len, said_size - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = 0;
	close(say[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Where the record of a kind begins. */
static size_t place_of(const void *data, size_t size, enum input_kind kind)
{
	struct raw_reader r;
	struct raw_rec rec;

	assert_int_equal(raw_reader__of(&r, data, size), 0);
	do {
		assert_int_equal(raw_reader__next(&r, &rec), 1);
	} while (rec.kind != kind);
	raw_reader__close(&r);
	return rec.offset;
}

/* A whole record in which there is nothing that it could mean: status 1, where it is, and the traces up to there. */
static void test_senseless(void **state)
{
	static unsigned char buf[1 << 16];
	size_t len = read_raw(buf, sizeof(buf)), at = place_of(buf, len, INPUT_FINISH);
	struct raw_rec_hdr h = {.size = 8, .kind = INPUT_TICK, .mark = RAW_MARK};
	char said[512], want[128], *kept = NULL;

	(void)state;
	assert_int_equal(run_convert(buf, len, said, sizeof(said)), EXIT_OK);
	chunks_files(NULL);
	memcpy(buf + at, &h, sizeof(h));
	memset(buf + at + sizeof(h), 0, h.size);
	assert_int_equal(run_convert(buf, at + sizeof(h) + h.size, said, sizeof(said)),
			 EXIT_FAILED);
	snprintf(want, sizeof(want),
		 "the record at byte %zu (kind %d, 8 bytes) makes no sense here: the file is "
		 "damaged",
		 at, INPUT_TICK);
	assert_non_null(strstr(said, want));
	text = &kept;
	chunks_files(keep_text);
	assert_non_null(kept);
	assert_non_null(strstr(kept, "\"type\":\"ncclProfileColl\""));
	assert_non_null(strstr(kept, "\"end\":\"loader-stopped\""));
	free(kept);
}

/* An error of a reading is one that there is: others cannot be told, nor negated. */
static void test_errors(void **state)
{
	static const struct {
		int32_t err;
		int want;
	} cases[] = {{0, 0}, {-EPERM, 0}, {1, -EINVAL}, {-4096, -EINVAL}, {INT32_MIN, -EINVAL}};
	static unsigned char buf[1 << 16];
	struct session *s = session_begin();
	struct input_flows in = {.now_ns = 1};
	struct raw_reader r;
	struct raw_rec rec;
	size_t i;

	(void)state;
	assert_int_equal(raw_reader__of(&r, buf, read_raw(buf, sizeof(buf))), 0);
	assert_int_equal(raw_reader__next(&r, &rec), 1);
	assert_int_equal(pipeline__apply(s, rec.kind, rec.data, rec.size), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		in.err = cases[i].err;
		assert_int_equal(pipeline__apply(s, INPUT_FLOWS, &in, sizeof(in)), cases[i].want);
	}
	raw_reader__close(&r);
	session_end(s);
}

/* What a job's memory says of its communicators is no damage of the file: it costs that job, and nobody else. */
static void test_job_lies(void **state)
{
	static const struct {
		uint64_t ctx;
		uint32_t api;
	} lies[] = {{0, 5}, {9, 0}, {9, 8}, {9, UINT32_MAX}};
	static unsigned char buf[1 << 16];
	size_t len = read_raw(buf, sizeof(buf)), at = place_of(buf, len, INPUT_COMM), i;
	struct input_comm in;
	char said[512], *kept;

	(void)state;
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		memcpy(&in, buf + at + sizeof(struct raw_rec_hdr), sizeof(in));
		in.comm.ctx = lies[i].ctx;
		in.comm.api = lies[i].api;
		memcpy(buf + at + sizeof(struct raw_rec_hdr), &in, sizeof(in));
		assert_int_equal(run_convert(buf, len, said, sizeof(said)), EXIT_OK);
		assert_non_null(strstr(said, "1 records made no sense and were skipped"));
		kept = NULL;
		text = &kept;
		chunks_files(keep_text);
		assert_non_null(strstr(kept, "\"type\":\"ncclProfileColl\""));
		assert_null(strstr(kept, "\"commName\":\"world\""));
		assert_non_null(strstr(kept, "\"end\":\"detached\""));
		free(kept);
	}
}

/* Why there is no KernelCh: who wanted it came too late, unless the plugin has another reason, or nobody is to have it. */
static void test_no_kernels(void **state)
{
	static const struct {
		uint32_t flags, ceiling, mask, off, api;
		uint8_t no_kernels;
		const char *ceiling_told, *why;
	} cases[] = {
		{INPUT_CEILING, 0xfff, 0, 0, 5, 0, "4095", "late"},	/* it was made before */
		{INPUT_CEILING, 0xfff, 0xfbf, 0, 5, 0, "4095", "late"}, /* or others were */
		{INPUT_CEILING, 0xfff, 0xfff, 1, 5, 0, "4095", "late"}, /* it went off since */
		{INPUT_CEILING, 0xfff, 0xfff, 0, 5, 0, "4095", NULL},
		{INPUT_CEILING, 0xfff, 0, 0, 5, SCOPE_KERNELS_MAY_HANG, "4095", "may-hang"},
		{INPUT_CEILING, 0xfff, 0, 1, 5, SCOPE_KERNELS_SHM_FULL, "4095", "shm-full"},
		{0, 0, 0, 0, 5, SCOPE_KERNELS_SHM_FULL, NULL, "shm-full"},
		{INPUT_CEILING, 0xfbf, 0, 0, 5, 0, "4031", NULL}, /* the user does not want it */
		{INPUT_CEILING, 0, 0, 0, 5, 0, "0", NULL},
		{INPUT_CEILING, 0xfff, 0, 0, 2, 0, "4095", NULL}, /* nor does NCCL have it */
		{0, 0xfff, 0, 0, 5, 0, NULL, NULL}};
	static unsigned char buf[1 << 16];
	const size_t len = read_raw(buf, sizeof(buf)), hdr = sizeof(struct raw_rec_hdr);
	const size_t at_proc = place_of(buf, len, INPUT_PROC) + hdr,
		     at_comm = place_of(buf, len, INPUT_COMM) + hdr;
	char said[512], key[64], *kept;
	struct input_proc proc;
	struct input_comm comm;
	uint32_t i;

	(void)state;
	memcpy(&proc, buf + at_proc, sizeof(proc));
	memcpy(&comm, buf + at_comm, sizeof(comm));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		proc.flags = INPUT_HAS_WHO | cases[i].flags;
		proc.ceiling = cases[i].ceiling;
		comm.comm.mask = cases[i].mask;
		comm.comm.api = cases[i].api;
		comm.comm.no_kernels = cases[i].no_kernels;
		comm.kernels_off = cases[i].off;
		memcpy(buf + at_proc, &proc, sizeof(proc));
		memcpy(buf + at_comm, &comm, sizeof(comm));
		assert_int_equal(run_convert(buf, len, said, sizeof(said)), EXIT_OK);
		kept = NULL;
		text = &kept;
		chunks_files(keep_text);
		snprintf(key, sizeof(key), "\"maskCeiling\":%s,", cases[i].ceiling_told);
		assert_int_equal(!strstr(kept, cases[i].ceiling_told ? key : "\"maskCeiling\""),
				 !cases[i].ceiling_told);
		snprintf(key, sizeof(key), "\"noKernelCh\":\"%s\"", cases[i].why);
		assert_int_equal(!strstr(kept, cases[i].why ? key : "\"noKernelCh\""),
				 !cases[i].why);
		free(kept);
	}
}

/* Nobody's file is written over, and the disk may be full. */
static void test_writer(void **state)
{
	struct raw_writer *w;
	char zero[4096] = {0};
	int err, i;

	(void)state;
	assert_null(raw_writer__open(raw_path, (uid_t)-1, (gid_t)-1, &err));
	assert_int_equal(err, -EEXIST);
	assert_null(raw_writer__open("/proc/nothing/there", (uid_t)-1, (gid_t)-1, &err));
	assert_true(err < 0);
	unlink(raw_path);
	w = raw_writer__open(raw_path, (uid_t)-1, (gid_t)-1, &err);
	assert_non_null(w);
	for (i = 0; i < 1000; i++)
		raw_writer__put(w, INPUT_RING, zero, sizeof(zero));
	assert_true(raw_writer__bytes(w) > 2 << 20);
	assert_int_equal(raw_writer__close(w), 0);
	assert_int_equal(raw_writer__close(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_digest),
		cmocka_unit_test(test_torn),	   cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_foreign),	   cmocka_unit_test(test_errors),
		cmocka_unit_test(test_senseless),  cmocka_unit_test(test_job_lies),
		cmocka_unit_test(test_no_kernels), cmocka_unit_test(test_writer),
	};

	return cmocka_run_group_tests_name("raw", tests, setup, teardown);
}
