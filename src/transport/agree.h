/* SPDX-License-Identifier: Apache-2.0 */
/* A collective step that every rank either completes or does not. */
#ifndef CST_TRANSPORT_AGREE_H
#define CST_TRANSPORT_AGREE_H
#include <coset_transport.h>

/* Exchanges the outcome of the own part of `what` and a value that must be equal on all ranks. OK if every rank has OK
 * and the same value. Else: the own status if that is no OK (*why is left as it is), the first failing rank's status,
 * or MISMATCH; *why names the rank. */
coset_status cst_agree(const coset_oob *oob, const char *what, coset_status mine, uint64_t value, int timeout_ms,
                       coset_error *why);
#endif
