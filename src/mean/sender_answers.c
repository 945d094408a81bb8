/* SPDX-License-Identifier: Apache-2.0 */
/* What owners ask a sender for: more digits of the same points, whole integers, residuals, what was absent. */
#include "codec/wide.h"
#include "mean/sender_state.h"

/* The points as they were sent. */
static cst_checksum points_again(const cst_sender *s, uint32_t block, cst_block_desc d, int32_t *points)
{
    float room[CST_BLOCK];
    const float *x = cst_vector_rotated(s->vector, block, room);
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, d);
    return cst_block_kernels(s->tools, d.code)->quantise(&geometry, x, points);
}

static bool answer_digits(const cst_sender *s, const cst_request *r, cst_block_desc d, cst_packer *packer,
                          uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[r->block];
    uint32_t q = (uint32_t)cst_classes[d.class].q, wide = q << r->arg;
    uint8_t *out = cst_packer_room(packer, cst_answer_bytes(r, d, b->n));
    if (!out)
        return false;
    int32_t points[CST_BLOCK];
    uint16_t digits[CST_BLOCK];
    cst_checksum sum = points_again(s, r->block, d, points);
    if (d.code == CST_CODE_E8)
        cst_colour_e8(points, b->n, wide, digits);
    else
        cst_colour_z(points, b->n, wide, digits);
    for (uint32_t i = 0; i < b->n; i++)
        digits[i] = (uint16_t)(digits[i] / q);
    cst_digits_pack(digits, b->n, 1u << r->arg, out);
    cst_packer_set(packer, part, (cst_block_desc){CST_CODE_PLAIN, r->arg, d.step}, sum);
    return true;
}

static bool answer_plain(const cst_sender *s, const cst_request *r, cst_block_desc d, cst_packer *packer, uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[r->block];
    uint8_t *out = cst_packer_room(packer, cst_answer_bytes(r, d, b->n));
    if (!out)
        return false;
    cst_checksum sum;
    if (d.code == CST_CODE_WIDE) {
        int64_t k[CST_BLOCK];
        sum = cst_sender_wide(s, r->block, d, k);
        cst_wide_plain_write(k, b->n, out);
    } else {
        int32_t points[CST_BLOCK];
        sum = points_again(s, r->block, d, points);
        cst_plain_write(points, b->n, out);
    }
    uint8_t class = d.code == CST_CODE_WIDE ? 64 : 32;
    cst_packer_set(packer, part, (cst_block_desc){CST_CODE_PLAIN, class, d.step}, sum);
    return true;
}

/* Units in which the residual fits f32: the vector's, but for a step that a louder neighbour has made far larger. */
static int residual_unit(const cst_sender *s, uint32_t block, cst_block_desc d)
{
    const int far = 100;
    int own = s->vector->own[block].exponent, step = (int)(d.step >> 10) - 2048;
    return step - own > far ? step : own;
}

/* The residual x - x^ as the owner will see it, in units of 2^exponent. */
static void residual(const cst_sender *s, uint32_t block, cst_block_desc d, int exponent, float *out)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    id.exponent = exponent;
    if (d.code == CST_CODE_WIDE) {
        double x[CST_BLOCK], value[CST_BLOCK];
        int64_t k[CST_BLOCK];
        cst_vector_wide(s->vector, block, id.exponent, x);
        cst_wide_quantise(s->tools, &id, d, x, k, value);
        for (uint32_t i = 0; i < b->n; i++)
            out[i] = (float)(x[i] - value[i]);
        return;
    }
    float x[CST_BLOCK], room[CST_BLOCK], scale = (float)cst_vector_scale(s->vector, block, exponent);
    const float *own = cst_vector_rotated(s->vector, block, room);
    int32_t points[CST_BLOCK];
    for (uint32_t i = 0; i < b->n; i++)
        x[i] = own[i] * scale;
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, d);
    cst_block_kernels(s->tools, d.code)->quantise_both(&geometry, x, 1, points, out);
    for (uint32_t i = 0; i < b->n; i++)
        out[i] = x[i] - out[i];
}

static bool answer_refine(const cst_sender *s, const cst_request *r, cst_block_desc d, cst_packer *packer,
                          uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[r->block];
    cst_block_desc finer = cst_refinement(d, r->arg);
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, finer.class, sizeof classes);
    uint8_t *out = cst_packer_room(packer, cst_answer_bytes(r, d, b->n));
    if (!out || finer.code != CST_CODE_Z)
        return false;
    float rest[CST_BLOCK];
    cst_block_id id = cst_sender_block(s, r->block, CST_PHASE_REFINE);
    id.exponent = residual_unit(s, r->block, d);
    residual(s, r->block, d, id.exponent, rest);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, finer);
    cst_packer_set(packer, part, finer, s->tools->z->encode(&geometry, rest, classes, out, NULL));
    return true;
}

coset_status cst_sender_answers(const cst_sender *s, const cst_request *requests, uint32_t nrequests,
                                cst_packer *packer, const cst_frame_header *header, uint8_t *frame, size_t capacity)
{
    cst_packer_begin(packer, frame, capacity, header, s->tools->entropy);
    uint32_t part = 0;
    for (uint32_t i = 0; i < nrequests; i++) {
        const cst_request *r = &requests[i];
        if (r->sender != s->rank && r->sender != CST_TO_ALL)
            continue;
        cst_block_desc d = s->desc[r->block];
        if (r->ask == CST_ASK_RESEND && header->round == CST_LAST_ROUND)
            s->desc[r->block] = d = (cst_block_desc){CST_CODE_EXACT, 0, 0}; /* a code might not be decoded */
        if (r->ask == CST_ASK_RESEND && d.code == CST_CODE_EXACT)
            s->desc[r->block].class = d.class = 0; /* not the same after all */
        bool lattice =
            d.code == CST_CODE_Z || d.code == CST_CODE_E8 || d.code == CST_CODE_ENTROPY || d.code == CST_CODE_WIDE;
        if (r->ask == CST_ASK_RESEND)
            cst_sender_pack(s, r->block, packer, part, d);
        else if (lattice && r->ask == CST_ASK_PLAIN)
            answer_plain(s, r, d, packer, part);
        else if (lattice && r->ask == CST_ASK_REFINE)
            answer_refine(s, r, d, packer, part);
        else if ((d.code == CST_CODE_Z || d.code == CST_CODE_E8) && r->ask == CST_ASK_DIGITS)
            answer_digits(s, r, d, packer, part);
        part++;
    }
    return cst_packer_finish(packer) ? COSET_OK : COSET_ERR_MEMORY;
}
