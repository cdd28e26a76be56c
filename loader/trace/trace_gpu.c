// SPDX-License-Identifier: BSD-2-Clause
/* What a process' GPU does as JSON: a `gpu` record for each second. */
#include "gpu.h"
#include "session.h"
#include "trace.h"
#include "trace_keys.h"

/* Of the longest line: fixed keys, a number or name for each value and reason, two texts, escaped. */
#define GPU_LINE_MAX (1024 + 64 * (GPU_VALUES + GPU_REASON_BITS) + 6 * 96)

static void put_name(struct json *j, const char **sep, const char *name)
{
	json_raw(j, *sep, strlen(*sep));
	*sep = ",";
	json_str(j, name, strlen(name));
}

static void put_key(struct json *j, const char **sep, enum gpu_value v)
{
	put_name(j, sep, gpu_value_names[v]);
	json_char(j, ':');
}

/* As it is now. */
static void put_value(struct json *j, const struct gpu_sample *now, enum gpu_value v)
{
	const char *sep = ",";

	if (!gpu_sample__has(now, v))
		return;
	put_key(j, &sep, v);
	json_u64(j, now->value[v]);
}

static void put_reasons(struct json *j, const struct gpu_sample *now)
{
	const char *sep = "";
	uint32_t bit;

	if (!gpu_sample__has(now, GPU_REASONS))
		return;
	json_lit(j, ",\"reasons\":[");
	for (bit = 0; bit < GPU_REASON_BITS; bit++)
		if (now->value[GPU_REASONS] >> bit & 1)
			put_name(j, &sep, gpu_reason_name(bit));
	json_char(j, ']');
}

/* The bit of GPU_REASONS that says that it is so now; 0: none does. */
static uint64_t bit_of(enum gpu_value held)
{
	switch (held) {
	case GPU_HELD_SW_POWER_CAP:
		return 1 << 2;
	case GPU_HELD_SYNC_BOOST:
		return 1 << 4;
	case GPU_HELD_SW_THERMAL:
		return 1 << 5;
	case GPU_HELD_HW_THERMAL:
		return 1 << 6;
	case GPU_HELD_POWER_BRAKE:
		return 1 << 7;
	default:
		return 0;
	}
}

/* What a driver does not count is what its bit says at the end. */
static bool is_held(const struct gpu_sample *was, const struct gpu_sample *now, enum gpu_value v,
		    uint64_t *n)
{
	bool heat = v == GPU_HELD_SW_THERMAL || v == GPU_HELD_HW_THERMAL;

	if (!gpu_sample__has(now, GPU_REASONS) || !bit_of(v) || gpu_sample__has(now, v) ||
	    (heat && gpu_sample__has(now, GPU_HELD_THERMAL)))
		return false;
	*n = now->value[GPU_REASONS] & bit_of(v) ? now->ns - was->ns : 0;
	return true;
}

/* What has been counted since; false: not known, or the driver began anew. */
static bool moved(const struct gpu_sample *was, const struct gpu_sample *now, enum gpu_value v,
		  uint64_t *n)
{
	if (v >= GPU_HELD_FIRST && v <= GPU_HELD_LAST && is_held(was, now, v, n))
		return true;
	*n = now->value[v] - was->value[v];
	return gpu_sample__has(was, v) && gpu_sample__has(now, v) && now->value[v] >= was->value[v];
}

/* An object of the counters that moved, which is there, if empty, where any of them is known. */
static void put_moved(struct json *j, const char *key, const struct gpu_sample *was,
		      const struct gpu_sample *now, enum gpu_value first, enum gpu_value last)
{
	const char *before = ",", *sep = "";
	enum gpu_value v;
	bool any = false;
	uint64_t n;

	for (v = first; v <= last; v++) {
		if (!moved(was, now, v, &n))
			continue;
		if (!any) {
			put_name(j, &before, key);
			json_lit(j, ":{");
		}
		any = true;
		if (!n)
			continue;
		put_key(j, &sep, v);
		if (first == GPU_HELD_FIRST)
			json_us(j, n);
		else
			json_u64(j, n);
	}
	if (any)
		json_char(j, '}');
}

static void put_bytes(struct json *j, const struct gpu_sample *was, const struct gpu_sample *now,
		      enum gpu_value v)
{
	const char *sep = ",";
	uint64_t n;

	if (!moved(was, now, v, &n))
		return;
	put_key(j, &sep, v);
	json_u64(j, n);
}

static void put_text(struct json *j, const char *key, const char *text)
{
	const char *sep = ",";

	if (!*text)
		return;
	put_name(j, &sep, key);
	json_char(j, ':');
	json_str(j, text, strlen(text));
}

void trace__gpu(struct proc *p, const struct gpu_sample *was, const struct gpu_sample *now)
{
	struct json j = trace_begin(p, GPU_LINE_MAX);
	enum gpu_value v;

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"gpu\"");
	KEY_US(&j, "ts", now->ns);
	if (was)
		KEY_US(&j, "interval", now->ns - was->ns);
	KEY_STR(&j, "gpuUuid", now->uuid, sizeof(now->uuid));
	KEY_U64(&j, "index", now->index);
	put_text(&j, "pci", now->pci);
	put_text(&j, "name", now->name);
	if (now->lost)
		KEY_BOOL(&j, "lost", 1);
	for (v = 0; v < GPU_REASONS; v++)
		put_value(&j, now, v);
	put_reasons(&j, now);
	if (was) {
		put_moved(&j, "held", was, now, GPU_HELD_FIRST, GPU_HELD_LAST);
		put_moved(&j, "errors", was, now, GPU_ERROR_FIRST, GPU_ERROR_LAST);
		put_bytes(&j, was, now, GPU_NVLINK_SENT);
		put_bytes(&j, was, now, GPU_NVLINK_RECEIVED);
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_GPU);
}
