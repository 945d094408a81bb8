/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that all ranks of a communicator share from its creation: everybody's control area and channel area. */
#ifndef CST_TRANSPORT_SHM_HOST_H
#define CST_TRANSPORT_SHM_HOST_H
#include "transport/channel/layout.h"
#include "transport/shm/mesh.h"

typedef struct {
    int size;
    cst_layout layout;
    size_t control_bytes; /* rounded up to pages */
    size_t stride;        /* from one rank's areas to the next */
    char *base;
} cst_host;

/* Collective. MISMATCH if the ranks ask for different control sizes. */
coset_status cst_host_open(const coset_oob *oob, cst_mesh *mesh, const cst_mesh_handler *handler, size_t control_bytes,
                           int timeout_ms, cst_host *h, coset_error *why);
void cst_host_close(cst_host *h);

static inline char *cst_host_control(const cst_host *h, int rank)
{
    return h->base + (size_t)rank * h->stride;
}
static inline char *cst_host_area(const cst_host *h, int rank)
{
    return cst_host_control(h, rank) + h->control_bytes;
}
#endif
