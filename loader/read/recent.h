/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was read lately, by id: tables that forget their oldest entry when they are full. What a trace never closes must not
 * grow without end. An entry begins with `uint64_t addr`, has a `UT_hash_handle hh`, and owns nothing.
 */
#ifndef NCCLSCOPE_RECENT_H
#define NCCLSCOPE_RECENT_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include "hash.h"

/* The entry of @address in the table @head of structs @type, made if @make; NULL: none. *@failed: -ENOMEM if there is no memory. */
#define RECENT(head, type, address, make, max, failed)                                             \
	({                                                                                         \
		uint64_t key_ = (address);                                                         \
		type *e_ = NULL, *old_;                                                            \
                                                                                                   \
		HASH_FIND(hh, head, &key_, sizeof(key_), e_);                                      \
		if (!e_ && (make)) {                                                               \
			if (HASH_COUNT(head) >= (max)) {                                           \
				old_ = head;                                                       \
				HASH_DEL(head, old_);                                              \
				free(old_);                                                        \
			}                                                                          \
			e_ = calloc(1, sizeof(*e_));                                               \
			if (e_) {                                                                  \
				e_->addr = key_;                                                   \
				HASH_ADD(hh, head, addr, sizeof(key_), e_);                        \
				if (!HASH_ADDED(hh, e_)) {                                         \
					free(e_);                                                  \
					e_ = NULL;                                                 \
				}                                                                  \
			}                                                                          \
			if (!e_)                                                                   \
				*(failed) = -ENOMEM;                                               \
		}                                                                                  \
		e_;                                                                                \
	})

#define RECENT_FORGET(head, entry)                                                                 \
	do {                                                                                       \
		HASH_DEL(head, entry);                                                             \
		free(entry);                                                                       \
	} while (0)

#endif
