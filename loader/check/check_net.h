/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of the network's part of a trace: `net` of events, and the records `flow` and `drop`.
 * check_rules.c calls them for each record of a process, and once at its end.
 */
#ifndef NCCLSCOPE_CHECK_NET_H
#define NCCLSCOPE_CHECK_NET_H

#include "check.h"

/* A finding that waits for what may explain it. */
struct net_late {
	uint64_t line;
	const char *code;
	char text[200];
};

/* Of one process; all zero at its beginning. */
struct net_rules {
	struct net_flow *flows; /* uthash: by name and namespace, and by name alone */
	uint64_t step_bytes[2]; /* that all ProxySteps together moved: sent, received */
	uint64_t flow_bytes[2]; /* that all flows together moved, of those that have ended */
	struct net_late *late;	/* owned */
	size_t nlate;
	/* Kept by the caller. */
	bool unsure; /* a record could not be read, and what it would explain is not reported */
	bool lossy;  /* records were lost: then what is missing is no mistake of the writer */
};

void net_rules__event(struct check *c, struct net_rules *n, const struct json_node *rec,
		      enum etype etype);
/* An event that is told while it is open: what it moved so far is told again. */
void net_rules__open(struct check *c, struct net_rules *n, const struct json_node *rec);
void net_rules__flow(struct check *c, struct net_rules *n, const struct json_node *rec);
void net_rules__drop(struct check *c, struct net_rules *n, const struct json_node *rec);
/* The file has been read, to its end or to where it is now. */
void net_rules__late(struct check *c, struct net_rules *n);
/* What must hold of a finished file as a whole. @line: its footer's. */
void net_rules__end(struct check *c, const struct net_rules *n, uint64_t line);
void net_rules__free(struct net_rules *n);

#endif
