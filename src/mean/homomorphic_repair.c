/* SPDX-License-Identifier: Apache-2.0 */
/* Codes that add up, where that was not enough: whole integers of blocks that some rank could not decode, elements of those
 * that some rank could not code. */
#include "base/error.h"
#include "mean/homomorphic_state.h"

#include <math.h>
#include <stdlib.h>

size_t cst_sums_repair_coords(const coset_round *round)
{
    size_t coords = 0;
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        coords += cst_sums_of(round)->blocks[i].repair ? round->layout.blocks[i].n : 0;
    return coords;
}

size_t cst_sums_exact_bytes(const coset_round *round)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        if (cst_sums_of(round)->blocks[i].exact)
            bytes += round->layout.blocks[i].count * coset_dtype_size(round->dtype);
    return bytes ? bytes + 16 : 0;
}

coset_status cst_sums_send_points(coset_round *round, size_t coords, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    s->points = malloc(coords * sizeof *s->points);
    s->point_sums = malloc(coords * sizeof *s->point_sums);
    uint8_t codes[CST_BLOCK];
    if (!s->points || !s->point_sums)
        return COSET_ERR_MEMORY;
    uint32_t *to = s->points;
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        const cst_block *b = &round->layout.blocks[i];
        if (!s->blocks[i].repair)
            continue;
        cst_sum_block g = cst_sums_geometry(round, i, cst_sums_own_unit(round, i));
        float room[CST_BLOCK];
        const float *x = cst_vector_rotated(&round->vector, i, room);
        cst_sums_kernels(round)->encode(&g, x, (uint32_t)round->mean->rank, codes, (int32_t *)to);
        to += b->n;
        s->repaired++;
    }
    s->at = CST_SUMS_AT_POINTS;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->points, s->point_sums, coords * sizeof *s->points,
                        COSET_U32);
}

coset_status cst_sums_take_points(coset_round *round)
{
    cst_sums_call *s = cst_sums_of(round);
    const uint32_t *from = s->point_sums;
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        const cst_block *b = &round->layout.blocks[i];
        const uint64_t *word = s->word_sums + 1 + (size_t)CST_SUMS_CHECK_WORDS * i;
        if (!s->blocks[i].repair)
            continue;
        cst_sum_block g = cst_sums_geometry(round, i, s->blocks[i].unit);
        cst_checksum got = cst_sums_kernels(round)->reconstruct(&g, (const int32_t *)from, (uint32_t)round->mean->size,
                                                                s->means + s->blocks[i].at);
        if (!cst_checksum_equal(got, (cst_checksum){{word[0], word[1]}}))
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, -1,
                            "block %u: whole integers contradict their checksum", i);
        from += b->n;
    }
    return COSET_OK;
}

coset_status cst_sums_send_more_votes(coset_round *round, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        float room[CST_BLOCK];
        s->votes[i] = 0;
        if (s->blocks[i].repair)
            s->votes[i] =
                cst_sums_vote(round, i, cst_vector_rotated(&round->vector, i, room), s->means + s->blocks[i].at);
    }
    s->at = CST_SUMS_AT_MORE_VOTES;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->votes, s->vote_sums, 8 * (size_t)round->layout.nblocks,
                        COSET_U64);
}

void cst_sums_take_more_votes(coset_round *round)
{
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        if (cst_sums_of(round)->blocks[i].repair)
            cst_sums_note(round, i);
}

coset_status cst_sums_send_exact(coset_round *round, size_t bytes, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    s->elements = calloc(bytes, 1);
    s->all_elements = calloc(bytes, (size_t)round->mean->size);
    if (!s->elements || !s->all_elements)
        return COSET_ERR_MEMORY;
    uint8_t *to = s->elements + 16;
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        size_t one = round->layout.blocks[i].count * coset_dtype_size(round->dtype);
        if (!s->blocks[i].exact)
            continue;
        memcpy(to, cst_vector_elements(&round->vector, i), one);
        to += one;
    }
    cst_frame_header h = {.kind = CST_FRAME_VECTOR,
                          .sender = (uint16_t)round->mean->rank,
                          .receiver = CST_TO_ALL,
                          .call = round->call,
                          .agreement = round->agreement};
    cst_brief_seal(s->elements, &h, bytes);
    s->at = CST_SUMS_AT_EXACT;
    return cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->elements, s->all_elements, bytes, COSET_U8);
}

/* The exact mean of a block in rank order; statistics from it where all is finite. */
static void average_exact(coset_round *round, uint32_t index, size_t at, size_t stride)
{
    cst_sums_call *s = cst_sums_of(round);
    const cst_block *b = &round->layout.blocks[index];
    int n = round->mean->size;
    double mean[CST_BLOCK] = {0}, squares = 0, energy = 0, x[CST_BLOCK];
    for (int u = 0; u < n; u++) {
        cst_exact_read(round->dtype, s->all_elements + stride * (size_t)u + at, b->count, x);
        for (uint32_t i = 0; i < b->count; i++) {
            mean[i] += x[i] / n;
            squares += x[i] * x[i];
        }
    }
    uint8_t out[8 * CST_BLOCK];
    cst_exact_write(round->dtype, mean, b->count, out);
    cst_vector_store_exact(&round->vector, index, out);
    for (uint32_t i = 0; i < b->count; i++)
        energy += mean[i] * mean[i];
    double s2 = (squares - n * energy) / ((n - 1.0) * b->count), r2 = energy / b->count - s2 / n;
    if (isfinite(s2) && isfinite(r2))
        round->tensors[b->span]->stat[b->index] =
            (cst_block_stat){cst_energy_index(fmax(s2, 0), 0), cst_energy_index(fmax(r2, 0), 0)};
}

coset_status cst_sums_take_exact(coset_round *round)
{
    cst_sums_call *s = cst_sums_of(round);
    size_t stride = cst_sums_exact_bytes(round), at = 16;
    for (int u = 0; u < round->mean->size; u++) {
        cst_reader body;
        cst_frame_header want = {.kind = CST_FRAME_VECTOR,
                                 .sender = (uint16_t)u,
                                 .receiver = CST_TO_ALL,
                                 .call = round->call,
                                 .agreement = round->agreement};
        coset_status status =
            cst_brief_open(s->all_elements + stride * (size_t)u, stride, &want, &body, &round->mean->error);
        if (status)
            return status;
    }
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        if (!s->blocks[i].exact)
            continue;
        average_exact(round, i, at, stride);
        at += round->layout.blocks[i].count * coset_dtype_size(round->dtype);
        s->exact++;
    }
    return COSET_OK;
}
