/* SPDX-License-Identifier: Apache-2.0 */
/* Handing a descriptor from rank 0 to all others. */
#ifndef CST_TRANSPORT_SHM_SHARE_H
#define CST_TRANSPORT_SHM_SHARE_H
#include "transport/shm/mesh.h"

/* Collective, blocking. Rank 0 gives *fd, the descriptor of segment `number`; on the others *fd is set (theirs to
 * close, also when the call fails later). `mine` and `value` are agreed on first, as by cst_agree, and nothing is sent if
 * somebody failed. Other packets that arrive meanwhile go to `h`. */
coset_status cst_share(const coset_oob *oob, cst_mesh *mesh, const cst_mesh_handler *h, const char *what,
                       uint32_t number, coset_status mine, uint64_t value, int timeout_ms, int *fd, coset_error *why);
#endif
