/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of include/coset_mean.h. */
#include "api/check.h"
#include "mean/carry.h"
#include "mean/internal.h"
#include "mean/public.h"

coset_status coset_mean_create(int rank, int size, const coset_mean_options *options, coset_mean **mean,
                               coset_error *why)
{
    return cst_mean_create(rank, size, options, mean, why);
}

void coset_mean_destroy(coset_mean *mean)
{
    cst_mean_destroy(mean);
}

coset_status coset_mean_begin(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                              coset_round **round)
{
    return mean && round ? cst_mean_begin(mean, spans, nspans, dtype, round) : COSET_ERR_ARGUMENT;
}

coset_status coset_mean_next(coset_round *round, coset_xfer *xfer)
{
    return round && xfer && xfer->struct_size >= sizeof(size_t) ? cst_mean_next(round, xfer) : COSET_ERR_ARGUMENT;
}

coset_status coset_mean_end(coset_round *round, coset_mean_report *report)
{
    return round ? cst_mean_end(round, report) : COSET_ERR_ARGUMENT;
}

coset_status coset_mean_last_error(const coset_mean *mean, coset_error *out)
{
    return mean && out ? cst_mean_last_error(mean, out) : COSET_ERR_ARGUMENT;
}

coset_status coset_mean_allreduce(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                                  coset_comm *comm, coset_mean_report *report)
{
    coset_status status = cst_check_comm(comm);
    if (status)
        return status;
    if (!mean || mean->rank != comm->rank || mean->size != comm->size)
        return cst_comm_note(comm, COSET_ERR_ARGUMENT,
                             "coset_mean_allreduce: the coset_mean is not of this rank and size");
    return cst_mean_allreduce(mean, spans, nspans, dtype, comm, report);
}

coset_status coset_mean_save(const coset_mean *mean, void *buf, size_t *bytes)
{
    return mean && bytes ? cst_mean_save(mean, buf, bytes) : COSET_ERR_ARGUMENT;
}

coset_status coset_mean_load(coset_mean *mean, const void *buf, size_t bytes)
{
    return mean && (buf || !bytes) ? cst_mean_load(mean, buf, bytes) : COSET_ERR_ARGUMENT;
}
