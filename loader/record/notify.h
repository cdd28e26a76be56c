/* SPDX-License-Identifier: BSD-2-Clause */
/* What a service tells systemd (Type=notify, WatchdogSec=); without systemd nothing. */
#ifndef NCCLSCOPE_NOTIFY_H
#define NCCLSCOPE_NOTIFY_H

#include <stdint.h>

/* Takes what systemd has put into the environment out of it: it is not for the job that we may start. */
void notify__init(void);

/* "READY=1", "STOPPING=1". */
void notify__say(const char *state);

/* That we are alive, when it is time. */
void notify__tick(uint64_t now_ns);

#endif
