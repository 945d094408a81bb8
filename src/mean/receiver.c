/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/receiver.h"

#include "base/error.h"
#include "codec/portable.h"
#include "codec/wide.h"
#include "mean/gather.h"
#include "mean/same.h"

typedef struct {
    const cst_receiver *r;
    uint32_t block;
    const cst_part *part;
    cst_block_id id;
    double a2;
} receiving;

static cst_checksum receive_modulo(const receiving *t, float *value)
{
    const cst_receiver *r = t->r;
    const cst_block *b = &r->shared->layout->blocks[t->block];
    uint8_t classes[CST_BLOCK_UNITS];
    cst_classes_read(t->part->classes, t->part->desc.class, b->n, classes);
    cst_lattice_block geometry = cst_block_geometry(r->tools, &t->id, t->part->desc);
    float scale = (float)(t->a2 * cst_vector_scale(r->vector, t->block, t->id.exponent));
    return cst_block_kernels(r->tools, t->part->desc.code)
        ->decode(&geometry, t->part->payload, classes, cst_vector_rotated(r->vector, t->block, value), scale, value,
                 NULL);
}

static bool receive_entropy(const receiving *t, cst_parts *frame, uint32_t index, float *value, cst_checksum *got)
{
    int32_t points[CST_BLOCK];
    if (!cst_parts_points(frame, t->r->tools->entropy, index, points))
        return false;
    cst_lattice_block geometry = cst_block_geometry(t->r->tools, &t->id, t->part->desc);
    *got = t->r->tools->z->reconstruct(&geometry, points, value);
    return true;
}

static bool receive_wide(const receiving *t)
{
    double x[CST_BLOCK];
    cst_vector_wide(t->r->vector, t->block, t->id.exponent, x);
    for (uint32_t i = 0; i < t->part->n; i++)
        x[i] *= t->a2;
    cst_checksum got = cst_wide_decode(t->r->tools, &t->id, t->part->desc, t->part->payload, x, x);
    if (!cst_checksum_equal(got, t->part->check))
        return false;
    cst_vector_store_wide(t->r->vector, t->block, x, t->id.exponent);
    return true;
}

static bool receive_exact(const receiving *t)
{
    if (t->part->desc.class == CST_CLASS_SAME) {
        if (!cst_checksum_equal(cst_same_check(t->r->vector, t->block), t->part->check))
            return false;
        cst_same_store(t->r->vector, t->block);
        return true;
    }
    size_t bytes = t->r->shared->layout->blocks[t->block].count * cst_exact_bytes(t->r->dtype, true);
    cst_checksum got = {{cst_bytes_hash(t->part->payload, bytes, 1), cst_bytes_hash(t->part->payload, bytes, 2)}};
    if (!cst_checksum_equal(got, t->part->check))
        return false;
    cst_vector_store_exact(t->r->vector, t->block, t->part->payload);
    return true;
}

static bool receive_block(const receiving *t, cst_parts *frame, uint32_t index)
{
    _Alignas(64) float value[CST_BLOCK];
    cst_checksum got = {{0}};
    bool good = true;
    switch (t->part->desc.code) {
    case CST_CODE_ABSENT: return true;
    case CST_CODE_EXACT: return receive_exact(t);
    case CST_CODE_WIDE: return receive_wide(t);
    case CST_CODE_ZERO: memset(value, 0, sizeof value); break;
    case CST_CODE_Z:
    case CST_CODE_E8: got = receive_modulo(t, value); break;
    case CST_CODE_ENTROPY: good = receive_entropy(t, frame, index, value, &got); break;
    default: return false;
    }
    if (!good || !cst_checksum_equal(got, t->part->check))
        return false;
    cst_vector_store(t->r->vector, t->block, value, t->part->desc.code == CST_CODE_ZERO ? 0 : t->id.exponent);
    return true;
}

coset_status cst_receive(const cst_receiver *r, int owner, cst_parts *frame, coset_error *why)
{
    uint32_t first = r->shared->first[owner];
    for (uint32_t i = 0; i < frame->header.blocks; i++) {
        const cst_block *b = &r->shared->layout->blocks[first + i];
        const cst_part *part = &frame->parts[i];
        receiving t = {
            r,
            first + i,
            part,
            {r->roots[b->span], b->index, (uint32_t)owner, CST_PHASE_DOWN, b->n, cst_step_unit(part->desc.step)},
            cst_reference_of_indices(&r->shared->options.rules, part->s2, part->r2)};
        if (!receive_block(&t, frame, i))
            return cst_fail(
                why, COSET_ERR_CORRUPT, owner,
                "block %u of rank %d's means contradicts its checksum: damaged on the way, or decoded wrongly",
                first + i, owner);
    }
    return COSET_OK;
}
