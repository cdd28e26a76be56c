// SPDX-License-Identifier: BSD-2-Clause
/* BPF programs that follow TCP connections: which of them, on which kernel; and reading what they know. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "attach_priv.h"
#include "fexit.h"
#include "log.h"
#include "scope.skel.h"

#define CPU_BYTES     64 /* struct scope_cpu of sched.bpf.c, which begins with what we read */
#define REASON_PREFIX "SKB_DROP_REASON_"

/* ---- Which programs ---------------------------------------------------------------------------- */

#define NET_PROGRAMS(skel)                                                                         \
	{(skel)->progs.scope_net_send, &(skel)->links.scope_net_send, true},                       \
		{(skel)->progs.scope_net_recv, &(skel)->links.scope_net_recv, true},               \
		{(skel)->progs.scope_net_state, &(skel)->links.scope_net_state, true},             \
		{(skel)->progs.scope_net_gone, &(skel)->links.scope_net_gone, true},               \
		{(skel)->progs.scope_retrans2, &(skel)->links.scope_retrans2, false},              \
		{(skel)->progs.scope_retrans3, &(skel)->links.scope_retrans3, false},              \
		{(skel)->progs.scope_rst_in, &(skel)->links.scope_rst_in, false},                  \
	{                                                                                          \
		(skel)->progs.scope_rst_out, &(skel)->links.scope_rst_out, false                   \
	}

/* Sends, where there is no tracepoint of theirs and no fexit. */
#define KPROBE_PROGRAMS(skel)                                                                      \
	{(skel)->progs.scope_sendmsg_r, &(skel)->links.scope_sendmsg_r, true},                     \
	{                                                                                          \
		(skel)->progs.scope_sendmsg_k, &(skel)->links.scope_sendmsg_k, true                \
	}

/* Reads, the same: one that finds nothing is not seen. */
#define READ_PROGRAMS(skel)                                                                        \
	{                                                                                          \
		(skel)->progs.scope_net_adj, &(skel)->links.scope_net_adj, true                    \
	}

/* Either by fexit. */
#define FEXIT_PROGRAMS(skel)                                                                       \
	{(skel)->progs.scope_recvmsg_f, &(skel)->links.scope_recvmsg_f, false},                    \
		{(skel)->progs.scope_recvmsg_f6, &(skel)->links.scope_recvmsg_f6, false},          \
	{                                                                                          \
		(skel)->progs.scope_sendmsg_f, &(skel)->links.scope_sendmsg_f, false               \
	}

#define DROP_PROGRAMS(skel)                                                                        \
	{(skel)->progs.scope_drop2, &(skel)->links.scope_drop2, false},                            \
	{                                                                                          \
		(skel)->progs.scope_drop3, &(skel)->links.scope_drop3, false                       \
	}

void net_ask(struct attach_features *f, const struct btf *btf)
{
	f->net = f->net && btf;
	/* Both came in 6.3. */
	f->net_calls = f->net && tracepoint_args(btf, "sock_send_length") > 0 &&
		       tracepoint_args(btf, "sock_recv_length") > 0;
	f->no_data = f->net_calls;
	f->drops = f->net && tracepoint_args(btf, "kfree_skb") > 1;
	f->drop_reasons = f->drops && tracepoint_args(btf, "kfree_skb") > 2; /* 5.17 */
}

void net_choose(struct scope_bpf *skel, const struct attach_features *f, const struct btf *btf,
		bool functions)
{
	bool by_function = f->net && !f->net_calls;
	bool fexit = by_function && functions && fexit_may_sleep(btf);
	int recvmsg_args = fexit ? function_args(btf, "tcp_recvmsg") : -1;
	/* Its third argument, err, came with telling of attempts that failed. */
	bool err = btf && tracepoint_args(btf, "tcp_retransmit_skb") > 2;

	program_enable(skel->progs.scope_net_send, f->net_calls);
	program_enable(skel->progs.scope_net_recv, f->net_calls);
	program_enable(skel->progs.scope_net_adj, by_function);
	program_enable(skel->progs.scope_recvmsg_f, recvmsg_args == 5);
	program_enable(skel->progs.scope_recvmsg_f6, recvmsg_args == 6);
	program_enable(skel->progs.scope_sendmsg_f, fexit);
	program_enable(skel->progs.scope_sendmsg_k, by_function);
	program_enable(skel->progs.scope_sendmsg_r, by_function);
	program_enable(skel->progs.scope_net_state, f->net);
	program_enable(skel->progs.scope_net_gone, f->net);
	program_enable(skel->progs.scope_retrans2, f->net && !err);
	program_enable(skel->progs.scope_retrans3, f->net && err);
	program_enable(skel->progs.scope_rst_in, f->net);
	program_enable(skel->progs.scope_rst_out, f->net);
	program_enable(skel->progs.scope_drop2, f->drops && !f->drop_reasons);
	program_enable(skel->progs.scope_drop3, f->drop_reasons);
	program_enable(skel->progs.scope_net_flows, f->net);
	program_enable(skel->progs.scope_net_files, f->net);
	bpf_map__set_autocreate(skel->maps.scope_flows, f->net);
	bpf_map__set_autocreate(skel->maps.scope_tuples, f->net);
	bpf_map__set_autocreate(skel->maps.scope_socks, f->net);
	bpf_map__set_autocreate(skel->maps.scope_empty, f->net);
	bpf_map__set_autocreate(skel->maps.scope_sending, by_function);
}

/* ---- Attaching --------------------------------------------------------------------------------- */

/* Where BPF's sockets are found, and an iterator of those that are open already. */
static bool attach_flows(struct attach *a)
{
	struct scope_bpf *skel = a->skel;

	a->net.socks = array_map(skel->maps.scope_socks, PROT_READ, &a->net.socks_size);
	if (!a->net.socks) {
		pr_warn("Failed to map the sockets: %s, continuing without connections\n",
			strerror(errno));
		return false;
	}
	a->net.files = bpf_program__attach_iter(skel->progs.scope_net_files, NULL);
	if (!a->net.files)
		pr_debug("Failed to attach '%s': %s, continuing without the connections that are "
			 "there already, until they are used\n",
			 bpf_program__name(skel->progs.scope_net_files), strerror(errno));
	return true;
}

/* By fexit if we can: it may load and still not attach (arm64 before 6.4). */
static bool attach_fexit(struct bpf_program *prog, struct bpf_link **link)
{
	if (!bpf_program__autoload(prog))
		return false;
	*link = bpf_program__attach(prog);
	if (!*link)
		pr_debug("Failed to attach '%s': %s, trying without fexit\n",
			 bpf_program__name(prog), strerror(errno));
	return *link;
}

/* Calls that move bytes, where there are no tracepoints: all of them, or none. */
static bool attach_functions(struct scope_bpf *skel, struct attach_features *f)
{
	const struct context_program sends[] = {KPROBE_PROGRAMS(skel)},
				     reads[] = {READ_PROGRAMS(skel)},
				     fexit[] = {FEXIT_PROGRAMS(skel)};

	f->no_data = attach_fexit(skel->progs.scope_recvmsg_f, &skel->links.scope_recvmsg_f) ||
		     attach_fexit(skel->progs.scope_recvmsg_f6, &skel->links.scope_recvmsg_f6);
	if ((f->no_data || attach_group(reads, ARRAY_SIZE(reads), "connections")) &&
	    (attach_fexit(skel->progs.scope_sendmsg_f, &skel->links.scope_sendmsg_f) ||
	     attach_group(sends, ARRAY_SIZE(sends), "connections")))
		return true;
	detach_group(fexit, ARRAY_SIZE(fexit));
	detach_group(reads, ARRAY_SIZE(reads));
	return false;
}

/* BPF's CPUs, by number. Without it, nothing of theirs is known. */
static void map_cpus(struct attach *a)
{
	const struct bpf_map *map = a->skel->maps.scope_cpus;

	if (bpf_map__value_size(map) == CPU_BYTES)
		a->net.cpus = array_map(map, PROT_READ, &a->net.cpus_size);
}

/* Names of drop reasons: their numbers are others in each kernel. */
static void learn_reasons(struct attach_net *net, const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "skb_drop_reason", BTF_KIND_ENUM), i;
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
	const struct btf_enum *e = t ? btf_enum(t) : NULL;
	const char *name;

	for (i = 0; t && i < btf_vlen(t); i++, e++) {
		name = btf__name_by_offset(btf, e->name_off);
		if (e->val < 0 || e->val >= ATTACH_REASONS || net->reasons[e->val] ||
		    strncmp(name, REASON_PREFIX, strlen(REASON_PREFIX)))
			continue;
		net->reasons[e->val] = strdup(name + strlen(REASON_PREFIX));
	}
}

static bool attach_all(struct attach *a, struct attach_features *f)
{
	const struct context_program net[] = {NET_PROGRAMS(a->skel)};

	if (!attach_flows(a) || !attach_group(net, ARRAY_SIZE(net), "connections"))
		return false;
	if (f->net_calls || attach_functions(a->skel, f))
		return true;
	detach_group(net, ARRAY_SIZE(net));
	return false;
}

void net_attach(struct attach *a, struct attach_features *f)
{
	const struct context_program drops[] = {DROP_PROGRAMS(a->skel)};

	map_cpus(a);
	if (!f->net)
		return;
	f->net = attach_all(a, f);
	f->drops = f->net && f->drops && attach_group(drops, ARRAY_SIZE(drops), "packet drops");
	f->net_calls = f->net && f->net_calls;
	f->no_data = f->net && f->no_data;
	f->drop_reasons = f->drops && f->drop_reasons;
	if (f->drop_reasons)
		learn_reasons(&a->net, a->btf);
}

void net_close(struct attach_net *net)
{
	int i;

	bpf_link__destroy(net->files);
	if (net->socks)
		munmap((void *)net->socks, net->socks_size);
	if (net->cpus)
		munmap(net->cpus, net->cpus_size);
	for (i = 0; i < ATTACH_REASONS; i++)
		free(net->reasons[i]);
	*net = (struct attach_net){0};
}

/* ---- Reading ----------------------------------------------------------------------------------- */

/* Has BPF fill in n samples, and hands on those that are there. */
static int take_samples(struct attach *a, uint32_t n, attach_flow_fn fn, void *arg)
{
	const struct scope_flow_sample *s = a->skel->bss->scope_samples;
	LIBBPF_OPTS(bpf_test_run_opts, run);
	uint32_t i;
	int err;

	a->skel->bss->scope_nsamples = n;
	err = bpf_prog_test_run_opts(bpf_program__fd(a->skel->progs.scope_net_flows), &run);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		if (s[i].sk)
			fn(arg, &s[i]);
	}
	return 0;
}

int attach__flows(struct attach *a, attach_flow_fn fn, void *arg)
{
	size_t places = a->net.socks_size / sizeof(*a->net.socks), at;
	uint32_t n = 0;
	int err;

	if (!a->net.socks)
		return -EOPNOTSUPP;
	for (at = 0; at < places; at++) {
		if (!a->net.socks[at])
			continue;
		a->skel->bss->scope_samples[n++].sk = at;
		if (n < SCOPE_SAMPLES)
			continue;
		err = take_samples(a, n, fn, arg);
		if (err)
			return err;
		n = 0;
	}
	return n ? take_samples(a, n, fn, arg) : 0;
}

int attach__find_flows(struct attach *a)
{
	int len = iterate(a->net.files);

	return len < 0 ? len : len / (int)sizeof(uint64_t); /* which ones is of no interest here */
}

const char *attach__drop_reason(const struct attach *a, uint32_t reason)
{
	return reason < ATTACH_REASONS ? a->net.reasons[reason] : NULL;
}

uint64_t attach__net_rx(const struct attach *a, uint32_t cpu)
{
	size_t at = (size_t)cpu * CPU_BYTES;

	return a->net.cpus && at < a->net.cpus_size ? *(volatile uint64_t *)(a->net.cpus + at) : 0;
}
