// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page of `ncclscope view`: viewer/ as the build has put it together, then the data in script elements that
 * no browser runs, each a gzip stream in base64. What a trace says is in no other form in it, so it cannot be
 * taken for markup. Names of files are the one exception, and escaped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "view.h"
#include "view_template.h"

#define LEVEL	5	   /* 6 takes half as long again for 3 % less */
#define OUT	(96 << 10) /* written at a time */
#define DEFLATE (48 << 10)

struct view_page {
	const struct output *to;
	z_stream z;
	unsigned char deflated[DEFLATE];
	char out[OUT];
	size_t len;
	unsigned char rest[3]; /* bytes that are no group of three yet */
	size_t nrest;
};

struct view_page *view_page__new(const struct output *to)
{
	struct view_page *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->to = to;
	if (deflateInit2(&p->z, LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(p);
		return NULL;
	}
	return p;
}

void view_page__free(struct view_page *p)
{
	if (!p)
		return;
	deflateEnd(&p->z);
	free(p);
}

/* ---- Out ------------------------------------------------------------------------------------------- */

static int flush(struct view_page *p)
{
	int err = output__write(p->to, p->out, p->len);

	if (!err)
		p->len = 0;
	return err;
}

static int put_text(struct view_page *p, const char *s, size_t len)
{
	size_t n;
	int err;

	while (len) {
		n = len < OUT - p->len ? len : OUT - p->len;
		memcpy(p->out + p->len, s, n);
		p->len += n;
		s += n;
		len -= n;
		err = p->len == OUT ? flush(p) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int put_str(struct view_page *p, const char *s)
{
	return put_text(p, s, strlen(s));
}

/* In an attribute, between double quotes. */
static int put_escaped(struct view_page *p, const char *s)
{
	char code[] = "&#00;";
	int err = 0;

	for (; *s && !err; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= ' ' && c != 0x7f && !strchr("\"&'<>`", c)) {
			err = put_text(p, s, 1);
		} else if (c < 10 || c > 99) {
			err = put_str(p, "?"); /* nothing that a name needs */
		} else {
			code[2] = (char)('0' + c / 10);
			code[3] = (char)('0' + c % 10);
			err = put_str(p, code);
		}
	}
	return err;
}

static void encode(const unsigned char in[3], size_t n, char to[4])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned int v = (unsigned int)in[0] << 16;

	v |= n > 1 ? (unsigned int)in[1] << 8 : 0;
	v |= n > 2 ? in[2] : 0;
	to[0] = digits[v >> 18];
	to[1] = digits[v >> 12 & 63];
	to[2] = n > 1 ? digits[v >> 6 & 63] : '=';
	to[3] = n > 2 ? digits[v & 63] : '=';
}

/* As base64; up to two bytes wait for the next call. */
static int put_base64(struct view_page *p, const unsigned char *s, size_t len)
{
	char four[4];
	int err = 0;

	while (len && !err) {
		p->rest[p->nrest++] = *s++;
		len--;
		if (p->nrest < 3)
			continue;
		encode(p->rest, 3, four);
		p->nrest = 0;
		err = put_text(p, four, 4);
	}
	return err;
}

/* ---- Blocks ------------------------------------------------------------------------------------------ */

static int deflate_some(struct view_page *p, const void *data, size_t len, int mode)
{
	int err, ret;

	p->z.next_in = (Bytef *)data;
	p->z.avail_in = (uInt)len;
	do {
		p->z.next_out = p->deflated;
		p->z.avail_out = DEFLATE;
		ret = deflate(&p->z, mode);
		if (ret == Z_STREAM_ERROR)
			return -EINVAL;
		err = put_base64(p, p->deflated, DEFLATE - p->z.avail_out);
		if (err)
			return err;
	} while (!p->z.avail_out || (mode == Z_FINISH && ret != Z_STREAM_END));
	return 0;
}

int view_page__open(struct view_page *p, const char *kind, const char *name)
{
	int err = put_str(p, "<script type=\"application/octet-stream\" data-kind=\"");

	err = err ?: put_str(p, kind);
	if (!err && name) {
		err = put_str(p, "\" data-name=\"");
		err = err ?: put_escaped(p, name);
	}
	return err ?: put_str(p, "\">");
}

int view_page__put(struct view_page *p, const void *data, size_t len)
{
	return deflate_some(p, data, len, Z_NO_FLUSH);
}

int view_page__close(struct view_page *p)
{
	char four[4];
	int err = deflate_some(p, NULL, 0, Z_FINISH);

	if (!err && p->nrest) {
		encode(p->rest, p->nrest, four);
		err = put_text(p, four, 4);
	}
	p->nrest = 0;
	deflateReset(&p->z);
	return err ?: put_str(p, "</script>\n");
}

int view_page__begin(struct view_page *p)
{
	return put_text(p, (const char *)view_template_html, view_template_html_len);
}

int view_page__end(struct view_page *p)
{
	int err = put_str(p, "</body>\n</html>\n");

	return err ?: flush(p);
}
