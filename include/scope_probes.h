/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The USDT probes of the plugin: provider, names and arguments. This is their documentation, for
 * bpftrace, bcc, perf and SystemTap as much as for our own loader. docs/probes.md shows their use.
 *
 *   provider   probe   arg0                arg1             arg2
 *   ---------  ------  ------------------  ---------------  -------------------------------------
 *   ncclscope  start   u64 id of the event u64 type (NCCL's  struct scope_rec_start *, followed by
 *                                          event bit, e.g.   the payload of the type (scope_abi.h);
 *                                          16 = ProxyStep)   valid while the probe runs
 *   ncclscope  state   u64 id              u32 state (NCCL's u64 argument: transSize, bytes;
 *                                          number)           appendedProxyOps; pTimer, ns; else 0
 *   ncclscope  stop    u64 id
 *   ncclscope  flush   struct scope_tbuf * u32 reason        (the loader's; its layout may change)
 *
 * start, state and stop fire once for every callback that NCCL makes, folded or not. Each probe has a
 * semaphore of its own: with nobody attached to it, it costs a test. NCCL makes callbacks only for
 * event types that are armed: `ncclscope record` arms what it records, `ncclscope arm -p PID` arms
 * for these probes alone.
 *
 * A semaphore counts probe sites, not tracers; it is read as a boolean. All arguments are in
 * registers, all sites are plain one-byte NOPs: the five-byte form lets kernels write a return
 * address into a leaf function's red zone.
 */
#ifndef NCCLSCOPE_SCOPE_PROBES_H
#define NCCLSCOPE_SCOPE_PROBES_H

#define SCOPE_PROVIDER	  "ncclscope"
#define SCOPE_PROBE_FLUSH "flush"
#define SCOPE_PROBE_START "start"
#define SCOPE_PROBE_STATE "state"
#define SCOPE_PROBE_STOP  "stop"

#endif
