/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How parameters are put into buckets: pure arithmetic on sizes, the same on every rank.
 *
 * Parameters are taken in the order in which their gradients become ready (at first: the reverse of registration, as
 * backward goes). Each goes into the open bucket of its kind (dtype, exact or compressed); a bucket that has reached its
 * cap is closed. Without a list of caps, buckets shrink by halves towards the end: if backward takes twice as long as
 * communication, each has moved when the next is complete, and only the last one is exposed. Buckets are numbered in the
 * order in which they are complete, and started in that order on every rank.
 */
#ifndef CST_DDP_BUCKETS_H
#define CST_DDP_BUCKETS_H
#include <coset_ddp.h>

/* Gradients start on their own cache lines; what lies between is zero and stays zero. */
#define CST_GRAD_ALIGN ((size_t)64)

typedef struct {
    size_t bucket_bytes, first_bytes, last_bytes;
    const size_t *list; /* instead of the three: caps in turn, the last one repeated; NULL: none */
    size_t nlist;
} cst_bucket_caps;

typedef struct {
    coset_dtype dtype;
    int compressed;
    size_t offset, bytes; /* in the gradient memory */
    size_t first, count;  /* members[first .. first + count) */
} cst_bucket;

typedef struct {
    cst_bucket *bucket;
    size_t nbuckets;
    size_t *member;    /* parameter indices, bucket by bucket */
    size_t *offset;    /* of each parameter's gradient in the gradient memory */
    size_t *bucket_of; /* of each parameter */
    size_t bytes;      /* of the gradient memory */
} cst_buckets;

/* Is this parameter compressed, if the reducer compresses at all? */
int cst_param_compressible(const coset_param *p);
/* Lays out `params` taken in `order` (a permutation of their indices). MEMORY. Free with cst_buckets_free. */
coset_status cst_buckets_make(cst_buckets *b, const coset_param *params, size_t nparams, const size_t *order,
                              int compress, const cst_bucket_caps *caps);
void cst_buckets_free(cst_buckets *b);
#endif
