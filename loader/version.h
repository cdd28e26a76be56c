/* SPDX-License-Identifier: BSD-2-Clause */
/* The version, as the Makefile sets it. */
#ifndef NCCLSCOPE_VERSION_H
#define NCCLSCOPE_VERSION_H

#ifndef NCCLSCOPE_VERSION
#define NCCLSCOPE_VERSION "unknown"
#endif

#endif
