/* SPDX-License-Identifier: Apache-2.0 */
/* The transports of this build, by name. */
#ifndef CST_TRANSPORT_REGISTRY_H
#define CST_TRANSPORT_REGISTRY_H
#include <coset_transport.h>

/* The ops table of "threads", "shm", ..., or of "fault:shm" and the like; NULL if this build has none of that name. */
const coset_transport_ops *cst_transport_find(const char *name);
/* The i-th transport (0, 1, ...), NULL past the last: for `coset info`, with ops->probe telling whether it is usable. */
const coset_transport_ops *cst_transport_at(int i);
/* "threads, shm, ...": for error messages. */
void cst_transport_names(char *text, size_t bytes);
#endif
