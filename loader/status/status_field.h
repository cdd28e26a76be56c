/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of status files: of any type, since a file may say anything. */
#ifndef NCCLSCOPE_STATUS_FIELD_H
#define NCCLSCOPE_STATUS_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

/* 0 if it is none above 0 */
uint64_t status_field__number(const json_t *o, const char *key);
/* "-" if it is none */
const char *status_field__string(const json_t *o, const char *key);
/* Whether a recorder is in that state: "running", "waiting", "silent", "dead". */
bool status_field__is_in(const json_t *recorder, const char *state);
/* A point in time by the real clock, of this time zone: "12:30:00", with its day if it is no less than one away. */
#define STATUS_WHEN 64
const char *status_field__when(char buf[STATUS_WHEN], uint64_t monotonic_us);
/* "lost": all causes together, and (text not NULL) each with its number. */
uint64_t status_field__lost(const json_t *o, char *text, size_t size);

#endif
