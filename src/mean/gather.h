/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phase 1, an owner's side: what the senders of a block have told so far, decoded.
 *
 * Senders are decoded in order of position, each against the average of the owner's own vector and of those decoded
 * before it. What cannot be decoded becomes a question for the next round; everything heard is kept until the call ends,
 * and a block that waits is decoded again from it, in the order in which its senders could be decoded: so each meets the
 * reference that it met before.
 */
#ifndef CST_MEAN_GATHER_H
#define CST_MEAN_GATHER_H
#include "codec/parts.h"
#include "mean/shared.h"
#include "mean/vector.h"

/* What one sender has told about one block. */
typedef struct {
    cst_parts *frame; /* where the base code is */
    uint32_t part;
    const cst_part *digits, *plain, *refine; /* answers; NULL: not asked, or not come */
    uint16_t order;                          /* it was decoded as the order-th; 0: not yet */
} cst_heard;

typedef struct {
    const cst_tools *tools;
    const cst_shared *shared;
    const cst_vector *vector;
    const cst_stream_root *roots; /* per span */
    int rank;
    coset_dtype dtype;
    bool last_asks;   /* questions of this round are the last: their answers must do */
    cst_heard *heard; /* [block - first][sender] */
} cst_listener;

/* A block of all senders. Arrays have one entry per rank; the own entry is this rank's exact vector. */
typedef struct {
    uint32_t block;
    bool complete, wide, exact;
    bool same;         /* exact, and all ranks have it alike: there is nothing but the own block */
    bool kept;         /* x is there */
    int unit;          /* values are in units of 2^unit */
    float *memory;     /* of x, and of what is needed on the way */
    float **x;         /* [rank]: n rotated values of the others; not if wide or exact, and only if kept */
    double *w;         /* [rank][n]: rotated (wide), or [rank][count]: original (exact) */
    double *error;     /* per rank: squared error per coordinate of its vector (original domain) */
    double *step;      /* per rank: of its code, or of its refinement; 0: exact */
    double *base;      /* per rank: step of its code, whether refined or not */
    uint8_t *code;     /* per rank: CST_CODE_E8 or another: what shape its error has */
    float *sum;        /* [n], not if wide or exact; */
    double sum_energy; /* its sum of squares, */
    double spread;     /* and the sum over ranks of the squared distance from the mean */
    uint32_t corrected;
} cst_gathered;

/* Memory for vectors and sum: floats needed for one block, and what blocks share. */
static inline size_t cst_gathered_floats(int ranks)
{
    return (size_t)ranks * CST_BLOCK;
}
enum { CST_GATHERED_SHARED = 2 * CST_BLOCK };
/* `w` is allocated when needed, and kept. */
coset_status cst_gathered_init(cst_gathered *g, int ranks, float *floats, float *shared);
void cst_gathered_free(cst_gathered *g);

/* Decodes what is there. Without `keep` the others' vectors themselves are not kept where their sum will do: all of them then
 * stay in the caches. For each sender that cannot be decoded, asks[sender] is the question (ask 0: none) and
 * g->complete is false. CORRUPT: whole integers that contradict their checksum; MEMORY. */
coset_status cst_gather(const cst_listener *l, uint32_t block, uint32_t first, bool keep, cst_gathered *g,
                        cst_request *asks, coset_error *why);
/* Are the senders' points those that the own block would have made in their place? */
bool cst_gather_own_points(const cst_listener *l, uint32_t first, const cst_gathered *g);
/* The unit in which a block with this step is reconstructed: 0 unless the step is far from 1. */
int cst_step_unit(uint32_t step);
#endif
