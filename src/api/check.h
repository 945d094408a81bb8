/* SPDX-License-Identifier: Apache-2.0 */
/* Argument checks of the public calls. */
#ifndef CST_API_CHECK_H
#define CST_API_CHECK_H
#include "comm/comm.h"

/* Is `comm` one that this process may use now? Poison is looked at later, by who runs the operation. */
coset_status cst_check_comm(const coset_comm *comm);
/* Everything about a collective or pairwise call. On failure the text is kept as the communicator's last error and,
 * for a collective, the other ranks are told, so that none waits for this one. */
coset_status cst_check_call(coset_comm *comm, const cst_call *call);
#endif
