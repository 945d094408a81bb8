/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "mean/robust_state.h"

#include <stdlib.h>

bool cst_agreement_make(cst_agreement *a, const cst_whole *w, bool receives)
{
    a->open = malloc(w->pieces);
    a->checks = calloc(w->pieces, sizeof *a->checks);
    a->digits = receives ? calloc(w->n, sizeof *a->digits) : NULL;
    a->value = receives ? malloc(w->n * sizeof *a->value) : NULL;
    if (!a->open || !a->checks || (receives && (!a->digits || !a->value)))
        return false;
    memset(a->open, 1, w->pieces);
    a->nopen = w->pieces;
    return true;
}

void cst_agreement_free(cst_agreement *a)
{
    free(a->open);
    free(a->digits);
    free(a->checks);
    free(a->value);
    *a = (cst_agreement){0};
}

void cst_agreement_reset(cst_agreement *a, const cst_whole *w)
{
    memset(a->open, 1, w->pieces);
    a->nopen = w->pieces;
    a->bits = 0;
    if (a->digits)
        memset(a->digits, 0, w->n * sizeof *a->digits);
}

unsigned cst_agreement_next(const cst_robust_call *s, unsigned bits)
{
    if (bits == 0)
        return s->first_bits;
    return bits >= CST_ROBUST_MOST       ? CST_ROBUST_WHOLE - bits
           : 2 * bits <= CST_ROBUST_MOST ? bits
                                         : CST_ROBUST_MOST - bits;
}

size_t cst_agreement_bytes(const cst_robust_call *s, const cst_agreement *a)
{
    unsigned bits = cst_agreement_next(s, a->bits);
    size_t bytes = a->bits == 0 ? (size_t)CST_CHECK_BYTES * s->whole.pieces : 0;
    for (uint32_t p = 0; p < s->whole.pieces; p++)
        bytes += a->open[p] ? ((size_t)cst_piece_count(&s->whole, p) * bits + 7) / 8 : 0;
    return CST_BODY_AT + bytes;
}

static uint8_t *pack_bits(const int32_t *points, uint32_t count, unsigned low, unsigned bits, uint8_t *out)
{
    uint64_t pending = 0;
    unsigned used = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t digits = (uint32_t)points[i] >> low;
        pending |= (digits & (((uint64_t)1 << bits) - 1)) << used;
        for (used += bits; used >= 8; used -= 8, pending >>= 8)
            *out++ = (uint8_t)pending;
    }
    if (used)
        *out++ = (uint8_t)pending;
    return out;
}

static const uint8_t *unpack_bits(const uint8_t *in, uint32_t count, unsigned low, unsigned bits, uint32_t *digits)
{
    uint64_t pending = 0;
    unsigned have = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (; have < bits; have += 8)
            pending |= (uint64_t)*in++ << have;
        digits[i] |= (uint32_t)(pending & (((uint64_t)1 << bits) - 1)) << low;
        pending >>= bits;
        have -= bits;
    }
    return in;
}

void cst_agreement_write(const coset_round *round, const cst_agreement *a, int receiver, uint8_t *frame)
{
    const cst_robust_call *s = round->state;
    unsigned bits = cst_agreement_next(s, a->bits);
    uint8_t *to = frame + CST_BODY_AT;
    for (uint32_t p = 0; a->bits == 0 && p < s->whole.pieces; p++, to += CST_CHECK_BYTES)
        cst_check_write(to, s->checks[p]);
    for (uint32_t p = 0; p < s->whole.pieces; p++)
        if (a->open[p])
            to = pack_bits(s->points + (size_t)CST_BLOCK * p, cst_piece_count(&s->whole, p), a->bits, bits, to);
    size_t bytes = (size_t)(to - frame);
    cst_frame_header h = cst_header_of(round, CST_FRAME_COLOURS, s->pass, round->mean->rank, receiver);
    cst_body_seal(frame, &h, bytes, bytes);
}

static bool decode_piece(const cst_robust_call *s, cst_agreement *a, uint32_t p, int sender)
{
    size_t at = (size_t)CST_BLOCK * p;
    uint32_t count = cst_piece_count(&s->whole, p);
    if (a->bits <= CST_ROBUST_MOST) {
        uint16_t digits[CST_BLOCK];
        for (uint32_t i = 0; i < count; i++)
            digits[i] = (uint16_t)a->digits[at + i];
        return cst_piece_decode(&s->whole, p, digits, 1u << a->bits, a->checks[p], (uint32_t)sender, s->phase, s->step,
                                s->whole.own, a->value);
    }
    return cst_piece_whole(&s->whole, p, (const int32_t *)a->digits + at, a->checks[p], (uint32_t)sender, s->phase,
                           s->step, a->value);
}

coset_status cst_agreement_read(coset_round *round, cst_agreement *a, int sender, const uint8_t *frame)
{
    cst_robust_call *s = round->state;
    unsigned bits = cst_agreement_next(s, a->bits);
    size_t bytes = cst_agreement_bytes(s, a);
    cst_reader body;
    coset_status status = cst_colours_open(round, s->pass, sender, round->mean->rank, frame, bytes, &body);
    if (status)
        return status;
    if ((size_t)(body.end - body.at) != bytes - CST_BODY_AT)
        return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, sender, "a message of rank %d has another length",
                        sender);
    const uint8_t *from = body.at;
    for (uint32_t p = 0; a->bits == 0 && p < s->whole.pieces; p++, from += CST_CHECK_BYTES)
        a->checks[p] = cst_check_read(from);
    unsigned low = a->bits;
    a->bits += bits;
    a->nopen = 0;
    for (uint32_t p = 0; p < s->whole.pieces; p++) {
        if (!a->open[p])
            continue;
        from = unpack_bits(from, cst_piece_count(&s->whole, p), low, bits, a->digits + (size_t)CST_BLOCK * p);
        a->open[p] = !decode_piece(s, a, p, sender);
        a->nopen += a->open[p];
    }
    if (a->nopen && a->bits >= CST_ROBUST_WHOLE)
        return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, sender,
                        "whole integers of rank %d contradict their checksum", sender);
    round->report.repaired += a->nopen;
    return COSET_OK;
}
