/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying a compressed mean over coset's own collectives. */
#ifndef CST_MEAN_CARRY_H
#define CST_MEAN_CARRY_H
#include "comm/comm.h"

#include <coset_mean.h>

/* coset_mean_allreduce: see coset_mean.h. The arguments have been checked but for what cst_mean_begin checks. */
coset_status cst_mean_allreduce(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                                coset_comm *comm, coset_mean_report *report);
#endif
