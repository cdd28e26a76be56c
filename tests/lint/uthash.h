/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What uthash does, as far as static analysers need to know: they lose their way in the real one, which is
 * macros all the way down, and then report memory as freed or not initialised that is neither.
 */
#ifndef NCCLSCOPE_TESTS_UTHASH_H
#define NCCLSCOPE_TESTS_UTHASH_H

#include <stddef.h>
#include <string.h>

struct UT_hash_table {
	unsigned int num_items;
};

#define HASH_INITIAL_NUM_BUCKETS 32U

typedef struct UT_hash_bucket {
	struct UT_hash_handle *head;
	unsigned int count;
} UT_hash_bucket;

typedef struct UT_hash_table UT_hash_table;

typedef struct UT_hash_handle {
	struct UT_hash_table *tbl;
	void *prev, *next;
} UT_hash_handle;

void *ut_find(const void *head, const void *key, size_t len);
void ut_add(void *head, void *el);
void ut_del(void *head, void *el);
unsigned int ut_count(const void *head);

#define HASH_FIND(hh, head, key, len, out)	((out) = ut_find(head, key, len))
#define HASH_FIND_INT(head, key, out)		HASH_FIND(hh, head, key, sizeof(int), out)
#define HASH_FIND_STR(head, key, out)		HASH_FIND(hh, head, key, strlen(key), out)
#define HASH_ADD(hh, head, field, len, el)	ut_add(&(head), el)
#define HASH_ADD_INT(head, field, el)		ut_add(&(head), el)
#define HASH_ADD_STR(head, field, el)		ut_add(&(head), el)
#define HASH_ADD_KEYPTR(hh, head, key, len, el) ut_add(&(head), el)
#define HASH_DELETE(hh, head, el)		ut_del(&(head), el)
#define HASH_DEL(head, el)			ut_del(&(head), el)
#define HASH_COUNT(head)			ut_count(head)
#define HASH_CLEAR(hh, head)			((head) = NULL)
#define HASH_ITER(hh, head, el, tmp)                                                               \
	for ((el) = (head); (el) && ((tmp) = (el)->hh.next, 1); (el) = (tmp))

#endif
