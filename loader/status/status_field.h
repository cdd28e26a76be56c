/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of status files: of any type, since a file may say anything. */
#ifndef NCCLSCOPE_STATUS_FIELD_H
#define NCCLSCOPE_STATUS_FIELD_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

/* 0 if it is none above 0 */
uint64_t status_field__number(const json_t *o, const char *key);
/* "-" if it is none */
const char *status_field__string(const json_t *o, const char *key);
/* "lost": all causes together, and (text not NULL) each with its number. */
uint64_t status_field__lost(const json_t *o, char *text, size_t size);

#endif
