/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank connected to every other: one control connection and `sockets` data connections per pair. */
#ifndef CST_TRANSPORT_TCP_MESH_H
#define CST_TRANSPORT_TCP_MESH_H
#include <coset_transport.h>

typedef struct {
    int size, sockets;
    int *control; /* [size], -1 for self */
    int *data;    /* [size * sockets] */
} cst_mesh_fds;

/* Collective, blocking. Data sockets are non-blocking. LATE or PEER naming the rank that does not connect or goes away,
 * MISMATCH, SYSTEM; on failure every rank fails. */
coset_status cst_mesh_connect(const coset_oob *oob, const coset_transport_config *config, int sockets,
                              cst_mesh_fds *out, coset_error *why);
/* Closes what is left (entries that others have taken are -1) and frees. */
void cst_mesh_fds_free(cst_mesh_fds *m);
#endif
