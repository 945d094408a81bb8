/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursive halving and doubling (Rabenseifner, "Optimization of collective reduction operations", 2004).
 *
 * The vector is cut into p chunks, p the largest power of two up to N. Halving: in step k a rank and the one whose
 * virtual rank differs in bit k hold partial sums of the same range; each keeps one half of it, sends the other half,
 * and adds what it receives (lower rank's operand first). After log2 p steps every rank holds one finished chunk.
 * Doubling takes the same steps backwards: the finished ranges are exchanged and grow until they are the vector.
 * The first halving exchange is the largest and goes to the nearest rank, which is often in the same host.
 *
 * For p = N a rank sends 2(N - 1)/N of the vector in 2 log2 N steps: as little as the ring in far fewer steps, but each
 * element is handled in pieces of shrinking size. Folding costs two more steps of a whole vector for some ranks.
 */
#ifndef CST_COLL_PATTERNS_RHD_H
#define CST_COLL_PATTERNS_RHD_H
#include "chunk.h"
#include "fold.h"

/* One halving exchange: chunks are numbers 0..p-1. Doubling, the same exchange backwards: sends keep, receives give. */
typedef struct {
    int partner;
    int keep_first; /* chunks [keep_first, keep_first + chunks) stay and are added to */
    int give_first; /* chunks [give_first, give_first + chunks) are sent */
    int chunks;
} cst_rhd_step;

static inline int cst_rhd_halvings(int n)
{
    return cst_log2_floor(n);
}
static inline int cst_rhd_steps(int n)
{
    return 2 * cst_rhd_halvings(n) + (cst_fold_pairs(n) > 0 ? 2 : 0);
}
/* Halving step k, 0 <= k < cst_rhd_halvings(n), of a rank whose virtual rank is not -1. */
static inline cst_rhd_step cst_rhd(int n, int rank, int k)
{
    int p = cst_pow2_floor(n), v = cst_fold_virtual(n, rank), first = 0;
    /* Bit j of v chose the lower or upper half in step j. */
    for (int j = 0; j < k; j++)
        first += (v >> j & 1) * (p >> (j + 1));
    int half = p >> (k + 1), upper = v >> k & 1;
    return (cst_rhd_step){cst_fold_real(n, v ^ (1 << k)), first + upper * half, first + !upper * half, half};
}
/* The chunk (of p) that the rank with virtual rank v >= 0 holds complete after halving: v's bits in reverse. */
static inline int cst_rhd_owned_chunk(int n, int rank)
{
    int v = cst_fold_virtual(n, rank), chunk = 0;
    for (int j = 0; j < cst_rhd_halvings(n); j++)
        chunk = chunk * 2 + (v >> j & 1);
    return chunk;
}
static inline size_t cst_rhd_sent(int n, int rank, size_t count)
{
    cst_fold_role role = cst_fold(n, rank);
    if (role == CST_FOLD_GIVES)
        return count;
    int p = cst_pow2_floor(n);
    size_t sent = role == CST_FOLD_TAKES ? count : 0;
    for (int k = 0; k < cst_rhd_halvings(n); k++) {
        cst_rhd_step s = cst_rhd(n, rank, k);
        sent += cst_range_size(cst_chunks(count, p, s.give_first, s.chunks));
        sent += cst_range_size(cst_chunks(count, p, s.keep_first, s.chunks));
    }
    return sent;
}
#endif
