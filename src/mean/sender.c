/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/sender_state.h"

#include "codec/model.h"
#include "codec/portable.h"
#include "codec/wide.h"
#include "mean/same.h"

#include <math.h>
#include <stdlib.h>

coset_status cst_sender_init(cst_sender *s, const cst_tools *tools, const cst_shared *shared, const cst_vector *vector,
                             const cst_stream_root *roots, int rank)
{
    *s = (cst_sender){tools, shared, vector, roots, rank, NULL, NULL};
    s->gain = calloc(shared->ngroups ? shared->ngroups : 1, sizeof *s->gain);
    s->desc = calloc(shared->layout->nblocks ? shared->layout->nblocks : 1, sizeof *s->desc);
    if (!s->gain || !s->desc) {
        cst_sender_free(s);
        return COSET_ERR_MEMORY;
    }
    for (uint32_t g = 0; g < shared->ngroups; g++)
        s->gain[g] = cst_sender_gain(s, &shared->groups[g]);
    return COSET_OK;
}

void cst_sender_free(cst_sender *s)
{
    free(s->gain);
    free(s->desc);
    *s = (cst_sender){0};
}

cst_block_id cst_sender_block(const cst_sender *s, uint32_t block, uint32_t phase)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    return (cst_block_id){s->roots[b->span], b->index, (uint32_t)s->rank, phase, b->n, s->vector->own[block].exponent};
}

/* ---- payloads ---- */

static bool pack_modulo(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, d.class, sizeof classes);
    uint8_t *out = cst_packer_room(packer, cst_packed_bytes(classes, b->n / CST_UNIT));
    if (!out)
        return false;
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, d);
    _Alignas(64) float room[CST_BLOCK];
    cst_checksum sum = cst_block_kernels(s->tools, d.code)
                           ->encode(&geometry, cst_vector_rotated(s->vector, block, room), classes, out, NULL);
    cst_packer_set(packer, part, d, sum);
    return true;
}

static void pack_entropy(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    int32_t *points = cst_packer_points(packer);
    if (!points)
        return; /* cst_packer_flush says so */
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, d);
    _Alignas(64) float room[CST_BLOCK];
    const float *x = cst_vector_rotated(s->vector, block, room);
    cst_packer_entropy(packer, part, d, s->tools->z->quantise(&geometry, x, points), b->n);
}

cst_checksum cst_sender_wide(const cst_sender *s, uint32_t block, cst_block_desc d, int64_t *k)
{
    double x[CST_BLOCK];
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_vector_wide(s->vector, block, id.exponent, x);
    return cst_wide_quantise(s->tools, &id, d, x, k, NULL);
}

static bool pack_wide(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    uint8_t *out = cst_packer_room(packer, cst_block_bytes(d, b->n, b->count, 0));
    if (!out)
        return false;
    int64_t k[CST_BLOCK];
    cst_packer_set(packer, part, d, cst_sender_wide(s, block, d, k));
    cst_wide_pack(k, b->n, d.class, out);
    return true;
}

static bool pack_exact(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    size_t bytes = b->count * s->shared->options.element[0];
    uint8_t *out = cst_packer_room(packer, bytes);
    if (!out)
        return false;
    memcpy(out, cst_vector_elements(s->vector, block), bytes);
    cst_checksum sum = {{cst_bytes_hash(out, bytes, 1), cst_bytes_hash(out, bytes, 2)}};
    cst_packer_set(packer, part, (cst_block_desc){CST_CODE_EXACT, 0, 0}, sum);
    return true;
}

bool cst_sender_pack(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    switch (d.code) {
    case CST_CODE_ZERO: cst_packer_set(packer, part, d, (cst_checksum){{0}}); return true;
    case CST_CODE_EXACT:
        if (d.class != CST_CLASS_SAME)
            return pack_exact(s, block, packer, part);
        cst_packer_set(packer, part, d, cst_same_check(s->vector, block));
        return true;
    case CST_CODE_ENTROPY: pack_entropy(s, block, packer, part, d); return true;
    case CST_CODE_WIDE: return pack_wide(s, block, packer, part, d);
    default: return pack_modulo(s, block, packer, part, d);
    }
}

/* ---- rate control ---- */

/* What the entropy codes of a frame will take, in bits, with the steps as they are. */
static double entropy_bits(const cst_sender *s, uint32_t first, uint32_t end, double *coords, uint32_t *blocks)
{
    double bits = 0;
    *coords = 0;
    *blocks = 0;
    for (uint32_t b = first; b < end; b++) {
        if (s->desc[b].code != CST_CODE_ENTROPY)
            continue;
        const cst_block *block = &s->shared->layout->blocks[b];
        double step = cst_step_value(s->desc[b].step, s->vector->own[b].exponent);
        double share = (double)block->count / block->n * cst_rotation_energy(block->n);
        bits += block->n * cst_model_bits(s->vector->own[b].energy * share / (step * step));
        *coords += block->n;
        ++*blocks;
    }
    return bits;
}

/* The frame has an agreed size. If the entropy codes would not fit, all their steps grow a little (the owner makes up for
 * it in phase 2); by a tenth at most, beyond that blocks are left out. */
static void fit_steps(const cst_sender *s, uint32_t first, uint32_t end, size_t capacity)
{
    uint32_t blocks;
    double coords, bits = entropy_bits(s, first, end, &coords, &blocks);
    if (coords == 0)
        return;
    double room = (double)capacity - CST_FRAME_HEADER - (4 + CST_CHECK_BYTES) * (double)(end - first) -
                  cst_stream_overhead(blocks);
    for (uint32_t b = first; b < end; b++) {
        const cst_block *block = &s->shared->layout->blocks[b];
        room -= (double)cst_block_bytes(s->desc[b], block->n, block->count, s->shared->options.element[0]);
    }
    double over = (bits + 3 * sqrt(coords) - 8 * room) / coords;
    if (over <= 0 && s->shared->options.bits <= 0)
        return;
    double factor = cst_exp2(fmin(fmax(over, -0.14), 0.14)); /* bits that are given are used */
    for (uint32_t b = first; b < end; b++) {
        if (s->desc[b].code != CST_CODE_ENTROPY)
            continue;
        int unit = s->vector->own[b].exponent;
        s->desc[b] = cst_sender_entropy(s, b, cst_step_value(s->desc[b].step, unit) * factor);
    }
}

coset_status cst_sender_frame(const cst_sender *s, int owner, cst_packer *packer, const cst_frame_header *header,
                              uint8_t *frame, size_t capacity)
{
    uint32_t first = s->shared->first[owner], end = s->shared->first[owner + 1];
    cst_packer_begin(packer, frame, capacity, header, s->tools->entropy);
    for (uint32_t b = first; b < end; b++)
        s->desc[b] = cst_sender_choose(s, b, owner);
    fit_steps(s, first, end, capacity);
    size_t missing = 0;
    for (uint32_t b = first; b < end; b++) {
        cst_block_desc d = s->desc[b];
        const cst_block *layout = &s->shared->layout->blocks[b];
        if (!cst_sender_pack(s, b, packer, b - first, d))
            missing += cst_block_bytes(d, layout->n, layout->count, s->shared->options.element[0]);
    }
    if (!cst_packer_flush(packer))
        return COSET_ERR_MEMORY;
    /* Absent streams are built anew when asked for, perhaps cut differently: a stream's states more. */
    missing += packer->dropped + (packer->dropped ? 2 * CST_ENTROPY_STATES_BYTES + 64 : 0);
    packer->header.need_up = missing;
    return cst_packer_finish(packer) ? COSET_OK : COSET_ERR_MEMORY;
}
