// SPDX-License-Identifier: BSD-2-Clause
/* What a process' GPUs did, as counters: a sample is of the second before it. */
#include "export.h"

#define IS_GPU 2 /* in key.rank, which no connection has, nor a port */

/* What is not known is no point: it is not 0. */
static void tell(struct export *x, struct export_group *g, const struct json_node *rec, int64_t ts,
		 const char *key, const char *name, const char *unit, double per)
{
	uint64_t n;

	if (per > 0 && jn_u64(rec_get(x, rec, key), &n))
		x->fmt->counter(x, g, name, unit, ts, (double)n / per);
}

/* For how much of the time its clocks were held down, %; -1: not known. */
static double held_percent(const struct export *x, const struct json_node *rec, int64_t interval)
{
	const struct json_node *held = rec_get(x, rec, "held"), *why;
	double sum = 0;
	int64_t ns;

	if (!held || held->kind != JSON_KIND_OBJ || interval <= 0)
		return -1;
	for (why = held->first ? &x->doc.nodes[held->first] : NULL; why;
	     why = why->next ? &x->doc.nodes[why->next] : NULL)
		if (jn_time(why, true, &ns) && ns > 0)
			sum += (double)ns;
	sum = 100 * sum / (double)interval;
	return sum < 100 ? sum : 100;
}

void export_gpu(struct export *x, const struct json_node *rec, int64_t ts)
{
	const struct json_node *uuid = rec_get(x, rec, "gpuUuid");
	struct export_key key = {.kind = EXPORT_FLOW, .rank = IS_GPU};
	int64_t interval = rec_span(x, rec, "interval");
	struct export_group *g;
	uint64_t index = 0;
	double held;

	if (!x->fmt->counter || !uuid || uuid->kind != JSON_KIND_STR)
		return;
	key.a = fnv_more(FNV_BEGIN, uuid->s, uuid->len);
	jn_u64(rec_get(x, rec, "index"), &index);
	g = export_group_of(x, &key, NULL, "GPU %llu", (unsigned long long)index);
	if (!g || !export_lane_of(x, g, 0)) {
		export_beyond(x, "too many GPUs");
		return;
	}
	tell(x, g, rec, ts, "smClock", "SM clock", "MHz", 1);
	tell(x, g, rec, ts, "power", "power", "W", 1000);
	held = held_percent(x, rec, interval);
	if (held >= 0)
		x->fmt->counter(x, g, "held down", "%", ts, held);
	tell(x, g, rec, ts, "nvlinkSent", "NVLink sent", "B/s", (double)interval / 1e9);
	tell(x, g, rec, ts, "nvlinkReceived", "NVLink received", "B/s", (double)interval / 1e9);
}
