/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/same.h"

#include "codec/portable.h"
#include "codec/wide.h"

#include <coset.h>

/* Elements as 32-bit words, in pieces that the keys cover. */
cst_checksum cst_same_check(const cst_vector *v, uint32_t block)
{
    enum { PIECE = CST_BLOCK * 4 };
    const uint8_t *at = cst_vector_elements(v, block);
    size_t left = v->layout->blocks[block].count * coset_dtype_size(v->dtype);
    cst_checksum all = {{0, 0}};
    for (size_t bytes; left > 0; left -= bytes, at += bytes) {
        bytes = left < PIECE ? left : PIECE;
        const int32_t *words = (const int32_t *)(const void *)at;
        _Alignas(64) int32_t padded[CST_BLOCK];
        size_t whole = (bytes + 63) / 64 * 64;
        if (whole != bytes || (uintptr_t)at % sizeof *words) {
            memset((uint8_t *)padded + bytes, 0, whole - bytes);
            words = memcpy(padded, at, bytes);
        }
        cst_checksum one = v->tools->checksum->points(words, (uint32_t)(whole / sizeof *words), v->tools->keys);
        for (int i = 0; i < 2; i++) /* pieces must not be exchanged unseen */
            all.sum[i] = all.sum[i] * 0xD6E8FEB86659FD93u + one.sum[i];
    }
    return all;
}

static cst_checksum wide_points(const cst_vector *v, uint32_t block, const cst_block_id *id, cst_block_desc d)
{
    double x[CST_BLOCK];
    int64_t k[CST_BLOCK];
    cst_vector_wide(v, block, id->exponent, x);
    return cst_wide_quantise(v->tools, id, d, x, k, NULL);
}

bool cst_same_points(const cst_vector *v, uint32_t block, const cst_block_id *id, const cst_part *part)
{
    uint8_t code = part->desc.code;
    if (v->own[block].kind != CST_BLOCK_USUAL)
        return false;
    if (code == CST_CODE_WIDE)
        return cst_checksum_equal(wide_points(v, block, id, part->desc), part->check);
    if (code != CST_CODE_Z && code != CST_CODE_E8 && code != CST_CODE_ENTROPY)
        return false;
    _Alignas(64) float room[CST_BLOCK];
    int32_t points[CST_BLOCK];
    cst_block_id own = *id;
    own.exponent = v->own[block].exponent;
    const float *x = cst_vector_rotated(v, block, room);
    cst_lattice_block geometry = cst_block_geometry(v->tools, &own, part->desc);
    return cst_checksum_equal(cst_block_kernels(v->tools, code)->quantise(&geometry, x, points), part->check);
}

void cst_same_store(const cst_vector *v, uint32_t block)
{
    const cst_block *b = &v->layout->blocks[block];
    size_t size = coset_dtype_size(v->dtype);
    uint8_t *out = (uint8_t *)v->spans[b->span].recv + b->offset * size;
    const uint8_t *in = cst_vector_elements(v, block);
    if (out != in)
        memcpy(out, in, b->count * size);
}
