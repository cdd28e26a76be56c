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

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
	       sig == SIGTRAP || sig == SIGSYS;
}

/* The kernel's own, with who ran: a fault of it, a stop by ptrace, or its end, which ends others, as that of a pid namespace's first process. */
static bool on_account(const struct scope_ev_signal *e)
{
	bool own = e->from_tgid == e->tgid;

	if (is_fault(e->sig))
		return own;
	if (e->sig == SIGSTOP)
		return e->code == SI_KERNEL && !own;
	if (e->sig == SIGKILL) /* else memory is short, which comes upon anybody */
		return e->exiting && !own && e->from_ns_tgid == 1 && e->from_tgid != 1;
	return e->exiting && !own;
}

/* Whether who ran then is who did it. Timers, terminals and memory that is short come upon anybody. */
static bool has_sender(const struct scope_ev_signal *e)
{
	if (e->code > 0)
		return on_account(e);
	return e->code != SI_TIMER && e->code != SI_MESGQ && e->code != SI_SIGIO;
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
		if (e->exiting)
			KEY_BOOL(&j, "exiting", 1);
		json_char(&j, '}');
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_SIGNAL);
}
