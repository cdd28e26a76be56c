/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uthash. Its tables take memory of their own: where there is none an element is not added, and HASH_ADDED() tells;
 * by itself uthash would end the program.
 */
#ifndef NCCLSCOPE_HASH_H
#define NCCLSCOPE_HASH_H

#define HASH_NONFATAL_OOM 1
#include <stdlib.h>
#include <uthash.h>

/* After each HASH_ADD: whether the element is in the table. */
#define HASH_ADDED(hh, el) ((el)->hh.tbl != NULL)

/* Frees all elements of a table, which own nothing else, and so the table. */
#define HASH_FREE_ALL(head)                                                                        \
	do {                                                                                       \
		__typeof__(head) el_, tmp_;                                                        \
                                                                                                   \
		HASH_ITER (hh, head, el_, tmp_) {                                                  \
			HASH_DEL(head, el_);                                                       \
			free(el_);                                                                 \
		}                                                                                  \
	} while (0)

#endif
