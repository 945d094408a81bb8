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
#include "base/alloc.h"
#include "base/error.h"
#include "codec/correct.h"
#include "codec/portable.h"
#include "kernels/quantise/sum.h"
#include "mean/gather.h"
#include "mean/internal.h"
#include "mean/sketch.h"

#include <math.h>
#include <stdlib.h>

typedef enum {
    AT_START,
    AT_SKETCHES,
    AT_STATISTICS,
    AT_CODES,
    AT_CHECKS,
    AT_VOTES,
    AT_POINTS,
    AT_MORE_VOTES,
    AT_EXACT,
    AT_END
} stage;

enum { COLOURS = 256, CHECK_WORDS = 3, NONZERO_SHIFT = 32, VOTE_SHIFT = 40, VOTE_SCALE = 64 };
static const double vote_limit = 0x1p26; /* of one rank's squared distance in votes: 2^14 ranks fit below the shift */

typedef struct {
    bool coded;      /* else: zero until somebody says otherwise */
    uint32_t step;   /* index; in the rotated domain */
    double a;        /* multiple of the own vector that is nearest to the mean */
    double error;    /* of one rank's code, per coordinate, in units of 2^(2 unit) */
    int unit;        /* of the mean and of errors: cst_step_unit */
    double energy;   /* of the mean: sum of squares of its rotated values */
    size_t at;       /* its first coordinate in codes and means */
    bool exact;      /* some rank cannot code it */
    bool zero;       /* coded, but all ranks have it zero */
    bool unresolved; /* this rank could not decode it */
    bool repair;     /* some rank could not */
} block_state;

typedef struct {
    stage at;
    cst_sketch sketch;
    uint8_t *buffers[2]; /* sketches: send, recv */
    block_state *blocks;
    size_t coded; /* coordinates of coded blocks */
    uint8_t *codes, *code_sums;
    uint64_t *words, *word_sums; /* checks, CHECK_WORDS per block after the first word */
    uint64_t *votes, *vote_sums; /* one per block */
    float *means;                /* rotated, of coded blocks */
    uint32_t *points, *point_sums;
    uint8_t *elements, *all_elements;
    uint64_t repaired, corrected, exact;
} sums;

static sums *state_of(const coset_round *round)
{
    return round->state;
}

static bool uses_z(const coset_round *round)
{
    return round->mean->plan.rules.may == CST_MAY_Z;
}

static uint8_t code_of(const coset_round *round)
{
    return uses_z(round) ? CST_CODE_Z : CST_CODE_E8;
}

static coset_status sums_begin(coset_round *round)
{
    sums *s = round->state = calloc(1, sizeof *s);
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
    sums *s = state_of(round);
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

static coset_status sketch_buffers(sums *s, size_t send, size_t recv)
{
    free(s->buffers[0]);
    s->buffers[0] = malloc(send);
    s->buffers[1] = malloc(recv);
    return s->buffers[0] && s->buffers[1] ? COSET_OK : COSET_ERR_MEMORY;
}

static coset_status send_sketches(coset_round *round, coset_xfer *xfer)
{
    sums *s = state_of(round);
    size_t n = (size_t)round->mean->size, bytes = s->sketch.up_bytes;
    if (sketch_buffers(s, n * bytes, n * bytes))
        return COSET_ERR_MEMORY;
    for (size_t j = 0; j < n; j++)
        cst_sketch_write(&s->sketch, (int)j, header_of(round), s->buffers[0] + j * bytes);
    s->at = AT_SKETCHES;
    return cst_hand_out(round, xfer, COSET_XFER_ALLTOALL, s->buffers[0], s->buffers[1], bytes, COSET_U8);
}

static coset_status send_statistics(coset_round *round, coset_xfer *xfer)
{
    sums *s = state_of(round);
    size_t bytes = s->sketch.down_bytes;
    uint8_t *sketches = s->buffers[1];
    s->buffers[1] = NULL;
    coset_status status = sketch_buffers(s, bytes, bytes * (size_t)round->mean->size);
    if (!status)
        status = cst_sketch_answer(&s->sketch, sketches, header_of(round), s->buffers[0], &round->mean->error);
    free(sketches);
    s->at = AT_STATISTICS;
    return status ? status
                  : cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->buffers[0], s->buffers[1], bytes, COSET_U8);
}

static coset_status take_statistics(coset_round *round)
{
    sums *s = state_of(round);
    for (int j = 0; j < round->mean->size; j++) {
        coset_status status = cst_sketch_take(&s->sketch, j, s->buffers[1] + s->sketch.down_bytes * (size_t)j,
                                              header_of(round), &round->mean->error);
        if (status)
            return status;
    }
    cst_sketch_conclude(&s->sketch, true);
    return COSET_OK;
}

/* ---- the plan: one step per block, from tracked statistics ---- */

/* With step h and C colours the reach is C h / root 2 (E8) or C h / 2 (Z); what must be reached has the variance
 * n^2 (R^2 + s^2/n)(1 - a) of the sum less n a x_v, and n times the code's own error. */
static double step_for(const cst_plan_rules *rules, uint8_t code, double s2, double r2, double a)
{
    const double reach_e8 = 4.9, reach_z = 4.4; /* as in plan.c: one block in 20 to correct at each receiver */
    double n = rules->ranks, v = n * n * (r2 + s2 / n) * (1 - a);
    double reach = code == CST_CODE_E8 ? reach_e8 * 1.4142135623730951 : 2 * reach_z;
    double square = COLOURS * COLOURS / (reach * reach) - n * cst_code_error(code, 1);
    double least = (r2 + s2) * 0x1p-32; /* squared: |x| / step stays below what the kernels take */
    return square > 0 ? sqrt(fmax(v / square, least)) : 0;
}

static void plan_block(coset_round *round, uint32_t index)
{
    sums *s = state_of(round);
    const cst_block *b = &round->layout.blocks[index];
    const cst_tensor *t = round->tensors[b->span];
    const cst_plan_rules *rules = &round->mean->plan.rules;
    block_state *k = &s->blocks[index];
    cst_block_stat stat = t->known ? t->stat[b->index] : (cst_block_stat){0, 0};
    if (stat.s2 == 0 && stat.r2 == 0)
        return;
    int unit = ((int)(stat.s2 > stat.r2 ? stat.s2 : stat.r2) - 32768) / 32;
    double share = (double)b->count / b->n, factor = cst_rotation_energy(b->n);
    double s2 = cst_energy_value(stat.s2, unit) * share, r2 = cst_energy_value(stat.r2, unit) * share;
    k->a = cst_reference_down(rules, s2, r2);
    double step = step_for(rules, code_of(round), s2, r2, k->a);
    if (!(step > 0))
        return;
    k->coded = true;
    k->step = cst_step_index(step * sqrt(factor), unit);
    k->unit = cst_step_unit(k->step);
    k->error = cst_code_error(code_of(round), cst_step_value(k->step, k->unit)) / factor;
    k->at = s->coded;
    s->coded += b->n;
}

static cst_sum_block geometry(const coset_round *round, uint32_t index, int unit)
{
    const cst_block *b = &round->layout.blocks[index];
    const block_state *k = &state_of(round)->blocks[index];
    cst_stream_root root = round->roots[b->span];
    return (cst_sum_block){
        .n = b->n,
        .step = (float)cst_step_value(k->step, unit),
        .dither = cst_stream_of(root, CST_USE_DITHER, CST_PHASE_SUM, CST_EVERY_SENDER, b->index),
        .slope = cst_stream_of(root, CST_USE_SLOPE, CST_PHASE_SUM, CST_EVERY_SENDER, b->index),
        .keys = round->mean->tools->keys,
    };
}

static const cst_sum_kernels *kernels_of(const coset_round *round)
{
    return uses_z(round) ? round->mean->tools->sum_z : round->mean->tools->sum_e8;
}

static int own_unit(const coset_round *round, uint32_t index)
{
    return round->vector.exponents[round->layout.blocks[index].span];
}

/* Can this rank code its block with that step? */
static bool codable(const coset_round *round, uint32_t index)
{
    const cst_block *b = &round->layout.blocks[index];
    const block_state *k = &state_of(round)->blocks[index];
    const cst_own_block *own = &round->vector.own[index];
    if (own->kind == CST_BLOCK_EXACT)
        return false;
    if (!k->coded)
        return own->kind == CST_BLOCK_ZERO;
    double step = cst_step_value(k->step, own_unit(round, index));
    if (!(step > 0x1p-120 && step < 0x1p120))
        return false;
    const double limit = 0.99 * CST_E8_LIMIT * step;
    if (sqrt(own->energy * b->count * cst_rotation_energy(b->n)) < limit) /* no coordinate is larger than the norm */
        return true;
    float room[CST_BLOCK];
    return round->mean->tools->norm->stats(cst_vector_rotated(&round->vector, index, room), b->n).max < limit;
}

static const float zeros[CST_BLOCK];

static coset_status send_codes(coset_round *round, coset_xfer *xfer)
{
    sums *s = state_of(round);
    size_t words = 1 + (size_t)CHECK_WORDS * round->layout.nblocks;
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        plan_block(round, i);
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
        uint64_t *word = s->words + 1 + (size_t)CHECK_WORDS * i;
        bool can = codable(round, i);
        word[2] = (uint64_t)!can | (uint64_t)(round->vector.own[i].kind != CST_BLOCK_ZERO) << NONZERO_SHIFT;
        if (!s->blocks[i].coded)
            continue;
        cst_sum_block g = geometry(round, i, can ? own_unit(round, i) : s->blocks[i].unit);
        _Alignas(64) float room[CST_BLOCK];
        const float *x = can ? cst_vector_rotated(&round->vector, i, room) : zeros;
        cst_checksum check =
            kernels_of(round)->encode(&g, x, (uint32_t)round->mean->rank, s->codes + s->blocks[i].at, NULL);
        word[0] = check.sum[0];
        word[1] = check.sum[1];
    }
    s->at = AT_CODES;
    if (s->coded == 0) {
        s->at = AT_CHECKS;
        return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->words, s->word_sums, words * 8, COSET_U64);
    }
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->codes, s->code_sums, s->coded, COSET_U8);
}

static coset_status send_checks(coset_round *round, coset_xfer *xfer)
{
    sums *s = state_of(round);
    size_t words = 1 + (size_t)CHECK_WORDS * round->layout.nblocks;
    s->at = AT_CHECKS;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->words, s->word_sums, words * 8, COSET_U64);
}

/* ---- decoding ---- */

/* The mean of a block against the own vector, into mean[n]. */
static bool decode(coset_round *round, uint32_t index, const float *own, float *mean)
{
    sums *s = state_of(round);
    const cst_tools *tools = round->mean->tools;
    const cst_block *b = &round->layout.blocks[index];
    block_state *k = &s->blocks[index];
    uint32_t n = (uint32_t)round->mean->size;
    const uint64_t *word = s->word_sums + 1 + (size_t)CHECK_WORDS * index;
    cst_checksum want = {{word[0], word[1]}};
    cst_sum_block g = geometry(round, index, k->unit);
    float scale = (float)cst_scale2(k->a, own_unit(round, index) - k->unit);
    int32_t points[CST_BLOCK];
    cst_checksum got = kernels_of(round)->decode(&g, s->code_sums + k->at, n, own, scale, mean, points);
    if (cst_checksum_equal(got, want))
        return true;
    /* in steps of the mean, which are n times finer, this is an ordinary decode modulo 256 */
    cst_lattice_block as_block = {.n = b->n, .step = g.step / (float)n, .weight = 1, .keys = g.keys};
    if (!cst_correct(tools, &as_block, code_of(round), COLOURS, own, scale, mean, got, want, points))
        return false;
    s->corrected++;
    return cst_checksum_equal(kernels_of(round)->reconstruct(&g, points, n, mean), want);
}

/* Squared distance of the own vector from the mean, per coordinate, over the code's error; and the energy of the mean. */
static uint64_t vote_of(coset_round *round, uint32_t index, const float *own, const float *mean)
{
    const cst_norm_kernels *norm = round->mean->tools->norm;
    const cst_block *b = &round->layout.blocks[index];
    block_state *k = &state_of(round)->blocks[index];
    float scale = (float)cst_scale2(1, own_unit(round, index) - k->unit);
    double distance2 = norm->distance2(own, scale, mean, b->n) / (cst_rotation_energy(b->n) * b->count);
    k->energy = norm->dot(mean, mean, b->n);
    return (uint64_t)fmin(distance2 / k->error * VOTE_SCALE, vote_limit);
}

/* Where a block's mean waits until all can decode it: the output, unless it lies over the input, which a repair needs. */
static bool goes_out_at_once(const coset_round *round, uint32_t index)
{
    const coset_span *span = &round->spans[round->layout.blocks[index].span];
    return span->send != span->recv;
}

static uint64_t decode_and_vote(coset_round *round, uint32_t index)
{
    sums *s = state_of(round);
    block_state *k = &s->blocks[index];
    _Alignas(64) float room[CST_BLOCK], out[CST_BLOCK];
    float *mean = goes_out_at_once(round, index) ? out : s->means + k->at;
    const float *own = cst_vector_rotated(&round->vector, index, room);
    k->unresolved = !decode(round, index, own, mean);
    if (k->unresolved)
        return (uint64_t)1 << VOTE_SHIFT;
    uint64_t vote = vote_of(round, index, own, mean);
    if (mean == out)
        cst_vector_store(&round->vector, index, mean, k->unit);
    return vote;
}

static coset_status send_votes(coset_round *round, coset_xfer *xfer)
{
    sums *s = state_of(round);
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
        block_state *k = &s->blocks[i];
        uint64_t told = s->word_sums[1 + (size_t)CHECK_WORDS * i + 2], exact = told & UINT32_MAX;
        if (exact > n || told >> NONZERO_SHIFT > n)
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, -1, "the sums of the checks are damaged");
        k->exact = exact > 0;
        k->zero = k->coded && told == 0;
        if (k->exact || k->zero || !k->coded)
            continue;
        s->votes[i] = decode_and_vote(round, i);
    }
    s->at = AT_VOTES;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->votes, s->vote_sums, 8 * (size_t)round->layout.nblocks,
                        COSET_U64);
}

/* ---- repairs ---- */

static size_t repair_coords(const coset_round *round)
{
    size_t coords = 0;
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        coords += state_of(round)->blocks[i].repair ? round->layout.blocks[i].n : 0;
    return coords;
}

static size_t exact_bytes(const coset_round *round)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        if (state_of(round)->blocks[i].exact)
            bytes += round->layout.blocks[i].count * coset_dtype_size(round->dtype);
    return bytes ? bytes + 16 : 0;
}

static coset_status send_points(coset_round *round, size_t coords, coset_xfer *xfer)
{
    sums *s = state_of(round);
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
        cst_sum_block g = geometry(round, i, own_unit(round, i));
        float room[CST_BLOCK];
        const float *x = cst_vector_rotated(&round->vector, i, room);
        kernels_of(round)->encode(&g, x, (uint32_t)round->mean->rank, codes, (int32_t *)to);
        to += b->n;
        s->repaired++;
    }
    s->at = AT_POINTS;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->points, s->point_sums, coords * sizeof *s->points,
                        COSET_U32);
}

static coset_status take_points(coset_round *round)
{
    sums *s = state_of(round);
    const uint32_t *from = s->point_sums;
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        const cst_block *b = &round->layout.blocks[i];
        const uint64_t *word = s->word_sums + 1 + (size_t)CHECK_WORDS * i;
        if (!s->blocks[i].repair)
            continue;
        cst_sum_block g = geometry(round, i, s->blocks[i].unit);
        cst_checksum got = kernels_of(round)->reconstruct(&g, (const int32_t *)from, (uint32_t)round->mean->size,
                                                          s->means + s->blocks[i].at);
        if (!cst_checksum_equal(got, (cst_checksum){{word[0], word[1]}}))
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, -1,
                            "block %u: whole integers contradict their checksum", i);
        from += b->n;
    }
    return COSET_OK;
}

static coset_status send_exact(coset_round *round, size_t bytes, coset_xfer *xfer)
{
    sums *s = state_of(round);
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
    s->at = AT_EXACT;
    return cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->elements, s->all_elements, bytes, COSET_U8);
}

/* The exact mean of a block in rank order; statistics from it where all is finite. */
static void average_exact(coset_round *round, uint32_t index, size_t at, size_t stride)
{
    sums *s = state_of(round);
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

static coset_status take_exact(coset_round *round)
{
    sums *s = state_of(round);
    size_t stride = exact_bytes(round), at = 16;
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

/* ---- the end ---- */

/* The spread of a block, from the sum of the ranks' votes. */
static void note_statistics(coset_round *round, uint32_t index)
{
    sums *s = state_of(round);
    const block_state *k = &s->blocks[index];
    const cst_block *b = &round->layout.blocks[index];
    int n = round->mean->size;
    double distances = (double)(s->vote_sums[index] & (((uint64_t)1 << VOTE_SHIFT) - 1)) / VOTE_SCALE;
    double s2 = fmax((distances - 1) / (n - 1), 0.01) * k->error, factor = cst_rotation_energy(b->n) * b->count;
    double r2 = fmax(k->energy / factor - s2 / n - k->error / n, 0);
    round->tensors[b->span]->stat[b->index] =
        (cst_block_stat){cst_energy_index(s2, k->unit), cst_energy_index(r2, k->unit)};
}

/* Who could not decode what; statistics for the next call. */
static coset_status take_votes(coset_round *round)
{
    sums *s = state_of(round);
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        block_state *k = &s->blocks[i];
        const cst_block *b = &round->layout.blocks[i];
        uint64_t failed = s->vote_sums[i] >> VOTE_SHIFT;
        if (failed > (uint64_t)round->mean->size)
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, -1, "the sums of the votes are damaged");
        k->repair = failed > 0;
        if (k->zero)
            round->tensors[b->span]->stat[b->index] = (cst_block_stat){0, 0};
        else if (k->coded && !k->exact && !k->repair)
            note_statistics(round, i);
    }
    return COSET_OK;
}

/* The blocks that were repaired have no votes yet. */
static coset_status send_more_votes(coset_round *round, coset_xfer *xfer)
{
    sums *s = state_of(round);
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        float room[CST_BLOCK];
        s->votes[i] = 0;
        if (s->blocks[i].repair)
            s->votes[i] = vote_of(round, i, cst_vector_rotated(&round->vector, i, room), s->means + s->blocks[i].at);
    }
    s->at = AT_MORE_VOTES;
    return cst_hand_out(round, xfer, COSET_XFER_SUM_WRAP, s->votes, s->vote_sums, 8 * (size_t)round->layout.nblocks,
                        COSET_U64);
}

static void take_more_votes(coset_round *round)
{
    for (uint32_t i = 0; i < round->layout.nblocks; i++)
        if (state_of(round)->blocks[i].repair)
            note_statistics(round, i);
}

static void store_all(coset_round *round)
{
    sums *s = state_of(round);
    float zero[CST_BLOCK] = {0};
    for (uint32_t i = 0; i < round->layout.nblocks; i++) {
        const block_state *k = &s->blocks[i];
        if (k->exact || (k->coded && !k->zero && !k->repair && goes_out_at_once(round, i)))
            continue;
        if (k->coded && !k->zero)
            cst_vector_store(&round->vector, i, s->means + k->at, k->unit);
        else
            cst_vector_store(&round->vector, i, zero, 0);
    }
}

static void conclude(coset_round *round)
{
    sums *s = state_of(round);
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
    s->at = AT_END;
}

static coset_status after_votes(coset_round *round, coset_xfer *xfer)
{
    size_t coords = repair_coords(round), bytes = exact_bytes(round);
    if (coords && !state_of(round)->points)
        return send_points(round, coords, xfer);
    if (bytes && !state_of(round)->elements)
        return send_exact(round, bytes, xfer);
    conclude(round);
    return COSET_OK;
}

static coset_status sums_next(coset_round *round, coset_xfer *xfer)
{
    sums *s = state_of(round);
    coset_status status = COSET_OK;
    switch (s->at) {
    case AT_START: return s->sketch.up_bytes ? send_sketches(round, xfer) : send_codes(round, xfer);
    case AT_SKETCHES: return send_statistics(round, xfer);
    case AT_STATISTICS: status = take_statistics(round); return status ? status : send_codes(round, xfer);
    case AT_CODES: return send_checks(round, xfer);
    case AT_CHECKS: return send_votes(round, xfer);
    case AT_VOTES: status = take_votes(round); break;
    case AT_POINTS: status = take_points(round); return status ? status : send_more_votes(round, xfer);
    case AT_MORE_VOTES: take_more_votes(round); break;
    case AT_EXACT: status = take_exact(round); break;
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
