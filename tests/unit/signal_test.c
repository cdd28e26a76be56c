// SPDX-License-Identifier: BSD-2-Clause
/* Signals, from the ring to their lines: whose one was is said where it is known, and not where somebody merely ran. */
#include <signal.h>
#include "trace_lines.h"

#define BEFORE "{\"recordType\":\"signal\",\"ts\":7.000,"

static struct scope_ev_signal make(int sig, int code)
{
	return (struct scope_ev_signal){.h = {.abi = SCOPE_ABI,
					      .kind = SCOPE_EV_SIGNAL,
					      .size = sizeof(struct scope_ev_signal),
					      .ts_ns = 7000},
					.start_ns = 10,
					.tgid = OWN,
					.sig = sig,
					.code = code,
					.from_tgid = 300,
					.from_tid = 301,
					.from_ns_tgid = 300,
					.from_uid = 1000,
					.from_comm = "a\"b"};
}

static void send(struct scope_ev_signal e)
{
	assert_non_null(decode__event(s, &e, sizeof(e)));
}

static void expect(const char *text)
{
	assert_string_equal(lines, text);
}

static int setup(void **state)
{
	(void)state;
	s = session_new();
	used = 0;
	*lines = 0;
	wanted[0] = BEFORE;
	wanted[1] = "\"footer\"";
	assert_non_null(process(0, 6000));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (s)
		session_free(s);
	chunks_files(NULL);
	return 0;
}

/* Ends the recording, which leaves one footer behind the lines; that is cut off. */
static void end(void)
{
	char *footer;

	session_free(s);
	s = NULL;
	chunks_files(take_file);
	footer = strstr(lines, "{\"recordType\":\"footer\"");
	assert_non_null(footer);
	*footer = 0;
}

#define FROM ",\"from\":{\"pid\":300,\"tid\":301,\"comm\":\"a\\\"b\",\"uid\":1000}}\n"

static void by_processes(void **state)
{
	struct scope_ev_signal e;

	(void)state;
	send(make(SIGTERM, SI_USER));
	send(make(SIGSTOP, SI_QUEUE));
	e = make(SIGABRT, SI_TKILL);
	e.ns_tid = 6;
	e.handled = 1;
	send(e);
	send(make(40, SI_USER));
	end();
	expect(BEFORE
	       "\"signal\":\"SIGTERM\",\"nr\":15,\"code\":0" FROM BEFORE
	       "\"signal\":\"SIGSTOP\",\"nr\":19,\"code\":-1" FROM BEFORE
	       "\"signal\":\"SIGABRT\",\"nr\":6,\"code\":-6,\"tid\":6,\"handled\":true" FROM BEFORE
	       "\"signal\":\"signal 40\",\"nr\":40,\"code\":0" FROM);
}

static void by_the_kernel(void **state)
{
	struct scope_ev_signal e;

	(void)state;
	send(make(SIGKILL, SI_KERNEL)); /* somebody wanted memory */
	send(make(SIGALRM, SI_KERNEL)); /* somebody was interrupted */
	send(make(SIGALRM, SI_TIMER));
	send(make(SIGSEGV, 1)); /* of another process: none that there is */
	send(make(SIGSTOP, SI_KERNEL));
	e = make(SIGKILL, SI_KERNEL);
	e.from_ns_tgid = 1;
	send(e); /* it wanted memory */
	e.exiting = 1;
	send(e);
	e.from_tgid = OWN; /* by its own end */
	send(e);
	e = make(SIGHUP, SI_KERNEL); /* of a terminal's session */
	send(e);
	e.exiting = 1;
	send(e);
	e = make(SIGSEGV, SI_KERNEL); /* an address that cannot be */
	e.from_tgid = OWN;
	send(e);
	e = make(SIGSEGV, 1);
	e.from_tgid = OWN;
	send(e);
	end();
#define AS_IT_ENDED                                                                                \
	",\"from\":{\"pid\":300,\"tid\":301,\"comm\":\"a\\\"b\",\"uid\":1000,\"exiting\":true}}\n"
#define OWN_FAULT ",\"from\":{\"pid\":4000000000,\"tid\":301,\"comm\":\"a\\\"b\",\"uid\":1000}}\n"
	expect(BEFORE "\"signal\":\"SIGKILL\",\"nr\":9,\"code\":128}\n" BEFORE
		      "\"signal\":\"SIGALRM\",\"nr\":14,\"code\":128}\n" BEFORE
		      "\"signal\":\"SIGALRM\",\"nr\":14,\"code\":-2}\n" BEFORE
		      "\"signal\":\"SIGSEGV\",\"nr\":11,\"code\":1}\n" BEFORE
		      "\"signal\":\"SIGSTOP\",\"nr\":19,\"code\":128" FROM BEFORE
		      "\"signal\":\"SIGKILL\",\"nr\":9,\"code\":128}\n" BEFORE
		      "\"signal\":\"SIGKILL\",\"nr\":9,\"code\":128" AS_IT_ENDED BEFORE
		      "\"signal\":\"SIGKILL\",\"nr\":9,\"code\":128}\n" BEFORE
		      "\"signal\":\"SIGHUP\",\"nr\":1,\"code\":128}\n" BEFORE
		      "\"signal\":\"SIGHUP\",\"nr\":1,\"code\":128" AS_IT_ENDED BEFORE
		      "\"signal\":\"SIGSEGV\",\"nr\":11,\"code\":128" OWN_FAULT BEFORE
		      "\"signal\":\"SIGSEGV\",\"nr\":11,\"code\":1" OWN_FAULT);
}

/* Of a process without a trace, or another that had the number before; too short. */
static void nobodys(void **state)
{
	struct scope_ev_signal e = make(SIGTERM, SI_USER);

	(void)state;
	e.tgid++;
	assert_null(decode__event(s, &e, sizeof(e)));
	e = make(SIGTERM, SI_USER);
	e.start_ns++;
	assert_null(decode__event(s, &e, sizeof(e)));
	assert_int_equal(s->bad_records, 0);
	e = make(SIGTERM, SI_USER);
	e.h.size--;
	assert_null(decode__event(s, &e, sizeof(e)));
	assert_int_equal(s->bad_records, 1);
	end();
	expect("");
}

/* What the ring had no room for is in the account of kernel context; who was chosen for want of memory says so. */
static void ends(void **state)
{
	const struct scope_ev_exit e = {.h = {.abi = SCOPE_ABI,
					      .kind = SCOPE_EV_EXIT,
					      .size = sizeof(e),
					      .ts_ns = 8000,
					      .start_ns = 10,
					      .tgid = OWN,
					      .tid = OWN,
					      .ns_tgid = 5,
					      .ns_tid = 5},
					.code = SIGKILL,
					.group_dead = 1,
					.context_lost = 3,
					.oom = 1};
	struct proc *p;

	(void)state;
	send(make(SIGKILL, SI_KERNEL));
	p = decode__event(s, &e, sizeof(e));
	assert_non_null(p);
	decode__end(p, p->end_status, false, p->end_lost_recs);
	chunks_files(take_file);
	assert_non_null(strstr(lines, "\"signal\":\"SIGKILL\",\"nr\":9,\"code\":128}\n"));
	assert_non_null(strstr(lines, "\"end\":\"signal 9\",\"oom\":true,"));
	assert_non_null(strstr(lines, "\"signal\":1"));
	assert_non_null(strstr(lines, "\"lost\":{\"context-ring-full\":3}"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(by_processes), TEST(by_the_kernel), TEST(nobodys),
					   TEST(ends)};
	int failed;

	if (!mkdtemp(chunks_dir))
		return 1;
	failed = cmocka_run_group_tests_name("signal", tests, NULL, NULL);
	rmdir(chunks_dir);
	return failed;
}
