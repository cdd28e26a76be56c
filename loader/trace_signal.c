// SPDX-License-Identifier: BSD-2-Clause
/* Signals that end or stop a process as JSON: which one, and whose. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "trace.h"
#include "trace_keys.h"

/* "SIGTERM"; real-time signals have no name that says more than their number. */
static void name_of(int sig, char *at, size_t len)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		snprintf(at, len, "SIG%s", name);
	else
		snprintf(at, len, "signal %d", sig);
}

/* That the kernel kills all of a pid namespace, as its first process, which it runs on account of, has ended. */
static bool by_namespace(const struct scope_ev_signal *e)
{
	return e->sig == SIGKILL && e->from_ns_tgid == 1 && e->from_tgid != 1;
}

/*
 * Whether who ran then is who did it: kill(2), sigqueue(3), tgkill(2), or what the kernel did for the thread that ran, as a
 * fault of its own or a stop by ptrace. Timers, terminals and memory that is short come upon anybody.
 */
static bool has_sender(const struct scope_ev_signal *e)
{
	switch (e->code) {
	case SI_USER:
	case SI_QUEUE:
	case SI_TKILL:
		return true;
	case SI_KERNEL:
		return e->sig == SIGSTOP || by_namespace(e);
	default:
		return e->code > 0 && e->from_tgid == e->tgid &&
		       (e->sig == SIGSEGV || e->sig == SIGBUS || e->sig == SIGFPE ||
			e->sig == SIGILL || e->sig == SIGTRAP || e->sig == SIGSYS);
	}
}

void trace__signal(struct proc *p, const struct scope_ev_signal *e)
{
	struct json j = trace_begin(p, STATE_MAX);
	char name[16];

	if (!j.at)
		return;
	name_of(e->sig, name, sizeof(name));
	json_lit(&j, "{\"recordType\":\"signal\"");
	KEY_US(&j, "ts", e->h.ts_ns);
	KEY_STR(&j, "signal", name, strlen(name));
	KEY_I64(&j, "nr", e->sig);
	KEY_I64(&j, "code", e->code);
	if (e->ns_tid)
		KEY_U64(&j, "tid", e->ns_tid);
	if (e->handled)
		KEY_BOOL(&j, "handled", 1);
	if (has_sender(e)) {
		json_lit(&j, ",\"from\":{\"pid\":");
		json_u64(&j, e->from_tgid);
		KEY_U64(&j, "tid", e->from_tid);
		KEY_STR(&j, "comm", e->from_comm, strnlen(e->from_comm, sizeof(e->from_comm)));
		KEY_U64(&j, "uid", e->from_uid);
		json_char(&j, '}');
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_SIGNAL);
}
