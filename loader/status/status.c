// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope status`: who records what on this node, and what is asked of jobs. Looks, and changes nothing. */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "cmd.h"
#include "human.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "pid_stat.h"
#include "status_file.h"
#include "status_show.h"
#include "target.h"
#include "text.h"

#define COMMS_MAX    64 /* of one process that are listed */
#define HIDDEN_NAMED 4

struct options {
	pid_t pids[MAX_PIDS];
	int npids;
	bool json;
};

enum { OPT_JSON = 256 };

static const struct argp_option options[] = {
	{"json", OPT_JSON, NULL, 0, "Print JSON instead of tables", 0},
	{"pid", 'p', "PID", 0, "This process only, with its communicators; may be repeated", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'p':
		options__add_pid(state, arg, o->pids, &o->npids);
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.doc = "Tell who records what on this node: recorders, processes that have the plugin "
	       "loaded, the event types that are asked of them, counts and losses. Looks only; "
	       "root sees all processes, others their own.\v"
	       "Exit status: 0 ok, 1 a process of --pid does not exist or has no such plugin, or "
	       "the output could not be written, 2 usage, 3 privilege.",
};

/* ---- One process ------------------------------------------------------------------------------- */

/* What the kernel says of it: its own pid, its user, its name. */
static json_t *identity(pid_t pid)
{
	struct text_file file = {0};
	struct text t, line, word, next;
	uint64_t ns_pid = (uint64_t)pid, uid = 0;
	json_t *comm = NULL;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	if (text_file__read(&file, "", name, 65536))
		file.len = 0;
	for (t = text_of(file.at, file.len); text__line(&t, &line);) {
		if (!text__word(&line, '\t', &word))
			continue;
		if (text__is(&word, "Uid:") && text__word(&line, '\t', &next))
			text__number(&next, 10, &uid);
		while (text__is(&word, "NSpid:") && text__word(&line, '\t', &next))
			text__number(&next, 10, &ns_pid);
	}
	snprintf(name, sizeof(name), "/proc/%d/comm", pid);
	if (!text_file__read(&file, "", name, 64) && file.len)
		comm = status_text(file.at, file.len - 1); /* without its newline */
	text_file__free(&file);
	return json_pack("{s:I,s:i,s:I,s:o*}", "pid", (json_int_t)ns_pid, "hostPid", (int)pid,
			 "uid", (json_int_t)uid, "comm", comm);
}

/* 'gone': it was killed, and the next callback will notice. Without a pid: it is in another pid namespace. */
static json_t *want_doc(const struct scope_want *w)
{
	const char *by = "recorder";
	json_t *o;

	if (w->owner == SCOPE_OWNER_MANUAL)
		by = "arm";
	else if (target__owner_is_dead(w))
		by = "gone";
	o = json_pack("{s:s,s:I,s:o}", "by", by, "mask", (json_int_t)w->mask, "maskNames",
		      status_mask(w->mask));
	if (target__owner_is_here(w))
		json_object_set_new(o, "pid", json_integer(w->owner));
	return o;
}

static json_t *wants_doc(const struct target_state *state)
{
	json_t *a = json_array();
	int i;

	for (i = 0; i < SCOPE_WANT_SLOTS; i++)
		if (state->want[i].owner)
			json_array_append_new(a, want_doc(&state->want[i]));
	return a;
}

static json_t *masks_doc(const struct target_state *state)
{
	json_t *a = json_array();
	uint32_t i;

	for (i = 0; i < state->nmasks; i++)
		json_array_append_new(a, json_pack("{s:I,s:o}", "mask", (json_int_t)state->masks[i],
						   "maskNames", status_mask(state->masks[i])));
	return a;
}

struct comms {
	json_t *list;
	json_int_t n;
};

static void add_comm(void *arg, const struct scope_comm *comm)
{
	struct comms *c = arg;
	char hash[24];
	json_t *o;

	c->n++;
	if (json_array_size(c->list) == COMMS_MAX)
		return;
	snprintf(hash, sizeof(hash), "0x%llx", (unsigned long long)comm->hash);
	o = json_pack("{s:s,s:i,s:i,s:I}", "commHash", hash, "rank", comm->rank, "nranks",
		      comm->nranks, "ncclApi", (json_int_t)comm->api);
	if (comm->name[0])
		json_object_set_new(o, "commName", status_text(comm->name, strlen(comm->name)));
	json_array_append_new(c->list, o);
}

static int process_doc(struct target *t, json_t **doc)
{
	struct comms comms = {.list = json_array()};
	struct target_state state;
	int err = target__state(t, &state);

	if (!err)
		err = target__comms(t, add_comm, &comms);
	if (err) {
		json_decref(comms.list);
		return err;
	}
	*doc = identity(t->pid);
	json_object_set_new(*doc, "epoch", json_integer(state.epoch));
	json_object_set_new(*doc, "ceiling", json_integer(state.ceiling));
	json_object_set_new(*doc, "masks", masks_doc(&state));
	json_object_set_new(*doc, "wants", wants_doc(&state));
	json_object_set_new(*doc, "communicators", json_integer(comms.n));
	json_object_set_new(*doc, "comms", comms.list);
	return *doc ? 0 : -ENOMEM;
}

/* 0, -ENOENT: without the plugin, or as target__find(). */
static int look(pid_t pid, json_t **doc)
{
	struct target t;
	int err = target__find_readonly(&t, pid);

	if (!err)
		err = process_doc(&t, doc);
	target__close(&t);
	return err;
}

/* ---- All of them ------------------------------------------------------------------------------- */

static bool is_kernel_thread(pid_t pid)
{
	struct pid_stat p;

	return !pid_stat__read(pid, &p) && p.flags & PF_KTHREAD;
}

/* Those that we may not look into; the first ones are named. */
struct hidden {
	json_int_t n;
	char names[256];
};

/* Its name is for everybody, where its number is; a process may choose any. */
static void hide(struct hidden *h, pid_t pid)
{
	size_t len = strlen(h->names);
	struct text_file file = {0};
	char path[32], comm[HUMAN_CELL] = "";

	if (h->n++ >= HIDDEN_NAMED)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (!text_file__read(&file, "", path, 64) && file.len) {
		file.at[file.len - 1] = 0; /* its newline */
		human__clean(comm, file.at, 40, false);
	}
	text_file__free(&file);
	snprintf(h->names + len, sizeof(h->names) - len, "%s%d%s%s%s", len ? ", " : ": ", pid,
		 *comm ? " (" : "", comm, *comm ? ")" : "");
}

static void tell_hidden(const struct hidden *h)
{
	char more[32] = "";

	if (!h->n)
		return;
	if (h->n > HIDDEN_NAMED)
		snprintf(more, sizeof(more), " and %lld more", (long long)h->n - HIDDEN_NAMED);
	pr_info("%lld process%s may not be looked into%s%s%s\n", (long long)h->n,
		human__es((uint64_t)h->n), geteuid() ? ", but by root" : "", h->names, more);
}

/* Those of the whole node that have the plugin. */
static int scan(json_t *all, struct hidden *hidden)
{
	struct dirent *d;
	json_t *doc;
	pid_t pid;
	DIR *proc;
	int err;

	proc = opendir("/proc");
	if (!proc) {
		pr_err("Failed to read '/proc': %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	while ((d = readdir(proc))) {
		if (parse_pid(d->d_name, &pid))
			continue;
		err = look(pid, &doc);
		if (!err)
			json_array_append_new(all, doc);
		else if ((err == -EACCES || err == -EPERM) && !is_kernel_thread(pid))
			hide(hidden, pid);
		else if (err == -EPROTO || err == -EREMOTE)
			pr_warn("Process %d: %s; skipping\n", pid, target__error(err));
	}
	closedir(proc);
	return EXIT_OK;
}

static int look_at(const struct options *o, json_t *all)
{
	int i, err, status = EXIT_OK;
	json_t *doc;

	for (i = 0; i < o->npids; i++) {
		if (target__is_thread(o->pids[i])) {
			status = EXIT_FAILED;
			continue;
		}
		err = look(o->pids[i], &doc);
		if (!err) {
			json_array_append_new(all, doc);
			continue;
		}
		status = err == -EPERM || err == -EACCES ? EXIT_PRIVILEGE : EXIT_FAILED;
		if (err == -ENOENT)
			pr_err("Process %d has no ncclscope plugin loaded: start it with "
			       "NCCL_PROFILER_PLUGIN=ncclscope; 'ncclscope status' lists those "
			       "that have it\n",
			       o->pids[i]);
		else
			pr_err("Failed to look into process %d: %s%s\n", o->pids[i],
			       target__error(err), target__advice(err));
	}
	return status;
}

static bool is_asked_for(const struct options *o, const json_t *proc)
{
	json_int_t pid = json_integer_value(json_object_get(proc, "hostPid"));
	int i;

	for (i = 0; i < o->npids; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

/* With -p: of each recorder the processes that were asked for, and only recorders that have any. */
static void narrow(const struct options *o, json_t *recorders)
{
	size_t i = json_array_size(recorders), k;
	json_t *procs;

	while (o->npids && i--) {
		procs = json_object_get(json_array_get(recorders, i), "processes");
		for (k = json_array_size(procs); k--;)
			if (!is_asked_for(o, json_array_get(procs, k)))
				json_array_remove(procs, k);
		if (!json_array_size(procs))
			json_array_remove(recorders, i);
	}
}

static int show(const struct options *o, const json_t *doc, uint64_t now_us)
{
	int err = 0;

	if (o->json)
		err = status_show__json(doc, stdout);
	else
		status_show__table(doc, now_us, o->npids, stdout);
	if (output__flush())
		return EXIT_FAILED;
	if (err)
		pr_err("Failed to write: %s\n", strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
}

int cmd_status(int argc, char **argv)
{
	json_t *recorders, *processes = json_array(), *doc = NULL;
	uint64_t now_us = monotonic_ns() / 1000;
	struct options o = {0};
	struct hidden hidden = {0};
	int status = EXIT_OK;

	options__parse(&argp, argc, argv, 0, &o);
	recorders = status_dir__read(status_dir(), now_us);
	narrow(&o, recorders);
	status = o.npids ? look_at(&o, processes) : scan(processes, &hidden);
	doc = json_pack("{s:i,s:O,s:O,s:I}", "schema", 1, "recorders", recorders, "processes",
			processes, "hidden", hidden.n);
	if (!doc) {
		pr_err("Failed to allocate: %s\n", strerror(ENOMEM));
		status = EXIT_FAILED;
	} else if (show(&o, doc, now_us)) {
		status = EXIT_FAILED;
	}
	if (!status && !json_array_size(recorders) && !json_array_size(processes))
		pr_info("No recorder, and no process with the plugin\n");
	tell_hidden(&hidden);
	json_decref(recorders);
	json_decref(processes);
	json_decref(doc);
	return status;
}
