/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/agree.h"

#include "base/hash.h"

#include <stdint.h>
#include <stdlib.h>

/* Every word is combined by MAX. For "the first rank that ..." a rank says size - rank; zero is "not me". A hash goes with
 * its complement: the largest of both fit together only if all ranks have the same. */
enum { ACTIVE, MISUSED, LAYOUT, NOT_LAYOUT, HEAD };

static uint32_t first_rank_word(const coset_ddp *d, int yes)
{
    return yes ? (uint32_t)(coset_comm_size(d->comm) - coset_comm_rank(d->comm)) : 0;
}

static int first_rank(const coset_ddp *d, uint32_t word)
{
    return word ? coset_comm_size(d->comm) - (int)word : -1;
}

static uint32_t layout_hash(const coset_ddp *d)
{
    const cst_buckets *b = &d->layout;
    uint64_t hash =
        cst_hash64(b->nbuckets + ((uint64_t)d->rebuilt << 63), b->member, d->params.count * sizeof *b->member);
    return (uint32_t)cst_hash64(hash, b->bucket_of, d->params.count * sizeof *b->bucket_of);
}

coset_status cst_ddp_agree(coset_ddp *d, int joined, cst_agreement *out)
{
    size_t n = d->params.count, words = HEAD + 2 * n;
    uint32_t *w = calloc(words, sizeof *w);
    if (!w)
        return cst_ddp_fail(d, COSET_ERR_MEMORY, "no memory for %zu words", words);
    w[ACTIVE] = !joined;
    w[MISUSED] = first_rank_word(d, d->misuse != COSET_OK);
    w[LAYOUT] = layout_hash(d);
    w[NOT_LAYOUT] = ~w[LAYOUT];
    for (size_t i = 0; i < n; i++) {
        w[HEAD + i] = d->step.ready[i];
        w[HEAD + n + i] = first_rank_word(d, d->nonfinite[i]);
    }
    coset_status status = coset_allreduce(w, w, words, COSET_U32, COSET_MAX, d->comm);
    if (status == COSET_OK) {
        *out = (cst_agreement){.active = (int)w[ACTIVE],
                               .misused_rank = first_rank(d, w[MISUSED]),
                               .same_layout = w[LAYOUT] == ~w[NOT_LAYOUT],
                               .unused = CST_NO_PARAM};
        for (size_t i = n; i-- > 0;) {
            d->culprit[i] = first_rank(d, w[HEAD + n + i]);
            if (!w[HEAD + i]) {
                out->unused = i;
                out->unused_count++;
            }
        }
    }
    free(w);
    return status;
}

coset_status cst_ddp_agree_order(coset_ddp *d, size_t *order)
{
    size_t n = d->params.count;
    uint64_t *wire = calloc(n, sizeof *wire);
    unsigned char *seen = calloc(n, 1);
    coset_status status = wire && seen ? COSET_OK : COSET_ERR_MEMORY;
    if (status == COSET_OK) {
        size_t k = 0;
        for (; k < d->step.nready; k++)
            wire[k] = d->step.order[k];
        for (size_t i = n; i-- > 0;) /* never ready (all, on a rank without batches): as backward goes */
            if (!d->step.ready[i])
                wire[k++] = i;
        status = coset_broadcast(wire, wire, n, COSET_U64, 0, d->comm);
    }
    for (size_t k = 0; k < n && status == COSET_OK; k++) {
        if (wire[k] >= n || seen[wire[k]])
            status = COSET_ERR_CORRUPT;
        else
            seen[wire[k]] = 1;
        order[k] = wire[k];
    }
    free(wire);
    free(seen);
    return status;
}
