/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes that add up: one byte per coordinate, summed by any engine that sums unsigned bytes with wrap-around.
 *
 * The colours of the ranks' points add up to the colour of the sum of the points, so every rank decodes that sum exactly,
 * against n a times its own vector, from one integer all-reduce (kernels/quantise/sum.h). All ranks use one step, chosen
 * from tracked statistics so that 256 colours reach; dithers A + u B are pairwise independent and their sum is cheap.
 *
 *     first call of a tensor   all-to-all, all-gather   a sketch (mean/sketch.h)
 *     codes    SUM u8          one byte per coordinate
 *     checks   SUM u64         per block: two checksums, how many ranks cannot code it, how many have it nonzero; agreement
 *     votes    SUM u64         per block: how many ranks could not decode it, and the squared distances from the mean
 *     points   SUM u32         whole integers of blocks that some rank could not decode, if there are any;
 *     votes    SUM u64         then the distances of these blocks
 *     exact    all-gather      elements of blocks that some rank could not code (NaN, Inf, out of range, unknown)
 *
 * The sums say the same to all ranks, so all take the same path.
 */
#include "base/error.h"
#include "codec/portable.h"
#include "mean/homomorphic_state.h"

#include <math.h>
#include <stdlib.h>

static coset_status sums_begin(coset_round *round)
{
    cst_sums_call *s = round->state = calloc(1, sizeof *s);
    if (!s)
        return COSET_ERR_MEMORY;
    s->blocks = calloc(round->layout.nblocks + 1, sizeof *s->blocks);
    if (!s->blocks)
        return COSET_ERR_MEMORY;
    return cst_sketch_init(&s->sketch, &round->layout, round->tensors, &round->vector, round->mean->rank,
                           round->mean->size);
}

static void sums_end(coset_round *round)
{
    cst_sums_call *s = cst_sums_of(round);
    cst_sketch_free(&s->sketch);
    void *pooled[] = {s->codes, s->code_sums, s->means};
    for (size_t i = 0; i < sizeof pooled / sizeof *pooled; i++)
        cst_pool_put(&round->mean->pool, pooled[i]);
    void *all[] = {s->buffers[0], s->buffers[1], s->blocks, s->words,        s->word_sums, s->points,
                   s->point_sums, s->elements,   s->votes,  s->all_elements, s->vote_sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s);
}

/* ---- sketches ---- */

static cst_frame_header header_of(const coset_round *round)
{
    return (cst_frame_header){.call = round->call, .agreement = round->agreement};
}

static coset_status sketch_buffers(cst_sums_call *s, size_t send, size_t recv)
{
    free(s->buffers[0]);
    s->buffers[0] = malloc(send);
    s->buffers[1] = malloc(recv);
    return s->buffers[0] && s->buffers[1] ? COSET_OK : COSET_ERR_MEMORY;
}

static coset_status send_sketches(coset_round *round, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    size_t n = (size_t)round->mean->size, bytes = s->sketch.up_bytes;
    if (sketch_buffers(s, n * bytes, n * bytes))
        return COSET_ERR_MEMORY;
    for (size_t j = 0; j < n; j++)
        cst_sketch_write(&s->sketch, (int)j, header_of(round), s->buffers[0] + j * bytes);
    s->at = CST_SUMS_AT_SKETCHES;
    return cst_hand_out(round, xfer, COSET_XFER_ALLTOALL, s->buffers[0], s->buffers[1], bytes, COSET_U8);
}

static coset_status send_statistics(coset_round *round, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    size_t bytes = s->sketch.down_bytes;
    uint8_t *sketches = s->buffers[1];
    s->buffers[1] = NULL;
    coset_status status = sketch_buffers(s, bytes, bytes * (size_t)round->mean->size);
    if (!status)
        status = cst_sketch_answer(&s->sketch, sketches, header_of(round), s->buffers[0], &round->mean->error);
    free(sketches);
    s->at = CST_SUMS_AT_STATISTICS;
    return status ? status
                  : cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->buffers[0], s->buffers[1], bytes, COSET_U8);
}

static coset_status take_statistics(coset_round *round)
{
    cst_sums_call *s = cst_sums_of(round);
    for (int j = 0; j < round->mean->size; j++) {
        coset_status status = cst_sketch_take(&s->sketch, j, s->buffers[1] + s->sketch.down_bytes * (size_t)j,
                                              header_of(round), &round->mean->error);
        if (status)
            return status;
    }
    cst_sketch_conclude(&s->sketch, true);
    return COSET_OK;
}

/* ---- codes, checks, votes ---- */

static const float zeros[CST_BLOCK];

static coset_status send_codes(coset_round *round, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    size_t words = 1 + (size_t)CST_SUMS_CHECK_WORDS * round->layout.nblocks;
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        cst_sums_plan(round, i);
    cst_pool *pool = &round->mean->pool;
    s->codes = cst_pool_get(pool, s->coded + 1);
    s->code_sums = cst_pool_get(pool, s->coded + 1);
    s->means = cst_pool_get(pool, s->coded * sizeof(float) + 64);
    s->words = calloc(words, sizeof *s->words);
    s->word_sums = calloc(words, sizeof *s->word_sums);
    if (!s->codes || !s->code_sums || !s->means || !s->words || !s->word_sums)
        return COSET_ERR_MEMORY;
    s->words[0] = round->agreement ^ round->call;
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        uint64_t *word = s->words + 1 + (size_t)CST_SUMS_CHECK_WORDS * i;
        bool can = cst_sums_codable(round, i);
        word[2] = (uint64_t)!can | (uint64_t)(round->vector.own[i].kind != CST_BLOCK_ZERO) << CST_SUMS_NONZERO_SHIFT;
        if (!s->blocks[i].coded)
            continue;
        cst_sum_block g = cst_sums_geometry(round, i, can ? cst_sums_own_unit(round, i) : s->blocks[i].unit);
        _Alignas(64) float room[CST_BLOCK];
        const float *x = can ? cst_vector_rotated(&round->vector, i, room) : zeros;
        cst_checksum check =
            cst_sums_kernels(round)->encode(&g, x, (uint32_t)round->mean->rank, s->codes + s->blocks[i].at, NULL);
        word[0] = check.sum[0];
        word[1] = check.sum[1];
    }
    s->at = CST_SUMS_AT_CODES;
    if (s->coded == 0) {
        s->at = CST_SUMS_AT_CHECKS;
        return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->words, s->word_sums, words * 8, COSET_U64);
    }
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->codes, s->code_sums, s->coded, COSET_U8);
}

static coset_status send_checks(coset_round *round, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    size_t words = 1 + (size_t)CST_SUMS_CHECK_WORDS * round->layout.nblocks;
    s->at = CST_SUMS_AT_CHECKS;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->words, s->word_sums, words * 8, COSET_U64);
}

static uint64_t decode_and_vote(coset_round *round, uint32_t index)
{
    cst_sums_call *s = cst_sums_of(round);
    cst_sums_block *k = &s->blocks[index];
    _Alignas(64) float room[CST_BLOCK], out[CST_BLOCK];
    float *mean = cst_sums_goes_out(round, index) ? out : s->means + k->at;
    const float *own = cst_vector_rotated(&round->vector, index, room);
    k->unresolved = !cst_sums_decode(round, index, own, mean);
    if (k->unresolved)
        return (uint64_t)1 << CST_SUMS_VOTE_SHIFT;
    uint64_t vote = cst_sums_vote(round, index, own, mean);
    if (mean == out)
        cst_vector_store(&round->vector, index, mean, k->unit);
    return vote;
}

static coset_status send_votes(coset_round *round, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    uint64_t n = (uint64_t)round->mean->size;
    if (s->word_sums[0] != n * (round->agreement ^ round->call))
        return cst_fail(
            &round->mean->error, COSET_ERR_MISMATCH, -1,
            "some rank has other options, tensors or statistics for this compressed mean: all ranks need the "
            "same, also after loading a saved state");
    s->votes = calloc(round->layout.nblocks, sizeof *s->votes);
    s->vote_sums = calloc(round->layout.nblocks, sizeof *s->vote_sums);
    if (!s->votes || !s->vote_sums)
        return COSET_ERR_MEMORY;
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        cst_sums_block *k = &s->blocks[i];
        uint64_t told = s->word_sums[1 + (size_t)CST_SUMS_CHECK_WORDS * i + 2], exact = told & UINT32_MAX;
        if (exact > n || told >> CST_SUMS_NONZERO_SHIFT > n)
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, -1, "the sums of the checks are damaged");
        k->exact = exact > 0;
        k->zero = k->coded && told == 0;
        if (k->exact || k->zero || !k->coded)
            continue;
        s->votes[i] = decode_and_vote(round, i);
    }
    s->at = CST_SUMS_AT_VOTES;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->votes, s->vote_sums, 8 * (size_t)round->layout.nblocks,
                        COSET_U64);
}

/* ---- the end ---- */

/* Who could not decode what; statistics for the next call. */
static coset_status take_votes(coset_round *round)
{
    cst_sums_call *s = cst_sums_of(round);
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        cst_sums_block *k = &s->blocks[i];
        const cst_block *b = &round->layout.blocks[i];
        uint64_t failed = s->vote_sums[i] >> CST_SUMS_VOTE_SHIFT;
        if (failed > (uint64_t)round->mean->size)
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, -1, "the sums of the votes are damaged");
        k->repair = failed > 0;
        if (k->zero)
            round->tensors[b->span]->stat[b->index] = (cst_block_stat){0, 0};
        else if (k->coded && !k->exact && !k->repair)
            cst_sums_note(round, i);
    }
    return COSET_OK;
}

static void store_all(coset_round *round)
{
    cst_sums_call *s = cst_sums_of(round);
    float zero[CST_BLOCK] = {0};
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        const cst_sums_block *k = &s->blocks[i];
        if (k->exact || (k->coded && !k->zero && !k->repair && cst_sums_goes_out(round, i)))
            continue;
        if (k->coded && !k->zero)
            cst_vector_store(&round->vector, i, s->means + k->at, k->unit);
        else
            cst_vector_store(&round->vector, i, zero, 0);
    }
}

static void conclude(coset_round *round)
{
    cst_sums_call *s = cst_sums_of(round);
    double coords = (double)round->layout.coords, spread = 0, energy = 0, error = 0;
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        const cst_block *b = &round->layout.blocks[i];
        cst_block_stat t = round->tensors[b->span]->stat[b->index];
        spread += b->count * cst_energy_value(t.s2, 0);
        energy += b->count * cst_energy_value(t.r2, 0);
        if (s->blocks[i].coded && !s->blocks[i].exact)
            error += b->count * cst_scale2(s->blocks[i].error, 2 * s->blocks[i].unit) / round->mean->size;
    }
    for (size_t i = 0; i < round->nspans; i++)
        round->tensors[i]->known |= round->tensors[i]->count > 0;
    round->report.spread2 = spread / coords;
    round->report.mean2 = energy / coords;
    round->report.predicted_excess = spread > 0 ? error / spread * round->mean->size : 0;
    round->report.repaired = s->repaired;
    round->report.corrected = s->corrected;
    round->report.exact = s->exact;
    store_all(round);
    s->at = CST_SUMS_AT_END;
}

static coset_status after_votes(coset_round *round, coset_xfer *xfer)
{
    size_t coords = cst_sums_repair_coords(round), bytes = cst_sums_exact_bytes(round);
    if (coords && !cst_sums_of(round)->points)
        return cst_sums_send_points(round, coords, xfer);
    if (bytes && !cst_sums_of(round)->elements)
        return cst_sums_send_exact(round, bytes, xfer);
    conclude(round);
    return COSET_OK;
}

static coset_status sums_next(coset_round *round, coset_xfer *xfer)
{
    cst_sums_call *s = cst_sums_of(round);
    coset_status status = COSET_OK;
    switch (s->at) {
    case CST_SUMS_AT_START: return s->sketch.up_bytes ? send_sketches(round, xfer) : send_codes(round, xfer);
    case CST_SUMS_AT_SKETCHES: return send_statistics(round, xfer);
    case CST_SUMS_AT_STATISTICS: status = take_statistics(round); return status ? status : send_codes(round, xfer);
    case CST_SUMS_AT_CODES: return send_checks(round, xfer);
    case CST_SUMS_AT_CHECKS: return send_votes(round, xfer);
    case CST_SUMS_AT_VOTES: status = take_votes(round); break;
    case CST_SUMS_AT_POINTS:
        status = cst_sums_take_points(round);
        return status ? status : cst_sums_send_more_votes(round, xfer);
    case CST_SUMS_AT_MORE_VOTES: cst_sums_take_more_votes(round); break;
    case CST_SUMS_AT_EXACT: status = cst_sums_take_exact(round); break;
    default: return COSET_OK;
    }
    return status ? status : after_votes(round, xfer);
}

static coset_status configure(coset_mean *mean, const coset_mean_options *o, coset_error *why)
{
    if (o->bits != 0 && o->bits != 8)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "the homomorphic protocol has 8 bits per coordinate, not %g",
                        o->bits);
    if (mean->size > 4096)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "the homomorphic protocol takes up to 4096 ranks");
    if (mean->plan.rules.may == CST_MAY_ENTROPY || mean->plan.exact)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "the homomorphic protocol has the codecs lattice, lattice:e8 and lattice:z");
    return COSET_OK;
}

const cst_protocol cst_homomorphic = {
    .name = "homomorphic",
    .segment = (size_t)1 << 18,
    .blocks = true,
    .configure = configure,
    .begin = sums_begin,
    .next = sums_next,
    .end = sums_end,
};
