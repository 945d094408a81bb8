/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering what f32 does not do: blocks coded in f64, and blocks of which some vectors came exactly. */
#include "base/error.h"
#include "codec/portable.h"
#include "codec/wide.h"
#include "mean/gather_state.h"
#include "mean/same.h"

#include <stdlib.h>

static bool room_for_doubles(cst_gathering *t)
{
    if (!t->g->w)
        t->g->w = malloc((size_t)t->l->shared->options.rules.ranks * CST_BLOCK * sizeof *t->g->w);
    return t->g->w != NULL;
}

/* A sender among others that are wide: its own code may be any. */
static coset_status decode_wide(cst_gathering *t, int sender, const double *sum, double *out)
{
    const cst_part *base = cst_gather_base(t, sender);
    const cst_heard *h = &t->heard[sender];
    if (base->desc.code != CST_CODE_WIDE) {
        /* sum as f32 is reference enough for a code that f32 could make */
        float narrow[CST_BLOCK];
        for (uint32_t i = 0; i < t->n; i++)
            t->g->sum[i] = (float)sum[i];
        coset_status status = cst_gather_decode(t, sender, narrow);
        for (uint32_t i = 0; i < t->n; i++)
            out[i] = narrow[i];
        return status;
    }
    cst_gather_note(t, sender, base->desc);
    t->g->base[sender] = t->g->step[sender];
    cst_block_id id = cst_gather_block(t, sender, CST_PHASE_UP);
    cst_checksum got;
    if (h->plain) {
        got = cst_wide_plain(t->l->tools, &id, base->desc, h->plain->payload, out);
    } else {
        double a = t->plan->r2 > 0 ? cst_reference_up(t->plan->s2, t->plan->r2, t->known) : 1;
        for (uint32_t i = 0; i < t->n; i++)
            out[i] = sum[i] * (a / t->known);
        got = cst_wide_decode(t->l->tools, &id, base->desc, base->payload, out, out);
    }
    bool good = cst_checksum_equal(got, base->check);
    if (!good && h->plain)
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "whole integers of rank %d contradict their checksum",
                        sender);
    if (!good)
        cst_gather_ask(t, sender, CST_ASK_PLAIN, 0);
    return COSET_OK;
}

coset_status cst_gather_wide(cst_gathering *t)
{
    const cst_listener *l = t->l;
    if (!room_for_doubles(t))
        return COSET_ERR_MEMORY;
    double *own = t->g->w + (size_t)l->rank * t->n, sum[CST_BLOCK];
    cst_vector_wide(l->vector, t->block, t->g->unit, own);
    memcpy(sum, own, t->n * sizeof *own);
    t->known = 1;
    for (int turn = 0, sender; (sender = cst_gather_turn(t, turn)) > -2; turn++) {
        if (sender < 0)
            continue;
        double *x = t->g->w + (size_t)sender * t->n;
        coset_status status = decode_wide(t, sender, sum, x);
        if (status)
            return status;
        cst_gather_turn_over(t, sender);
        if (t->asks[sender].ask)
            continue;
        for (uint32_t i = 0; i < t->n; i++)
            sum[i] += x[i];
        t->known++;
    }
    coset_status status = COSET_OK;
    int ranks = l->shared->options.rules.ranks;
    for (int u = 0; !status && t->known == ranks && u < ranks; u++)
        status = cst_gather_refine(t, u, NULL, t->g->w + (size_t)u * t->n);
    return status;
}

/* ---- original domain, where a block is exact ---- */

static void to_original(const cst_gathering *t, float *rotated, double *out)
{
    const cst_listener *l = t->l;
    uint32_t signs[CST_SIGN_WORDS];
    cst_block_signs(l->vector, t->block, signs);
    l->tools->hadamard->unrotate(rotated, rotated, t->n, signs, NULL, false);
    for (uint32_t i = 0; i < t->count; i++)
        out[i] = cst_scale2(rotated[i], t->g->unit);
}

/* A coded sender among exact ones, decoded against those known and brought to the original domain. */
static coset_status decode_to_original(cst_gathering *t, int sender, double *x)
{
    const cst_listener *l = t->l;
    coset_status status;
    if (cst_gather_base(t, sender)->desc.code == CST_CODE_WIDE) {
        double rotated[CST_BLOCK];
        for (uint32_t i = 0; i < t->n; i++)
            rotated[i] = t->g->sum[i];
        status = decode_wide(t, sender, rotated, rotated);
        uint32_t signs[CST_SIGN_WORDS];
        cst_block_signs(l->vector, t->block, signs);
        cst_unrotate_f64(rotated, t->n, signs);
        for (uint32_t i = 0; i < t->count; i++)
            x[i] = cst_scale2(rotated[i], t->g->unit);
        return status;
    }
    float rotated[CST_BLOCK] = {0};
    status = cst_gather_decode(t, sender, rotated);
    if (!status && !t->asks[sender].ask) {
        for (uint32_t i = 0; i < t->n; i++)
            t->g->sum[i] += rotated[i];
        t->known++;
    }
    to_original(t, rotated, x);
    return status;
}

static bool is_same(const cst_gathering *t, int sender)
{
    const cst_part *base = cst_gather_base(t, sender);
    return base->desc.code == CST_CODE_EXACT && base->desc.class == CST_CLASS_SAME;
}

static coset_status read_exact(cst_gathering *t, int sender, double *x)
{
    const cst_part *base = cst_gather_base(t, sender);
    if (is_same(t, sender)) {
        if (cst_checksum_equal(base->check, cst_same_check(t->l->vector, t->block)))
            cst_exact_read(t->l->dtype, cst_vector_elements(t->l->vector, t->block), t->count, x);
        else
            cst_gather_ask(t, sender, CST_ASK_RESEND, 0);
        return COSET_OK;
    }
    size_t bytes = t->count * cst_exact_bytes(t->l->dtype, false);
    cst_checksum got = {{cst_bytes_hash(base->payload, bytes, 1), cst_bytes_hash(base->payload, bytes, 2)}};
    if (!cst_checksum_equal(got, base->check))
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "an exact block of rank %d is damaged", sender);
    cst_exact_read(t->l->dtype, base->payload, t->count, x);
    return COSET_OK;
}

/* Have all senders what this rank has? */
static bool all_same(const cst_gathering *t)
{
    int ranks = t->l->shared->options.rules.ranks;
    for (int u = 0; u < ranks; u++)
        if (u != t->l->rank && !is_same(t, u))
            return false;
    cst_checksum own = cst_same_check(t->l->vector, t->block);
    for (int u = 0; u < ranks; u++)
        if (u != t->l->rank && !cst_checksum_equal(cst_gather_base(t, u)->check, own))
            return false;
    return true;
}

coset_status cst_gather_exact(cst_gathering *t)
{
    const cst_listener *l = t->l;
    t->g->same = all_same(t);
    if (t->g->same)
        return COSET_OK;
    if (!room_for_doubles(t))
        return COSET_ERR_MEMORY;
    cst_exact_read(l->dtype, cst_vector_elements(l->vector, t->block), t->count, t->g->w + (size_t)l->rank * t->count);
    cst_gather_own(t, t->g->sum); /* zeros if the own block is exact */
    t->known = 1;
    for (int turn = 0, sender; (sender = cst_gather_turn(t, turn)) > -2; turn++) {
        if (sender < 0)
            continue;
        double *x = t->g->w + (size_t)sender * t->count;
        bool is_exact = cst_gather_base(t, sender)->desc.code == CST_CODE_EXACT;
        coset_status status = is_exact ? read_exact(t, sender, x) : decode_to_original(t, sender, x);
        if (status)
            return status;
        cst_gather_turn_over(t, sender);
    }
    return COSET_OK;
}
