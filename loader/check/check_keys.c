// SPDX-License-Identifier: BSD-2-Clause
/*
 * The keys of every record kind, as tables: docs/trace.schema.json in C. A unit test compares the
 * two key by key (`check --dump-tables`), so neither changes alone.
 */
#include <string.h>
#include "check.h"

/* A type says what a value may be: by a test of its own, a list of words, or a table of keys. */
struct object;
struct type {
	const char *name; /* of its definition in the schema; NULL: written in place there */
	const char *want; /* for the message: "is 5, not <want>" */
	bool (*ok)(const struct check *c, const struct json_node *node);
	const char *const *words;
	const struct object *object;
};

enum {
	REQ = 1,      /* required */
	SEED = 2,     /* not required with --compat: the seed's traces lack it */
	NULLABLE = 4, /* or null */
	LIST = 8,     /* an array of these */
	MAP = 16,     /* an object of any keys and these values */
};

struct key {
	const char *name;
	const struct type *type;
	unsigned int flags;
};

struct object {
	const char *name;
	const struct key *keys;
	unsigned int nr;
	bool open; /* further keys are expected, not just tolerated */
};

static bool is_str(const struct json_node *n)
{
	return n->kind == JSON_KIND_STR;
}

static bool ok_time(const struct check *c, const struct json_node *n)
{
	int64_t ns;

	return jn_time(n, c->compat, &ns) && ns >= 0;
}

static bool ok_signed_time(const struct check *c, const struct json_node *n)
{
	int64_t ns;

	return jn_time(n, c->compat, &ns);
}

static bool ok_u64(const struct check *c, const struct json_node *n)
{
	uint64_t val;

	(void)c;
	return jn_u64(n, &val);
}

static bool in_range(const struct json_node *n, int64_t min, int64_t max)
{
	int64_t val;

	return jn_i64(n, &val) && val >= min && val <= max;
}

static bool ok_i64(const struct check *c, const struct json_node *n)
{
	(void)c;
	return in_range(n, INT64_MIN, INT64_MAX);
}

static bool ok_i32(const struct check *c, const struct json_node *n)
{
	(void)c;
	return in_range(n, INT32_MIN, INT32_MAX);
}

static bool ok_pid(const struct check *c, const struct json_node *n)
{
	(void)c;
	return in_range(n, 0, INT32_MAX);
}

static bool ok_rank(const struct check *c, const struct json_node *n)
{
	(void)c;
	return in_range(n, -1, INT32_MAX);
}

static bool ok_api(const struct check *c, const struct json_node *n)
{
	(void)c;
	return in_range(n, 1, 7);
}

static bool ok_one(const struct check *c, const struct json_node *n)
{
	(void)c;
	return in_range(n, 1, 1);
}

static bool ok_string(const struct check *c, const struct json_node *n)
{
	(void)c;
	return is_str(n);
}

static bool ok_bool(const struct check *c, const struct json_node *n)
{
	(void)c;
	return n->kind == JSON_KIND_TRUE || n->kind == JSON_KIND_FALSE;
}

static bool ok_true(const struct check *c, const struct json_node *n)
{
	(void)c;
	return n->kind == JSON_KIND_TRUE;
}

static bool ok_object(const struct check *c, const struct json_node *n)
{
	(void)c;
	return n->kind == JSON_KIND_OBJ;
}

static bool ok_id(const struct check *c, const struct json_node *n)
{
	uint64_t val;

	(void)c;
	return jn_hex(n, &val) && val;
}

static bool ok_id_or_null(const struct check *c, const struct json_node *n)
{
	/* the seed prints some null pointers as its C library does */
	return jn_is(n, "null") || ok_id(c, n) || (c->compat && is_str(n));
}

static bool ok_hash(const struct check *c, const struct json_node *n)
{
	uint64_t val;

	(void)c;
	return jn_hex(n, &val);
}

static bool lower_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool ok_uuid(const struct check *c, const struct json_node *n)
{
	uint32_t i;

	(void)c;
	if (!is_str(n) || n->len != 36)
		return false;
	for (i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? n->s[i] != '-' : !lower_hex(n->s[i]))
			return false;
	}
	return true;
}

static bool ok_gpu_uuid(const struct check *c, const struct json_node *n)
{
	/* The seed prints bytes >= 0x80 sign-extended and cuts the result. */
	return ok_uuid(c, n) || (is_str(n) && (!n->len || c->compat));
}

static bool ok_hex_bytes(const struct check *c, const struct json_node *n)
{
	uint32_t i;

	(void)c;
	if (!is_str(n) || !n->len || n->len % 2)
		return false;
	for (i = 0; i < n->len; i++)
		if (!lower_hex(n->s[i]))
			return false;
	return true;
}

/* "10.0.0.7", in form only */
static bool is_ipv4(const char *s, size_t len)
{
	unsigned int parts = 1, digits = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (s[i] >= '0' && s[i] <= '9' && digits < 3) {
			digits++;
		} else if (s[i] == '.' && digits && parts < 4) {
			parts++;
			digits = 0;
		} else {
			return false;
		}
	}
	return parts == 4 && digits;
}

/* "[fe80::1]", in form only */
static bool is_ipv6(const char *s, size_t len)
{
	enum { MIN_TEXT = 2, MAX_TEXT = 45 };
	size_t i;

	if (len < MIN_TEXT + 2 || len > MAX_TEXT + 2 || s[0] != '[' || s[len - 1] != ']')
		return false;
	for (i = 1; i < len - 1; i++)
		if (!lower_hex(s[i]) && s[i] != ':' && s[i] != '.')
			return false;
	return true;
}

/* One end of a flow, "address:port", of which the last colon counts. */
static bool flow_end(const char *s, size_t len)
{
	size_t port = 0;

	while (len && s[len - 1] >= '0' && s[len - 1] <= '9') {
		len--;
		port++;
	}
	return port >= 1 && port <= 5 && len && s[len - 1] == ':' &&
	       (is_ipv4(s, len - 1) || is_ipv6(s, len - 1));
}

static bool ok_flow(const struct check *c, const struct json_node *n)
{
	const char *gt = is_str(n) ? memchr(n->s, '>', n->len) : NULL;

	(void)c;
	return gt && flow_end(n->s, gt - n->s) && flow_end(gt + 1, n->s + n->len - gt - 1);
}

static bool ok_end(const struct check *c, const struct json_node *n)
{
	(void)c;
	if (jn_is(n, "finalize") || jn_is(n, "exit") || jn_is(n, "exec") || jn_is(n, "detached") ||
	    jn_is(n, "loader-stopped"))
		return true;
	return is_str(n) && (n->len == 8 || n->len == 9) && !memcmp(n->s, "signal ", 7) &&
	       n->s[7] >= '1' && n->s[7] <= '9' &&
	       (n->len == 8 || (n->s[8] >= '0' && n->s[8] <= '9'));
}

static bool in_words(const char *const *words, const struct json_node *n)
{
	for (; *words; words++)
		if (jn_is(n, *words))
			return true;
	return false;
}

/* The names; index is the number, so the schema's order is NCCL's. */
const char *const kind_names[] = {"event", "state",  "header", "thread", "slice", "flow",
				  "drop",  "signal", "node",   "gpu",	 "kmsg",  "clock",
				  "lost",  "open",   "footer", NULL};

const char *const etype_names[] = {
	"ncclProfileGroupApi",	   "ncclProfileCollApi",  "ncclProfileP2pApi",
	"ncclProfileKernelLaunch", "ncclProfileGroup",	  "ncclProfileColl",
	"ncclProfileP2p",	   "ncclProfileProxyOp",  "ncclProfileProxyStep",
	"ncclProfileProxyCtrl",	   "ncclProfileKernelCh", "ncclProfileNetPlugin",
	"ncclProfileCeColl",	   "ncclProfileCeSync",	  "ncclProfileCeBatch",
	"ncclProfileKernelPhase",  "ProfilerLifecycle",	  NULL};

#define STATE_NAMES                                                                                \
	"ProxyOpSendPosted", "ProxyOpSendRemFifoWait", "ProxyOpSendTransmitted",                   \
		"ProxyOpSendDone", "ProxyOpRecvPosted", "ProxyOpRecvReceived",                     \
		"ProxyOpRecvTransmitted", "ProxyOpRecvDone", "ProxyStepSendGPUWait",               \
		"ProxyStepSendWait", "ProxyStepRecvWait", "ProxyStepRecvFlushWait",                \
		"ProxyStepRecvGPUWait", "ProxyCtrlIdle", "ProxyCtrlActive", "ProxyCtrlSleep",      \
		"ProxyCtrlWakeup", "ProxyCtrlAppend", "ProxyCtrlAppendEnd", "ProxyOpInProgress",   \
		"ProxyStepSendPeerWait", "NetPluginUpdate", "KernelChStop", "GroupStartApiStop",   \
		"GroupEndApiStart", "CeCollStart", "CeCollComplete", "CeSyncStart",                \
		"CeSyncComplete", "CeBatchStart", "CeBatchComplete", "KernelPhaseStop"

const char *const state_names[] = {STATE_NAMES, NULL};
static const char *const last_states[] = {"", STATE_NAMES, NULL};

static bool ok_state(const struct check *c, const struct json_node *n)
{
	/* The seed has names of its own for 23 and 24; that they fit the number is checked then. */
	return in_words(state_names, n) || (c->compat && is_str(n));
}

#define TYPE(var, nm, wnt, fn) static const struct type var = {.name = nm, .want = wnt, .ok = fn}
TYPE(t_time, "time", "a time (microseconds with three decimals, not negative)", ok_time);
TYPE(t_moment, "moment", "a time (microseconds with three decimals, not negative)", ok_time);
TYPE(t_signed_time, "signedTime", "a time (microseconds with three decimals)", ok_signed_time);
TYPE(t_u64, "u64", "an unsigned 64-bit integer", ok_u64);
TYPE(t_i64, "i64", "a signed 64-bit integer", ok_i64);
TYPE(t_i32, "i32", "a signed 32-bit integer", ok_i32);
TYPE(t_pid, "pid", "a process or thread id", ok_pid);
TYPE(t_rank, "rank", "a rank (-1 or more)", ok_rank);
TYPE(t_api, "ncclApi", "a version from 1 to 7", ok_api);
TYPE(t_string, "string", "a string", ok_string);
TYPE(t_bool, "bool", "true or false", ok_bool);
TYPE(t_true, "true", "true (it is left out otherwise)", ok_true);
TYPE(t_object, "object", "an object", ok_object);
TYPE(t_id, "id", "an id (\"0x\" and lower-case hex without leading zeros)", ok_id);
TYPE(t_id_or_null, "idOrNull", "an id (\"0x\" and lower-case hex) or \"null\"", ok_id_or_null);
TYPE(t_hash, "hash", "a 64-bit value in lower-case hex (\"0x...\")", ok_hash);
TYPE(t_gpu_uuid, "gpuUuid", "a UUID of 36 characters, or empty", ok_gpu_uuid);
TYPE(t_uuid, "uuid", "a UUID of 36 characters", ok_uuid);
TYPE(t_hex_bytes, "hexBytes", "bytes in lower-case hex", ok_hex_bytes);
TYPE(t_flow_name, "flowName", "a flow (\"address:port>address:port\")", ok_flow);
TYPE(t_end, "recordingEnd", "an end (finalize, exit, exec, signal N, detached, loader-stopped)",
     ok_end);
TYPE(t_one, "1", "1, the version that this ncclscope knows", ok_one);
TYPE(t_state_name, "stateName", "the name of an NCCL state", ok_state);

#define WORDS(var, nm, ...)                                                                        \
	static const char *const var##_words[] = {__VA_ARGS__, NULL};                              \
	static const struct type var = {.name = nm, .words = var##_words}
static const struct type t_etype = {"eventType", "an event type of NCCL", NULL, etype_names, NULL};
static const struct type t_last_state = {"lastState", "the name of an NCCL state, or empty", NULL,
					 last_states, NULL};
WORDS(t_exec_source, NULL, "proxy", "kernel", "enqueue");
WORDS(t_no_kernel_ch, NULL, "may-hang", "shm-full", "late");
WORDS(t_net_type, NULL, "ib", "socket");
WORDS(t_clock_source, NULL, "tsc", "cntvct", "clock_gettime");
WORDS(t_merged_by, NULL, "reference", "messages", "realtime");
WORDS(t_role, NULL, "app", "proxy", "other");
WORDS(t_sched_state, NULL, "run", "runq", "blocked");
WORDS(t_cause, NULL, "ring-full", "thread-buffer", "orphan", "write-error", "rate-limit",
      "context-ring-full");
WORDS(t_flow_why, NULL, "open", "found", "use", "state", "reset-in", "reset-out", "end",
      "detached");
WORDS(t_drop_dir, NULL, "rx", "tx");
WORDS(t_net_by, NULL, "sockets", "functions");
WORDS(t_drops_by, NULL, "reasons", "locations");
WORDS(t_is_event, NULL, "event");
WORDS(t_is_state, NULL, "state");
WORDS(t_is_header, NULL, "header");
WORDS(t_is_thread, NULL, "thread");
WORDS(t_is_slice, NULL, "slice");
WORDS(t_is_flow, NULL, "flow");
WORDS(t_is_drop, NULL, "drop");
WORDS(t_is_signal, NULL, "signal");
WORDS(t_is_node, NULL, "node");
WORDS(t_is_gpu, NULL, "gpu");
WORDS(t_is_kmsg, NULL, "kmsg");
WORDS(t_is_clock, NULL, "clock");
WORDS(t_is_lost, NULL, "lost");
WORDS(t_is_open, NULL, "open");
WORDS(t_is_footer, NULL, "footer");

/* OBJECT() also makes the type t_<var>, so that other tables can contain it. */
#define OBJECT_OPEN(var, nm, opn, ...)                                                             \
	static const struct key var##_keys[] = {__VA_ARGS__};                                      \
	static const struct object var = {nm, var##_keys, ARRAY_SIZE(var##_keys), opn};            \
	__attribute__((unused)) static const struct type t_##var = {                               \
		.name = nm, .want = "an object", .object = &var}
#define OBJECT(var, nm, ...) OBJECT_OPEN(var, nm, false, __VA_ARGS__)

OBJECT(point, "point", {"ts", &t_moment, REQ}, {"pid", &t_pid, REQ}, {"tid", &t_pid, REQ},
       {"hostPid", &t_pid, 0}, {"hostTid", &t_pid, 0});
OBJECT(exec, "exec", {"stop", &t_moment, REQ}, {"duration", &t_time, REQ},
       {"source", &t_exec_source, REQ}, {"openChildren", &t_u64, 0});
OBJECT(behind, "behind", {"comm", &t_string, REQ}, {"pid", &t_pid, REQ}, {"us", &t_time, REQ});
OBJECT(blocked_in, "blockedIn", {"why", &t_string, REQ}, {"us", &t_time, REQ});
OBJECT(woken_by, "wokenBy", {"comm", &t_string, REQ}, {"pid", &t_pid, REQ}, {"us", &t_time, REQ});
OBJECT(slept_file, "sleptFile", {"file", &t_string, REQ}, {"fs", &t_string, REQ},
       {"us", &t_time, REQ});
// clang-format off
#define SCHED_FIGURES                                                                              \
	{"onCpu", &t_time, REQ}, {"runq", &t_time, REQ}, {"blocked", &t_time, REQ},                \
	{"unknown", &t_time, 0}, {"irq", &t_time, 0}, {"throttled", &t_time, 0},                   \
	{"switches", &t_u64, 0}, {"preemptions", &t_u64, 0}, {"migrations", &t_u64, 0},            \
	{"cpus", &t_u64, LIST}, {"behind", &t_behind, LIST}, {"blockedIn", &t_blocked_in, LIST},   \
	{"wokenBy", &t_woken_by, LIST}, {"files", &t_slept_file, LIST}
// clang-format on
OBJECT(sched_part, "schedPart", {"threads", &t_u64, REQ}, {"span", &t_time, REQ}, SCHED_FIGURES);
OBJECT(sched, "sched", SCHED_FIGURES, {"span", &t_time, 0}, {"app", &t_sched_part, 0},
       {"proxy", &t_sched_part, 0}, {"before", &t_sched_part, 0}, {"state", &t_sched_state, 0},
       {"why", &t_string, 0});
OBJECT(drop_count, "dropCount", {"reason", &t_string, REQ}, {"n", &t_u64, REQ});
OBJECT(rdma, "rdma", {"device", &t_string, REQ}, {"port", &t_u64, REQ},
       {"counters", &t_u64, REQ | MAP}, {"more", &t_u64, 0});
OBJECT(net_peer, "netPeer", {"host", &t_string, 0}, {"pid", &t_pid, REQ}, {"hostPid", &t_pid, 0},
       {"rank", &t_rank, 0}, {"retrans", &t_u64, REQ}, {"lost", &t_u64, 0}, {"dsack", &t_u64, 0},
       {"rwndLimited", &t_time, 0}, {"sndbufLimited", &t_time, 0});
OBJECT(net, "net", {"flow", &t_flow_name, 0}, {"flows", &t_flow_name, LIST}, {"nFlows", &t_u64, 0},
       {"txBytes", &t_u64, 0}, {"rxBytes", &t_u64, 0}, {"retrans", &t_u64, 0}, {"lost", &t_u64, 0},
       {"dsack", &t_u64, 0}, {"rxOoo", &t_u64, 0}, {"rtt", &t_time, 0}, {"rttMin", &t_time, 0},
       {"cwnd", &t_u64, 0}, {"busy", &t_time, 0}, {"sndbufLimited", &t_time, 0},
       {"rwndLimited", &t_time, 0}, {"noData", &t_time, 0}, {"noRoom", &t_time, 0},
       {"drops", &t_drop_count, LIST}, {"softirqRx", &t_time, 0}, {"peer", &t_net_peer, 0},
       {"rdma", &t_rdma, LIST});
OBJECT(origin, "origin", {"commHash", &t_hash, REQ}, {"rank", &t_rank, REQ}, {"seq", &t_u64, 0});

OBJECT(d_group_api, "details.GroupApi", {"depth", &t_i32, REQ}, {"graphCaptured", &t_bool, REQ});
OBJECT(d_coll_api, "details.CollApi", {"func", &t_string, REQ}, {"count", &t_u64, REQ},
       {"dtype", &t_string, REQ}, {"root", &t_i32, REQ}, {"stream", &t_id_or_null, REQ},
       {"graphCaptured", &t_bool, REQ}, {"userTag", &t_u64, 0});
OBJECT(d_p2p_api, "details.P2pApi", {"func", &t_string, REQ}, {"count", &t_u64, REQ},
       {"dtype", &t_string, REQ}, {"stream", &t_id_or_null, REQ}, {"graphCaptured", &t_bool, REQ},
       {"userTag", &t_u64, 0});
OBJECT(d_kernel_launch, "details.KernelLaunch", {"stream", &t_id_or_null, REQ});
static const struct object d_group = {"details.Group", NULL, 0, false};
OBJECT(d_coll, "details.Coll", {"func", &t_string, REQ}, {"seq", &t_u64, REQ},
       {"algo", &t_string, REQ}, {"proto", &t_string, REQ}, {"channels", &t_u64, 0},
       {"warps", &t_u64, 0}, {"count", &t_u64, REQ}, {"root", &t_i32, REQ},
       {"dtype", &t_string, REQ}, {"sendBuff", &t_id_or_null, REQ},
       {"recvBuff", &t_id_or_null, REQ}, {"parentGroup", &t_id_or_null, 0},
       {"kernelVariant", &t_string, 0}, {"isSymColl", &t_bool, 0}, {"userTag", &t_u64, 0},
       {"seqCommon", &t_bool, 0});
OBJECT(d_p2p, "details.P2p", {"func", &t_string, REQ}, {"peer", &t_i32, REQ},
       {"channels", &t_u64, 0}, {"count", &t_u64, REQ}, {"dtype", &t_string, REQ},
       {"buff", &t_id_or_null, REQ}, {"parentGroup", &t_id_or_null, 0}, {"userTag", &t_u64, 0});
OBJECT(d_proxy_op, "details.ProxyOp", {"channel", &t_u64, REQ}, {"peer", &t_i32, REQ},
       {"steps", &t_u64, REQ}, {"chunkSize", &t_i64, REQ}, {"isSend", &t_bool, REQ},
       {"eventPid", &t_pid, REQ});
OBJECT(d_proxy_step, "details.ProxyStep", {"step", &t_u64, REQ}, {"channel", &t_u64, 0},
       {"peer", &t_i32, 0}, {"isSend", &t_bool, 0}, {"transSize", &t_u64, 0},
       {"repeats", &t_u64, 0});
static const struct object d_proxy_ctrl = {"details.ProxyCtrl", NULL, 0, false};
OBJECT(d_kernel_ch, "details.KernelCh", {"channel", &t_u64, REQ}, {"pTimer", &t_u64, 0},
       {"pTimerStop", &t_u64, 0}, {"gpuStart", &t_moment, 0}, {"gpuStop", &t_moment, 0},
       {"gpuError", &t_time, 0});
OBJECT(d_net_plugin, "details.NetPlugin", {"id", &t_i64, REQ}, {"data", &t_id_or_null, REQ},
       {"netType", &t_net_type, 0}, {"device", &t_i32, 0}, {"wrId", &t_u64, 0},
       {"opcode", &t_i32, 0}, {"qp", &t_i32, 0}, {"fd", &t_i32, 0}, {"op", &t_i32, 0},
       {"length", &t_u64, 0});
OBJECT(d_ce_coll, "details.CeColl", {"func", &t_string, REQ}, {"seq", &t_u64, REQ},
       {"count", &t_u64, REQ}, {"root", &t_i32, REQ}, {"dtype", &t_string, REQ},
       {"sendBuff", &t_id_or_null, REQ}, {"recvBuff", &t_id_or_null, REQ},
       {"syncStrategy", &t_string, REQ}, {"intraBatchSync", &t_bool, REQ},
       {"batchSize", &t_u64, REQ}, {"numBatches", &t_u64, REQ}, {"ceSeqNum", &t_u64, REQ},
       {"stream", &t_id_or_null, REQ}, {"userTag", &t_u64, 0});
OBJECT(d_ce_sync, "details.CeSync", {"isComplete", &t_bool, REQ}, {"nRanks", &t_i32, REQ});
OBJECT(d_ce_batch, "details.CeBatch", {"numOps", &t_i32, REQ}, {"totalBytes", &t_u64, REQ},
       {"useIntraSync", &t_bool, REQ});
OBJECT(d_kernel_phase, "details.KernelPhase", {"channel", &t_u64, REQ}, {"phaseId", &t_u64, REQ},
       {"phaseName", &t_string, 0}, {"pTimer", &t_u64, 0}, {"pTimerStop", &t_u64, 0},
       {"gpuStart", &t_moment, 0}, {"gpuStop", &t_moment, 0}, {"gpuError", &t_time, 0});
OBJECT(d_lifecycle, "details.ProfilerLifecycle", {"nranks", &t_u64, 0}, {"nNodes", &t_u64, 0},
       {"commName", &t_string, 0}, {"eventMask", &t_u64, 0}, {"ncclApi", &t_api, 0},
       {"noKernelCh", &t_no_kernel_ch, 0}, {"parentComm", &t_hash, 0});

static const struct object *const details[NR_ETYPES] = {
	[ET_GROUP_API] = &d_group_api,
	[ET_COLL_API] = &d_coll_api,
	[ET_P2P_API] = &d_p2p_api,
	[ET_KERNEL_LAUNCH] = &d_kernel_launch,
	[ET_GROUP] = &d_group,
	[ET_COLL] = &d_coll,
	[ET_P2P] = &d_p2p,
	[ET_PROXY_OP] = &d_proxy_op,
	[ET_PROXY_STEP] = &d_proxy_step,
	[ET_PROXY_CTRL] = &d_proxy_ctrl,
	[ET_KERNEL_CH] = &d_kernel_ch,
	[ET_NET_PLUGIN] = &d_net_plugin,
	[ET_CE_COLL] = &d_ce_coll,
	[ET_CE_SYNC] = &d_ce_sync,
	[ET_CE_BATCH] = &d_ce_batch,
	[ET_KERNEL_PHASE] = &d_kernel_phase,
	[ET_LIFECYCLE] = &d_lifecycle,
};

OBJECT(r_event, "event", {"recordType", &t_is_event, REQ | SEED}, {"type", &t_etype, REQ},
       {"func", &t_string, REQ | SEED}, {"gpuUuid", &t_gpu_uuid, REQ}, {"commId", &t_u64, REQ},
       {"commHash", &t_hash, 0}, {"rank", &t_rank, REQ}, {"start", &t_point, REQ},
       {"stop", &t_point, REQ | NULLABLE}, {"duration", &t_time, REQ | NULLABLE},
       {"myPid", &t_pid, REQ | SEED}, {"originPid", &t_pid, 0}, {"parentObj", &t_id_or_null, 0},
       {"eventAddr", &t_id, 0}, {"ctx", &t_id_or_null, 0}, {"isPxn", &t_true, 0},
       {"orphan", &t_true, 0}, {"details", &t_object, REQ}, {"exec", &t_exec, 0},
       {"sched", &t_sched, 0}, {"net", &t_net, 0}, {"origin", &t_origin, 0},
       {"unfinished", &t_true, 0}, {"lastState", &t_last_state, 0}, {"silent", &t_true, 0},
       {"lossNear", &t_u64, 0});
OBJECT(r_state, "state", {"recordType", &t_is_state, REQ}, {"eventAddr", &t_id, REQ},
       {"ts", &t_moment, REQ}, {"name", &t_state_name, REQ}, {"id", &t_u64, REQ},
       {"pid", &t_pid, REQ}, {"tid", &t_pid, REQ}, {"hostPid", &t_pid, 0}, {"hostTid", &t_pid, 0},
       {"transSize", &t_u64, 0}, {"appendedProxyOps", &t_i32, 0}, {"pTimer", &t_u64, 0},
       {"steps", &t_i32, 0}, {"data", &t_id_or_null, 0}, {"repeats", &t_u64, 0},
       {"lastTs", &t_moment, 0}, {"orphan", &t_true, 0});
OBJECT(slurm, "slurm", {"jobId", &t_string, 0}, {"stepId", &t_string, 0}, {"procId", &t_u64, 0},
       {"nodeId", &t_u64, 0});
OBJECT(merged, "merged", {"host", &t_string, REQ}, {"bootId", &t_uuid, REQ},
       {"shift", &t_signed_time, REQ}, {"error", &t_time, 0}, {"by", &t_merged_by, REQ});
OBJECT(header_clock, "headerClock", {"source", &t_clock_source, REQ}, {"tscHz", &t_u64, 0},
       {"realtimeOffset", &t_signed_time, REQ}, {"realtimeError", &t_time, REQ},
       {"merged", &t_merged, 0});
OBJECT_OPEN(features, "features", true, {"net", &t_net_by, 0}, {"drops", &t_drops_by, 0});
OBJECT(r_header, "header", {"recordType", &t_is_header, REQ}, {"schema", &t_one, REQ},
       {"tool", &t_string, REQ}, {"version", &t_string, REQ}, {"host", &t_string, REQ},
       {"bootId", &t_uuid, REQ}, {"kernel", &t_string, REQ}, {"arch", &t_string, REQ},
       {"pid", &t_pid, REQ}, {"hostPid", &t_pid, REQ}, {"uid", &t_u64, REQ},
       {"comm", &t_string, REQ}, {"startTime", &t_time, 0}, {"cmdline", &t_string, LIST},
       {"cgroup", &t_string, 0}, {"slurm", &t_slurm, 0}, {"launcher", &t_string, MAP},
       {"ncclVersion", &t_string, 0}, {"ncclBuildId", &t_hex_bytes, 0}, {"mask", &t_u64, REQ},
       {"maskCeiling", &t_u64, 0}, {"clock", &t_header_clock, REQ}, {"features", &t_features, 0});
OBJECT(r_thread, "thread", {"recordType", &t_is_thread, REQ}, {"tid", &t_pid, REQ},
       {"hostTid", &t_pid, 0}, {"comm", &t_string, REQ}, {"role", &t_role, REQ},
       {"start", &t_moment, REQ}, {"stop", &t_moment, 0}, {"since", &t_moment, 0},
       {"onCpu", &t_time, 0}, {"runq", &t_time, 0}, {"blocked", &t_time, 0},
       {"unknown", &t_time, 0}, {"irq", &t_time, 0}, {"throttled", &t_time, 0},
       {"switches", &t_u64, 0}, {"preemptions", &t_u64, 0}, {"migrations", &t_u64, 0},
       {"state", &t_sched_state, 0}, {"stateSince", &t_moment, 0}, {"why", &t_string, 0},
       {"file", &t_string, 0}, {"fs", &t_string, 0}, {"stack", &t_string, LIST});
OBJECT(slice_who, "sliceWho", {"comm", &t_string, REQ}, {"pid", &t_pid, REQ});
OBJECT(r_slice, "slice", {"recordType", &t_is_slice, REQ}, {"tid", &t_pid, REQ},
       {"hostTid", &t_pid, 0}, {"cpu", &t_u64, 0}, {"state", &t_sched_state, REQ},
       {"ts", &t_moment, REQ}, {"dur", &t_time, REQ}, {"irq", &t_time, 0},
       {"behind", &t_slice_who, 0}, {"throttled", &t_time, 0}, {"preempted", &t_true, 0},
       {"why", &t_string, 0}, {"wokenBy", &t_slice_who, 0}, {"file", &t_string, 0},
       {"fs", &t_string, 0}, {"stack", &t_string, LIST});
OBJECT(tcp, "tcp", {"state", &t_string, REQ}, {"rtt", &t_time, 0}, {"rttVar", &t_time, 0},
       {"rttMin", &t_time, 0}, {"cwnd", &t_u64, 0}, {"ssthresh", &t_u64, 0}, {"mss", &t_u64, 0},
       {"deliveryRate", &t_u64, 0});
// clang-format off
#define FLOW_COUNTERS(req)                                                                         \
	{"txBytes", &t_u64, req}, {"rxBytes", &t_u64, req}, {"retrans", &t_u64, req},              \
	{"rxOoo", &t_u64, req}, {"lost", &t_u64, req}, {"dsack", &t_u64, req},                     \
	{"busy", &t_time, 0}, {"rwndLimited", &t_time, 0}, {"sndbufLimited", &t_time, 0},          \
	{"bytesAcked", &t_u64, 0}, {"bytesReceived", &t_u64, 0}
// clang-format on
OBJECT(flow_delta, "flowDelta", FLOW_COUNTERS(0));
OBJECT(resent, "resent", {"ts", &t_moment, REQ}, {"n", &t_u64, REQ}, {"dsack", &t_u64, 0});
OBJECT(r_flow, "flow", {"recordType", &t_is_flow, REQ}, {"flow", &t_flow_name, REQ},
       {"tid", &t_pid, REQ}, {"ts", &t_moment, REQ}, {"netns", &t_u64, 0}, {"rank", &t_rank, 0},
       {"peerRank", &t_rank, 0}, {"peerHost", &t_string, 0}, {"peerPid", &t_pid, 0},
       {"channel", &t_u64, 0}, {"isSend", &t_bool, 0}, {"why", &t_flow_why, REQ},
       {"end", &t_true, 0}, {"tcp", &t_tcp, REQ}, FLOW_COUNTERS(REQ), {"reordering", &t_u64, 0},
       {"resent", &t_resent, LIST}, {"delta", &t_flow_delta, 0});
OBJECT(r_drop, "drop", {"recordType", &t_is_drop, REQ}, {"flow", &t_flow_name, REQ},
       {"netns", &t_u64, 0}, {"ts", &t_moment, REQ}, {"reason", &t_string, REQ}, {"n", &t_u64, REQ},
       {"where", &t_string, 0}, {"len", &t_u64, 0}, {"dir", &t_drop_dir, REQ});
OBJECT(sender, "sender", {"pid", &t_pid, REQ}, {"tid", &t_pid, REQ}, {"comm", &t_string, REQ},
       {"uid", &t_u64, REQ}, {"exiting", &t_true, 0});
OBJECT(r_signal, "signal", {"recordType", &t_is_signal, REQ}, {"ts", &t_moment, REQ},
       {"signal", &t_string, REQ}, {"nr", &t_i32, REQ}, {"code", &t_i32, REQ}, {"tid", &t_pid, 0},
       {"handled", &t_true, 0}, {"from", &t_sender, 0});
OBJECT(node_cpu, "nodeCpu", {"cpu", &t_u64, REQ}, {"busy", &t_time, 0}, {"irq", &t_time, 0},
       {"softirq", &t_time, 0}, {"steal", &t_time, 0}, {"netRx", &t_time, 0});
OBJECT(pressure, "pressure", {"some", &t_time, 0}, {"full", &t_time, 0});
OBJECT(psi, "psi", {"cpu", &t_pressure, 0}, {"memory", &t_pressure, 0}, {"io", &t_pressure, 0});
OBJECT(node_throttled, "nodeThrottled", {"time", &t_time, REQ}, {"periods", &t_u64, REQ},
       {"throttledPeriods", &t_u64, 0});
OBJECT(node_netdev, "nodeNetdev", {"name", &t_string, REQ}, {"rxErrors", &t_u64, 0},
       {"rxDropped", &t_u64, 0}, {"rxFifo", &t_u64, 0}, {"rxFrame", &t_u64, 0},
       {"txErrors", &t_u64, 0}, {"txDropped", &t_u64, 0}, {"txFifo", &t_u64, 0},
       {"txCollisions", &t_u64, 0}, {"txCarrier", &t_u64, 0});
OBJECT(softnet, "softnet", {"processed", &t_u64, REQ}, {"dropped", &t_u64, REQ},
       {"timeSqueeze", &t_u64, REQ}, {"flowLimit", &t_u64, 0});
OBJECT_OPEN(r_node, "node", true, {"recordType", &t_is_node, REQ}, {"ts", &t_moment, REQ},
	    {"interval", &t_time, REQ}, {"cpus", &t_node_cpu, LIST}, {"procsRunning", &t_u64, 0},
	    {"procsBlocked", &t_u64, 0}, {"psi", &t_psi, 0}, {"throttled", &t_node_throttled, 0},
	    {"netdev", &t_node_netdev, LIST}, {"softnet", &t_softnet, 0}, {"rdma", &t_rdma, LIST});
OBJECT(gpu_held, "gpuHeld", {"swPowerCap", &t_time, 0}, {"syncBoost", &t_time, 0},
       {"swThermalSlowdown", &t_time, 0}, {"hwThermalSlowdown", &t_time, 0},
       {"hwPowerBrakeSlowdown", &t_time, 0}, {"thermal", &t_time, 0}, {"boardLimit", &t_time, 0},
       {"reliability", &t_time, 0});
OBJECT(gpu_errors, "gpuErrors", {"eccCorrected", &t_u64, 0}, {"eccUncorrected", &t_u64, 0},
       {"nvlinkCrcFlit", &t_u64, 0}, {"nvlinkCrcData", &t_u64, 0}, {"nvlinkReplay", &t_u64, 0},
       {"nvlinkRecovery", &t_u64, 0}, {"pcieReplay", &t_u64, 0});
OBJECT(r_gpu, "gpu", {"recordType", &t_is_gpu, REQ}, {"ts", &t_moment, REQ},
       {"interval", &t_time, 0}, {"gpuUuid", &t_gpu_uuid, REQ}, {"index", &t_u64, REQ},
       {"pci", &t_string, 0}, {"name", &t_string, 0}, {"lost", &t_true, 0}, {"smClock", &t_u64, 0},
       {"smClockMax", &t_u64, 0}, {"memClock", &t_u64, 0}, {"util", &t_u64, 0},
       {"temperature", &t_u64, 0}, {"power", &t_u64, 0}, {"powerLimit", &t_u64, 0},
       {"pcieWidth", &t_u64, 0}, {"pcieWidthMax", &t_u64, 0}, {"reasons", &t_string, LIST},
       {"held", &t_gpu_held, 0}, {"errors", &t_gpu_errors, 0}, {"nvlinkSent", &t_u64, 0},
       {"nvlinkReceived", &t_u64, 0});
OBJECT(r_kmsg, "kmsg", {"recordType", &t_is_kmsg, REQ}, {"ts", &t_moment, REQ},
       {"before", &t_true, 0}, {"level", &t_u64, REQ}, {"sign", &t_string, 0},
       {"text", &t_string, REQ}, {"lost", &t_u64, 0});
OBJECT(gpu_clock, "gpuClock", {"offset", &t_signed_time, REQ}, {"error", &t_time, REQ});
OBJECT(r_clock, "clock", {"recordType", &t_is_clock, REQ}, {"ts", &t_moment, REQ},
       {"realtimeOffset", &t_signed_time, REQ}, {"error", &t_time, REQ}, {"gpu", &t_gpu_clock, 0});
OBJECT(r_lost, "lost", {"recordType", &t_is_lost, REQ}, {"from", &t_moment, REQ},
       {"to", &t_moment, REQ}, {"n", &t_u64, REQ}, {"cause", &t_cause, REQ},
       {"where", &t_string, 0});
OBJECT(r_open, "open", {"recordType", &t_is_open, REQ}, {"eventType", &t_etype, REQ},
       {"func", &t_string, REQ}, {"gpuUuid", &t_gpu_uuid, REQ}, {"commId", &t_u64, REQ},
       {"commHash", &t_hash, 0}, {"rank", &t_rank, REQ}, {"start", &t_point, REQ},
       {"ts", &t_moment, REQ}, {"age", &t_time, REQ}, {"quiet", &t_time, REQ},
       {"myPid", &t_pid, REQ}, {"originPid", &t_pid, 0}, {"parentObj", &t_id_or_null, REQ},
       {"eventAddr", &t_id, REQ}, {"ctx", &t_id_or_null, 0}, {"isPxn", &t_true, 0},
       {"details", &t_object, REQ}, {"lastState", &t_last_state, REQ},
       {"lastStateTs", &t_moment, 0}, {"stop", &t_point, 0}, {"openChildren", &t_u64, 0},
       {"sched", &t_sched, 0}, {"net", &t_net, 0}, {"more", &t_u64, 0});
OBJECT(self, "self", {"cpu", &t_time, REQ}, {"peakMemory", &t_u64, REQ}, {"skipped", &t_u64, 0});
OBJECT(r_footer, "footer", {"recordType", &t_is_footer, REQ}, {"end", &t_end, REQ},
       {"exitCode", &t_i32, 0}, {"oom", &t_true, 0}, {"counts", &t_u64, REQ | MAP},
       {"lost", &t_u64, REQ | MAP}, {"self", &t_self, REQ});

static const struct object *const records[NR_KINDS] = {
	[KIND_EVENT] = &r_event,   [KIND_STATE] = &r_state,   [KIND_HEADER] = &r_header,
	[KIND_THREAD] = &r_thread, [KIND_SLICE] = &r_slice,   [KIND_FLOW] = &r_flow,
	[KIND_DROP] = &r_drop,	   [KIND_SIGNAL] = &r_signal, [KIND_NODE] = &r_node,
	[KIND_GPU] = &r_gpu,	   [KIND_KMSG] = &r_kmsg,     [KIND_CLOCK] = &r_clock,
	[KIND_LOST] = &r_lost,	   [KIND_OPEN] = &r_open,     [KIND_FOOTER] = &r_footer,
};

/* Where in the record a value is, for messages: built only when there is one. */
struct path {
	const struct path *up;
	const char *name;
	size_t len;
};

static const char *path_text(const struct path *path)
{
	static char text[256];
	size_t at = sizeof(text) - 1;

	text[at] = '\0';
	for (; path && path->name; path = path->up) {
		if (path->len + 1 > at)
			break;
		if (text[at])
			text[--at] = '.';
		at -= path->len;
		memcpy(text + at, path->name, path->len);
	}
	return quote(text + at, strlen(text + at));
}

static const char *node_text(const struct json_node *n)
{
	static char text[128];

	switch (n->kind) {
	case JSON_KIND_OBJ:
		return "an object";
	case JSON_KIND_ARR:
		return "an array";
	case JSON_KIND_STR:
		snprintf(text, sizeof(text), "\"%s\"", quote(n->s, n->len));
		return text;
	default:
		return quote(n->s, n->len);
	}
}

static const char *want_text(const struct type *type)
{
	static char text[256];
	size_t at = 0, i;

	if (type->want || !type->words)
		return type->want;
	for (i = 0; type->words[i] && at < sizeof(text) - 64; i++)
		at += snprintf(text + at, sizeof(text) - at, "%s\"%s\"", i ? " or " : "",
			       type->words[i]);
	return text;
}

static int object_check(struct check *c, const struct object *obj, const struct json_node *node,
			const struct path *path);

static int value_check(struct check *c, const struct type *type, const struct json_node *n,
		       const struct path *path)
{
	bool ok = type->object	? n->kind == JSON_KIND_OBJ
		  : type->words ? in_words(type->words, n)
				: type->ok(c, n);

	if (!ok) {
		find(c, FIND_ERROR, "key-value", "key '%s' is %s, not %s", path_text(path),
		     node_text(n), want_text(type));
		return 1;
	}
	return type->object ? object_check(c, type->object, n, path) : 0;
}

static int key_check(struct check *c, const struct key *key, const struct json_node *n,
		     const struct path *path)
{
	bool many = key->flags & (LIST | MAP);
	int nr = 0;
	uint32_t i;

	if (n->kind == JSON_KIND_NULL && (key->flags & NULLABLE))
		return 0;
	if (!many)
		return value_check(c, key->type, n, path);
	if (n->kind != (key->flags & LIST ? JSON_KIND_ARR : JSON_KIND_OBJ)) {
		find(c, FIND_ERROR, "key-value", "key '%s' is %s, not %s", path_text(path),
		     node_text(n), key->flags & LIST ? "an array" : "an object");
		return 1;
	}
	for (i = n->first; i; i = c->doc.nodes[i].next) {
		const struct json_node *val = &c->doc.nodes[i];
		struct path here = {path, val->key, val->key_len};

		nr += value_check(c, key->type, val, val->key ? &here : path);
	}
	return nr;
}

/* Keys come in the order of the table as a rule, so the search goes on from the last hit. */
static int key_index(const struct object *obj, const struct json_node *n, unsigned int from)
{
	unsigned int i, k;

	for (i = 0; i < obj->nr; i++) {
		k = (from + i) % obj->nr;
		if (strlen(obj->keys[k].name) == n->key_len &&
		    !memcmp(obj->keys[k].name, n->key, n->key_len))
			return k;
	}
	return -1;
}

static int object_check(struct check *c, const struct object *obj, const struct json_node *node,
			const struct path *path)
{
	unsigned int k, last = 0;
	uint64_t seen = 0;
	int at, nr = 0;
	uint32_t i;

	for (i = node->first; i; i = c->doc.nodes[i].next) {
		const struct json_node *n = &c->doc.nodes[i];
		struct path here = {path, n->key, n->key_len};

		at = key_index(obj, n, last);
		if (at >= 0) {
			seen |= 1ULL << at;
			last = at + 1;
			nr += key_check(c, &obj->keys[at], n, &here);
		} else if (!obj->open && !c->compat) {
			find(c, FIND_WARNING, "key-unknown", "key '%s' is none of schema 1",
			     path_text(&here));
		}
	}
	for (k = 0; k < obj->nr; k++) {
		struct path here = {path, obj->keys[k].name, strlen(obj->keys[k].name)};

		if (!(obj->keys[k].flags & REQ) || (seen & 1ULL << k) ||
		    (c->compat && obj->keys[k].flags & SEED))
			continue;
		find(c, FIND_ERROR, "key-missing", "key '%s' is missing", path_text(&here));
		nr++;
	}
	return nr;
}

_Static_assert(ARRAY_SIZE(r_event_keys) < 64, "object_check() keeps one bit for each key");

/* What the schema says by if and then. @want: the key must be there, or must not. */
static int presence(struct check *c, const struct json_node *rec, const char *key, bool want,
		    const char *where)
{
	if (!!jn_get(&c->doc, rec, key) == want)
		return 0;
	if (want && c->compat)
		return 0;
	find(c, FIND_ERROR, want ? "key-missing" : "key-excess", "key '%s' %s %s", key,
	     want ? "is missing from" : "does not belong to", where);
	return 1;
}

static int pxn_keys(struct check *c, const struct json_node *rec, enum etype etype)
{
	static const char where[] = "a PXN event";
	uint64_t comm_id = 0;
	int64_t rank = 0;
	int nr = 0;

	nr += presence(c, rec, "originPid", true, where);
	nr += presence(c, rec, "ctx", false, where);
	nr += presence(c, rec, "commHash", false, where);
	jn_u64(jn_get(&c->doc, rec, "commId"), &comm_id);
	jn_i64(jn_get(&c->doc, rec, "rank"), &rank);
	if (comm_id || rank != -1 || !jn_is(jn_get(&c->doc, rec, "gpuUuid"), "")) {
		find(c, FIND_ERROR, "pxn-keys",
		     "a PXN event has gpuUuid \"\", commId 0 and rank -1, not those of a "
		     "communicator");
		nr++;
	}
	if (etype != ET_PROXY_OP && etype != ET_PROXY_STEP && etype != ET_NET_PLUGIN) {
		find(c, FIND_ERROR, "pxn-keys", "%s cannot be a PXN event", etype_names[etype]);
		nr++;
	}
	return nr;
}

static int silent_keys(struct check *c, const struct json_node *rec, enum etype etype)
{
	if (etype == ET_PROXY_OP && jn_is(jn_get(&c->doc, rec, "lastState"), ""))
		return 0;
	return presence(c, rec, "silent", false, "what is no ProxyOp, or has stopped or a state");
}

static int unfinished_keys(struct check *c, const struct json_node *rec, bool unfinished)
{
	const char *where = unfinished ? "an unfinished event" : "an event that is not unfinished";
	bool stop = jn_get(&c->doc, rec, "stop")->kind != JSON_KIND_NULL;
	bool duration = jn_get(&c->doc, rec, "duration")->kind != JSON_KIND_NULL;
	int nr = presence(c, rec, "lastState", unfinished, where);

	if (stop == !unfinished && duration == !unfinished)
		return nr;
	find(c, FIND_ERROR, "unfinished",
	     unfinished ? "%s has stop and duration null" : "%s has neither stop nor duration null",
	     where);
	return nr + 1;
}

/* @going_on: there is a state that the thread is in. */
static int sched_keys_check(struct check *c, const struct json_node *rec, enum etype etype,
			    bool going_on)
{
	const struct json_node *figures = jn_get(&c->doc, rec, "sched");
	int nr = 0;

	if (!figures)
		return 0;
	if (etype == ET_COLL || etype == ET_P2P) {
		nr += presence(c, figures, "span", true, "the sched of a Coll or P2p");
	} else {
		nr += presence(c, figures, "span", false, "the sched of one thread");
		nr += presence(c, figures, "app", false, "the sched of one thread");
		nr += presence(c, figures, "proxy", false, "the sched of one thread");
		nr += presence(c, figures, "before", false, "the sched of one thread");
	}
	if (!going_on)
		nr += presence(c, figures, "state", false,
			       "the sched of an event that is not unfinished");
	if (!jn_is(jn_get(&c->doc, figures, "state"), "blocked"))
		nr += presence(c, figures, "why", false,
			       "the sched of a thread that is not blocked");
	return nr;
}

/* Of an operation the flows, of what one thread does the flow; or counters of RDMA ports alone. */
static int net_flow_keys(struct check *c, const struct json_node *figures, bool operation)
{
	static const char *const needed[] = {"txBytes", "rxBytes", "retrans", "rxOoo"};
	static const char *const one_flow[] = {"flow", "rtt", "rttMin", "cwnd", "peer"};
	const struct json_node *ports = jn_get(&c->doc, figures, "rdma");
	int nr = 0;
	size_t i;

	if (!jn_get(&c->doc, figures, "flows") != !jn_get(&c->doc, figures, "nFlows")) {
		find(c, FIND_ERROR, "key-missing",
		     "keys 'flows' and 'nFlows' go together, one is missing");
		return 1;
	}
	for (i = 0; operation && i < ARRAY_SIZE(one_flow); i++)
		nr += presence(c, figures, one_flow[i], false, "the net of a Coll or P2p");
	if (ports && figures->first == ports - c->doc.nodes && !ports->next)
		return nr;
	for (i = 0; i < ARRAY_SIZE(needed); i++)
		nr += presence(c, figures, needed[i], true, "net");
	if (operation)
		return nr + presence(c, figures, "flows", true, "the net of a Coll or P2p");
	return nr + presence(c, figures, "flow", true, "the net of a ProxyOp or ProxyStep");
}

static int net_keys_check(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *figures = jn_get(&c->doc, rec, "net");
	const struct json_node *send = jn_get(&c->doc, jn_get(&c->doc, rec, "details"), "isSend");
	bool operation = etype == ET_COLL || etype == ET_P2P;
	int nr;

	if (!figures)
		return 0;
	if (!operation && etype != ET_PROXY_OP && etype != ET_PROXY_STEP)
		return presence(c, rec, "net", false,
				"an event that is no Coll, P2p, ProxyOp or ProxyStep");
	nr = net_flow_keys(c, figures, operation);
	if (etype == ET_PROXY_STEP) {
		nr += presence(c, figures, "flows", false, "the net of a ProxyStep");
		nr += presence(c, figures, "rdma", false, "the net of a ProxyStep");
	}
	if (jn_true(send))
		nr += presence(c, figures, "noData", false, "the net of a send");
	if (send && send->kind == JSON_KIND_FALSE)
		nr += presence(c, figures, "noRoom", false, "the net of a receive");
	return nr;
}

static int event_keys_check(struct check *c, const struct json_node *rec, enum etype etype)
{
	bool pxn = jn_get(&c->doc, rec, "isPxn"), life = etype == ET_LIFECYCLE;
	const struct json_node *func = jn_get(&c->doc, rec, "func");
	const char *where = life ? "ProfilerLifecycle" : "an event";
	struct path path = {NULL, "details", 7};
	int nr;

	nr = unfinished_keys(c, rec, jn_get(&c->doc, rec, "unfinished"));
	nr += silent_keys(c, rec, etype);
	nr += object_check(c, details[etype], jn_get(&c->doc, rec, "details"), &path);
	nr += sched_keys_check(c, rec, etype, jn_get(&c->doc, rec, "unfinished"));
	nr += net_keys_check(c, rec, etype);
	nr += presence(c, rec, "eventAddr", !life, where);
	nr += presence(c, rec, "parentObj", !life, where);
	if (etype != ET_COLL && etype != ET_P2P)
		nr += presence(c, rec, "exec", false, "an event that is no Coll or P2p");
	if (pxn)
		return nr + pxn_keys(c, rec, etype);
	nr += presence(c, rec, "commHash", true, "an event that is not PXN");
	nr += presence(c, rec, "originPid", false, "an event that is not PXN");
	nr += presence(c, rec, "origin", false, "an event that is not PXN");
	if (!life)
		return nr + presence(c, rec, "ctx", true, "an event that is not PXN");
	nr += presence(c, rec, "unfinished", false, where);
	if (func && !jn_is(func, "ProfilerInit") && !jn_is(func, "ProfilerFinalize")) {
		find(c, FIND_ERROR, "key-value",
		     "key 'func' is %s, not \"ProfilerInit\" or \"ProfilerFinalize\"",
		     node_text(func));
		nr++;
	}
	return nr;
}

/* An event as it is while it is open. */
static int open_keys_check(struct check *c, const struct json_node *rec, enum etype etype)
{
	static const char where[] = "an open event of this type";
	bool operation = etype == ET_COLL || etype == ET_P2P;
	bool state = !jn_is(jn_get(&c->doc, rec, "lastState"), "");
	bool counts = operation || etype == ET_PROXY_OP;
	struct path path = {NULL, "details", 7};
	int nr;

	if (etype == ET_LIFECYCLE) {
		find(c, FIND_ERROR, "key-value", "key 'eventType' is \"%s\", which is never open",
		     etype_names[etype]);
		return 1;
	}
	nr = object_check(c, details[etype], jn_get(&c->doc, rec, "details"), &path);
	nr += sched_keys_check(c, rec, etype, true);
	nr += net_keys_check(c, rec, etype);
	nr += presence(c, rec, "openChildren", counts, where);
	nr += presence(c, rec, "lastStateTs", state,
		       state ? "an open event with a state" : "an open event without a state");
	if (!operation)
		nr += presence(c, rec, "stop", false, where);
	if (jn_get(&c->doc, rec, "isPxn"))
		return nr + pxn_keys(c, rec, etype);
	nr += presence(c, rec, "commHash", true, "an event that is not PXN");
	nr += presence(c, rec, "originPid", false, "an event that is not PXN");
	return nr + presence(c, rec, "ctx", true, "an event that is not PXN");
}

static int state_keys_check(struct check *c, const struct json_node *rec)
{
	const struct json_node *name = jn_get(&c->doc, rec, "name");
	uint64_t id = NR_STATES;
	int nr = 0;

	jn_u64(jn_get(&c->doc, rec, "id"), &id);
	if (id >= NR_STATES) {
		find(c, FIND_ERROR, "state-name", "NCCL has no state %llu", (unsigned long long)id);
		nr++;
	} else if (!jn_is(name, state_names[id]) &&
		   !(c->compat && ((id == 23 && jn_is(name, "EndGroupApiStart")) ||
				   (id == 24 && jn_is(name, "BeginGroupApiEnd"))))) {
		find(c, FIND_ERROR, "state-name", "state %llu is %s in NCCL, not %s",
		     (unsigned long long)id, state_names[id], quote(name->s, name->len));
		nr++;
	}
	if (!jn_get(&c->doc, rec, "repeats") != !jn_get(&c->doc, rec, "lastTs")) {
		find(c, FIND_ERROR, "key-missing",
		     "keys 'repeats' and 'lastTs' go together, one is missing");
		nr++;
	}
	return nr;
}

/* What the kernel did to a thread: over which time, and all of it, or nothing. */
static int thread_keys_check(struct check *c, const struct json_node *rec)
{
	static const char where[] = "a thread record with what the kernel did";
	static const char *const keys[] = {"since",	  "onCpu",	"runq",	     "blocked",
					   "unknown",	  "irq",	"throttled", "switches",
					   "preemptions", "migrations", "state"};
	static const char *const of_blocked[] = {"why", "file", "fs", "stack"};
	enum { NR_NEEDED = 4 }; /* the first of them */
	bool blocked = jn_is(jn_get(&c->doc, rec, "state"), "blocked"), any = false;
	int nr = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		any |= !!jn_get(&c->doc, rec, keys[i]);
	if (!jn_get(&c->doc, rec, "state"))
		nr += presence(c, rec, "stateSince", false, "a thread record without a state");
	for (i = 0; !blocked && i < ARRAY_SIZE(of_blocked); i++)
		nr += presence(c, rec, of_blocked[i], false,
			       any ? "a thread that is not blocked at its end"
				   : "a thread record without a state");
	if (!any)
		return nr;
	for (i = 0; i < NR_NEEDED; i++)
		nr += presence(c, rec, keys[i], true, where);
	return nr + presence(c, rec, "stop", true, where);
}

/* Keys that only one scheduler state has. */
static int slice_keys_check(struct check *c, const struct json_node *rec)
{
	static const struct {
		const char *key, *state, *where;
	} only[] = {
		{"irq", "run", "a slice that is not run"},
		{"behind", "runq", "a slice that is not runq"},
		{"throttled", "runq", "a slice that is not runq"},
		{"preempted", "runq", "a slice that is not runq"},
		{"why", "blocked", "a slice that is not blocked"},
		{"wokenBy", "blocked", "a slice that is not blocked"},
		{"file", "blocked", "a slice that is not blocked"},
		{"fs", "blocked", "a slice that is not blocked"},
		{"stack", "blocked", "a slice that is not blocked"},
	};
	const struct json_node *state = jn_get(&c->doc, rec, "state");
	int nr = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(only); i++)
		if (!jn_is(state, only[i].state))
			nr += presence(c, rec, only[i].key, false, only[i].where);
	if (jn_is(state, "blocked"))
		nr += presence(c, rec, "cpu", false, "a slice that is blocked");
	return nr;
}

/* The last record of a flow says so. */
static int flow_keys_check(struct check *c, const struct json_node *rec)
{
	const struct json_node *why = jn_get(&c->doc, rec, "why");
	bool end = jn_is(why, "end") || jn_is(why, "detached");

	return presence(c, rec, "end", end,
			end ? "the last record of a flow" : "a flow record that is not the last");
}

static enum kind kind_of(const struct json_node *type)
{
	int i;

	for (i = 0; i < NR_KINDS; i++)
		if (jn_is(type, kind_names[i]))
			return i;
	return KIND_OTHER;
}

static enum etype etype_of(const struct json_node *type)
{
	int i;

	for (i = 0; i < NR_ETYPES; i++)
		if (jn_is(type, etype_names[i]))
			return i;
	return NR_ETYPES;
}

int keys_check(struct check *c, const struct json_node *rec, enum kind *kind, enum etype *etype)
{
	const struct json_node *record_type = jn_get(&c->doc, rec, "recordType");
	const struct json_node *type = jn_get(&c->doc, rec, "type");
	int nr;

	*etype = NR_ETYPES;
	*kind = KIND_OTHER;
	if (record_type && record_type->kind != JSON_KIND_STR) {
		find(c, FIND_ERROR, "key-value", "key 'recordType' is %s, not a string",
		     node_text(record_type));
		return 1;
	}
	*kind = kind_of(record_type);
	if (!record_type && c->compat && jn_is(type, "ProfilerLifecycle"))
		*kind = KIND_EVENT;
	if (!record_type && *kind != KIND_EVENT) {
		find(c, FIND_ERROR, "key-missing", "key 'recordType' is missing");
		return 1;
	}
	if (*kind != KIND_EVENT && type && !c->compat) {
		find(c, FIND_ERROR, "type-key",
		     "only events may have a key 'type', a %s record has one",
		     quote(record_type->s, record_type->len));
		return 1;
	}
	if (*kind == KIND_OTHER) {
		if (!c->compat)
			find(c, FIND_WARNING, "kind-unknown",
			     "record kind '%s' is none of schema 1",
			     quote(record_type->s, record_type->len));
		return 0;
	}
	nr = object_check(c, records[*kind], rec, NULL);
	if (*kind == KIND_OPEN)
		type = jn_get(&c->doc, rec, "eventType");
	if (*kind == KIND_EVENT || *kind == KIND_OPEN)
		*etype = etype_of(type);
	/* The finer rules read keys that the tables have just vouched for. */
	if (!nr && *kind == KIND_EVENT)
		nr = event_keys_check(c, rec, *etype);
	if (!nr && *kind == KIND_OPEN)
		nr = open_keys_check(c, rec, *etype);
	if (!nr && *kind == KIND_STATE)
		nr = state_keys_check(c, rec);
	if (!nr && *kind == KIND_THREAD)
		nr = thread_keys_check(c, rec);
	if (!nr && *kind == KIND_SLICE)
		nr = slice_keys_check(c, rec);
	if (!nr && *kind == KIND_FLOW)
		nr = flow_keys_check(c, rec);
	return nr;
}

/* ---- Points in time ------------------------------------------------------------------------------------ */

struct moments {
	const struct json_doc *doc;
	void (*visit)(void *to, const struct json_node *n);
	void *to;
	const struct object *details; /* of an event's type; NULL: not known */
};

static void object_moments(const struct moments *m, const struct object *obj,
			   const struct json_node *node);

static void value_moments(const struct moments *m, const struct key *key, const struct json_node *n)
{
	uint32_t i;

	if (key->type == &t_object && m->details)
		object_moments(m, m->details, n);
	else if (key->type->object && !(key->flags & (LIST | MAP)))
		object_moments(m, key->type->object, n);
	else if (key->type->object && (n->kind == JSON_KIND_ARR || n->kind == JSON_KIND_OBJ))
		for (i = n->first; i; i = m->doc->nodes[i].next)
			object_moments(m, key->type->object, &m->doc->nodes[i]);
}

static void object_moments(const struct moments *m, const struct object *obj,
			   const struct json_node *node)
{
	unsigned int last = 0;
	uint32_t i;
	int at;

	if (node->kind != JSON_KIND_OBJ)
		return;
	for (i = node->first; i; i = m->doc->nodes[i].next) {
		const struct json_node *n = &m->doc->nodes[i];

		at = key_index(obj, n, last);
		if (at < 0)
			continue;
		last = at + 1;
		if (obj->keys[at].type == &t_moment)
			m->visit(m->to, n);
		else
			value_moments(m, &obj->keys[at], n);
	}
}

enum kind keys_moments(const struct json_doc *doc, const struct json_node *rec,
		       void (*visit)(void *to, const struct json_node *n), void *to)
{
	struct moments m = {.doc = doc, .visit = visit, .to = to};
	enum kind kind = kind_of(jn_get(doc, rec, "recordType"));
	enum etype etype = etype_of(jn_get(doc, rec, kind == KIND_OPEN ? "eventType" : "type"));

	if (etype < NR_ETYPES)
		m.details = details[etype];
	if (kind != KIND_OTHER)
		object_moments(&m, records[kind], rec);
	return kind;
}

/* ---- The tables as text ----------------------------------------------------------------------------------- */

/* "object key type required": the types as the test reads them from the schema. */
static void object_dump(FILE *to, const struct object *obj)
{
	unsigned int i, w;

	for (i = 0; i < obj->nr; i++) {
		const struct key *key = &obj->keys[i];

		fprintf(to, "%s %s %s", obj->name, key->name,
			key->flags & LIST  ? "["
			: key->flags & MAP ? "{"
					   : "");
		if (key->type->name)
			fputs(key->type->name, to);
		for (w = 0; !key->type->name && key->type->words[w]; w++)
			fprintf(to, "%s%s", w ? "|" : "", key->type->words[w]);
		fprintf(to, "%s%s %s\n",
			key->flags & LIST  ? "]"
			: key->flags & MAP ? "}"
					   : "",
			key->flags & NULLABLE ? "?" : "",
			key->flags & REQ ? "required" : "optional");
	}
}

static void words_dump(FILE *to, const char *name, const char *const *words)
{
	int i;

	fprintf(to, "%s", name);
	for (i = 0; words[i]; i++)
		fprintf(to, " \"%s\"", words[i]);
	fputc('\n', to);
}

void keys_dump(FILE *to)
{
	static const struct object *const parts[] = {
		&point,	       &exec,	    &behind,	&blocked_in,	 &sched_part, &sched,
		&drop_count,   &rdma,	    &net,	&origin,	 &slurm,      &merged,
		&header_clock, &tcp,	    &slice_who, &flow_delta,	 &node_cpu,   &pressure,
		&psi,	       &gpu_clock,  &self,	&node_throttled, &net_peer,   &features,
		&node_netdev,  &softnet,    &resent,	&sender,	 &gpu_held,   &gpu_errors,
		&woken_by,     &slept_file,
	};
	size_t i;

	words_dump(to, "eventType", etype_names);
	words_dump(to, "stateName", state_names);
	words_dump(to, "lastState", last_states);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		object_dump(to, parts[i]);
	for (i = 0; i < NR_ETYPES; i++)
		object_dump(to, details[i]);
	for (i = 0; i < NR_KINDS; i++)
		object_dump(to, records[i]);
}
