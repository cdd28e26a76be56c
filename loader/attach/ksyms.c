// SPDX-License-Identifier: BSD-2-Clause
/* Names for addresses in the kernel; see ksyms.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ksyms.h"
#include "text.h"

#define KALLSYMS "/proc/kallsyms"
#define TEXT_MAX (256u << 20)

/* Room for `more` elements behind n. */
static int reserve(void **at, size_t *cap, size_t n, size_t more, size_t size)
{
	size_t want = *cap ? *cap : 4096;
	void *p;

	while (want < n + more)
		want *= 2;
	if (want == *cap)
		return 0;
	p = realloc(*at, want * size);
	if (!p)
		return -ENOMEM;
	*at = p;
	*cap = want;
	return 0;
}

static int add(struct ksyms *k, uint64_t addr, const struct text *name)
{
	size_t len = (size_t)(name->end - name->at);
	int err;

	err = reserve((void **)&k->syms, &k->cap, k->n, 1, sizeof(*k->syms));
	if (!err)
		err = reserve((void **)&k->names, &k->size, k->len, len + 1, 1);
	if (err)
		return err;
	k->syms[k->n++] = (struct ksym){addr, k->len};
	memcpy(k->names + k->len, name->at, len);
	k->names[k->len + len] = '\0';
	k->len += len + 1;
	return 0;
}

/* "ffffffff81000000 T _text", a tab and its module's name behind one of a module. Text only: data is not called. */
static int parse(struct ksyms *k, struct text text)
{
	struct text line, type, name;
	uint64_t addr;
	int err = 0;

	while (!err && text__line(&text, &line)) {
		if (!text__take(&line, 16, &addr) || !addr || !text__word(&line, ' ', &type) ||
		    !(text__is(&type, "t") || text__is(&type, "T") || text__is(&type, "w") ||
		      text__is(&type, "W")) ||
		    !text__word(&line, '\t', &name))
			continue;
		err = add(k, addr, &name);
	}
	return err;
}

static int by_addr(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void load(struct ksyms *k)
{
	struct text_file file = {0};

	k->loaded = true;
	if (!text_file__read(&file, "", k->path ? k->path : KALLSYMS, TEXT_MAX))
		parse(k, text_of(file.at, file.len)); /* as far as memory goes */
	text_file__free(&file);
	if (k->n)
		qsort(k->syms, k->n, sizeof(*k->syms), by_addr);
}

const char *ksyms__name(struct ksyms *k, uint64_t addr)
{
	size_t low = 0, high, mid;

	if (!k->loaded)
		load(k);
	for (high = k->n; low < high;) {
		mid = low + (high - low) / 2;
		if (k->syms[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? k->names + k->syms[low - 1].name : NULL;
}

void ksyms__free(struct ksyms *k)
{
	free(k->syms);
	free(k->names);
	*k = (struct ksyms){.path = k->path};
}
