/* SPDX-License-Identifier: Apache-2.0 */
/* The functions behind include/coset_mean.h, with its contracts; api/ gives them their public names. */
#ifndef CST_MEAN_PUBLIC_H
#define CST_MEAN_PUBLIC_H
#include <coset_mean.h>

coset_status cst_mean_create(int rank, int size, const coset_mean_options *options, coset_mean **mean,
                             coset_error *why);
void cst_mean_destroy(coset_mean *mean);
coset_status cst_mean_begin(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                            coset_round **round);
coset_status cst_mean_next(coset_round *round, coset_xfer *xfer);
coset_status cst_mean_end(coset_round *round, coset_mean_report *report);
coset_status cst_mean_last_error(const coset_mean *mean, coset_error *out);
coset_status cst_mean_save(const coset_mean *mean, void *buf, size_t *bytes);
coset_status cst_mean_load(coset_mean *mean, const void *buf, size_t bytes);
#endif
