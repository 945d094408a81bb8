/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing another process's private memory (process_vm_readv and process_vm_writev). */
#ifndef CST_TRANSPORT_SHM_REACH_H
#define CST_TRANSPORT_SHM_REACH_H
#include "transport/shm/mesh.h"

typedef enum { CST_REACH_AUTO = 0, CST_REACH_CMA, CST_REACH_STAGED } cst_reach_method;
/* COSET_SHM_METHOD. ARGUMENT for a word that means nothing. */
coset_status cst_reach_method_from_env(cst_reach_method *method, coset_error *why);

/* Collective: can every rank read every other's memory? links[r].pid is rank r's process; *allowed the common answer.
 * The method is the same on all ranks. UNSUPPORTED with CST_REACH_CMA if not. */
coset_status cst_reach_agree(const coset_oob *oob, cst_reach_method method, const cst_link *links, int timeout_ms,
                             bool *allowed, coset_error *why);

typedef enum { CST_REACH_READ, CST_REACH_WRITE } cst_reach_way;
/* Copies between local pieces and remote ones of the same total, whatever the sizes. PEER: no such process any more.
 * UNSUPPORTED: not permitted. SYSTEM: the remote memory is not there, or anything else. */
coset_status cst_reach_copy(pid_t pid, cst_reach_way way, const struct iovec *local, int local_count,
                            const struct iovec *remote, int remote_count);
#endif
