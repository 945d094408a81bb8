/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of one host find each other's sockets. */
#ifndef CST_TRANSPORT_SHM_MEET_H
#define CST_TRANSPORT_SHM_MEET_H
#include "transport/shm/mesh.h"

/* Collective, blocking: fills links[] but the own one. The descriptors are guarded against forks; on failure some
 * may be filled all the same. *mine: what this rank has to report already; a failure there makes all ranks fail (then
 * links may be NULL). What is returned is the same failure on all ranks, or OK; then *mine says how this rank's own
 * connections went, of which the others do not know yet. */
coset_status cst_meet(const coset_oob *oob, uint64_t job, int timeout_ms, cst_link *links, coset_status *mine,
                      coset_error *why);
#endif
