/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the loader. stdout carries data only, so every message goes to stderr; a function
 * either logs or returns an error, never both.
 */
#ifndef NCCLSCOPE_LOG_H
#define NCCLSCOPE_LOG_H

enum log_level { LOG_ERR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LIBBPF };

/* What is printed: everything up to this level. LOG_INFO unless -q (LOG_WARN) or -v (LOG_DEBUG). */
extern enum log_level log_level;

__attribute__((format(printf, 2, 3))) void log_printf(enum log_level level, const char *fmt, ...);

/* Sends libbpf's own messages through log_printf(), one level quieter than libbpf rates them. */
void log_setup_libbpf(void);

#define pr_err(fmt, ...)   log_printf(LOG_ERR, fmt, ##__VA_ARGS__)
#define pr_warn(fmt, ...)  log_printf(LOG_WARN, fmt, ##__VA_ARGS__)
#define pr_info(fmt, ...)  log_printf(LOG_INFO, fmt, ##__VA_ARGS__)
#define pr_debug(fmt, ...) log_printf(LOG_DEBUG, fmt, ##__VA_ARGS__)

#endif
