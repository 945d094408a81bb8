/* SPDX-License-Identifier: Apache-2.0 */
/* Have all ranks registered the same parameters with the same options? */
#ifndef CST_DDP_SAME_H
#define CST_DDP_SAME_H
#include "ddp/params.h"

/* Options as numbers, in the order of the names that messages give them. */
enum {
    CST_SAME_BUCKET_BYTES,
    CST_SAME_FIRST_BYTES,
    CST_SAME_LAST_BYTES,
    CST_SAME_CAPS, /* a hash of the list; 0: none */
    CST_SAME_ALLOW_UNUSED,
    CST_SAME_KEEP_ORDER,
    CST_SAME_MEAN, /* 1: compressed */
    CST_SAME_OPTIONS
};

/* Collective, also for a rank whose own arguments are wrong (`wrong`: the text; else NULL): the others would wait for it.
 * MISMATCH on every rank, with the first difference from rank 0 and both values, or with what is wrong on which rank;
 * where `wrong` is given *why is left alone. Any other status: that of the collective. */
coset_status cst_ddp_same(const cst_params *p, const uint64_t options[CST_SAME_OPTIONS], const char *wrong,
                          coset_comm *comm, coset_error *why);
#endif
