/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a transport's table for what it has not: a descriptor to wait on, memory that others can reach. */
#ifndef CST_TRANSPORT_ABSENT_H
#define CST_TRANSPORT_ABSENT_H
#include "base/error.h"

#include <coset_transport.h>

static inline int cst_absent_fd(const coset_transport *transport)
{
    (void)transport;
    return -1;
}

static inline coset_status cst_absent_arm(coset_transport *transport)
{
    (void)transport;
    return COSET_ERR_UNSUPPORTED;
}

static inline void *cst_absent_control(const coset_transport *transport, int rank)
{
    (void)transport, (void)rank;
    return NULL;
}

static inline coset_status cst_absent_alloc(coset_transport *transport, const coset_oob *oob, size_t bytes, void **ptr,
                                            coset_error *why)
{
    (void)oob, (void)bytes, (void)ptr;
    return cst_fail(why, COSET_ERR_UNSUPPORTED, -1, "transport %s maps no memory", transport->ops->name);
}

static inline coset_status cst_absent_release(coset_transport *transport, const coset_oob *oob, void *ptr,
                                              coset_error *why)
{
    return cst_absent_alloc(transport, oob, 0, &ptr, why);
}

static inline coset_location cst_absent_locate(const coset_transport *transport, const void *ptr, size_t bytes)
{
    (void)transport, (void)ptr, (void)bytes;
    return (coset_location){COSET_LOC_NONE, 0, 0};
}

static inline void *cst_absent_map(coset_transport *transport, int peer, const coset_location *loc, size_t bytes)
{
    (void)transport, (void)peer, (void)loc, (void)bytes;
    return NULL;
}
#endif
