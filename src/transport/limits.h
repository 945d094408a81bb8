/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory can still be had here. */
#ifndef CST_TRANSPORT_LIMITS_H
#define CST_TRANSPORT_LIMITS_H
#include <stddef.h>

/* Bytes that could be allocated now without the kernel having to kill somebody: the least of what the host and the
 * control groups of this process have left. An estimate: others allocate too. *where names the tightest limit.
 * SIZE_MAX if nothing is known. */
size_t cst_memory_room(const char **where);
#endif
