/* SPDX-License-Identifier: Apache-2.0 */
/* What the frames of others say, checked: that they are the ones that must come now, that codes are such as may be used,
 * answers what was asked for, and requests make sense. */
#include "base/error.h"
#include "mean/star_state.h"

#include <stdlib.h>

/* Opens a frame that came from `sender`, and checks that it is the one that must come now. */
static coset_status open_frame(const coset_round *round, const uint8_t *frame, size_t bytes, cst_frame_header want,
                               cst_frame_header *h)
{
    coset_error *why = &round->mean->error;
    coset_status status = cst_frame_open(frame, bytes, h, why);
    if (status)
        why->peer = want.sender;
    return status ? status : cst_frame_expect(h, &want, why);
}

/* Requests in a DOWN frame, checked. *out is malloc'ed. */
coset_status cst_star_requests(const coset_round *round, const cst_parts *frame, int owner, cst_request **out)
{
    const cst_star_call *s = cst_star_of(round);
    uint32_t count = frame->header.requests;
    *out = malloc((count ? count : 1) * sizeof **out);
    if (!*out)
        return COSET_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        cst_request *r = &(*out)[i];
        bool good = cst_request_read(frame->requests + (size_t)CST_REQUEST_BYTES * i, r);
        good = good && r->block >= s->shared.first[owner] && r->block < s->shared.first[owner + 1];
        good = good && (r->sender == CST_TO_ALL || r->sender < round->mean->size);
        good = good && r->arg <= (r->ask == CST_ASK_DIGITS ? 14 : 60);
        if (!good) {
            free(*out);
            *out = NULL;
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, owner, "a request of rank %d makes no sense",
                            owner);
        }
    }
    return COSET_OK;
}

uint32_t cst_star_answers_of(const cst_request *requests, uint32_t n, int sender)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += requests[i].sender == CST_TO_ALL || requests[i].sender == sender;
    return count;
}

/* Sizes of the parts of an UP frame: the blocks owned here, or in later rounds those asked for. */
static cst_part_size *sizes_of_up(const coset_round *round, int sender, uint32_t *parts)
{
    const cst_star_call *s = cst_star_of(round);
    uint32_t first = s->owner.first, count = s->owner.end - first;
    *parts = s->round == 0 ? count : cst_star_answers_of(s->asked, s->nasked, sender);
    cst_part_size *sizes = malloc((*parts ? *parts : 1) * sizeof *sizes);
    uint32_t k = 0;
    for (uint32_t i = 0; sizes && i < (s->round == 0 ? count : s->nasked); i++) {
        uint32_t block = s->round == 0 ? first + i : s->asked[i].block;
        const cst_block *b = &round->layout.blocks[block];
        if (s->round == 0 || s->asked[i].sender == CST_TO_ALL || s->asked[i].sender == sender)
            sizes[k++] = (cst_part_size){b->n, b->count};
    }
    return sizes;
}

/* A base code must be one that a sender may use; an answer must be what was asked for. */
static bool answers_fit(const cst_star_call *s, cst_parts *frame, int sender, int ranks)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < s->nasked; i++) {
        const cst_request *r = &s->asked[i];
        if (r->sender != CST_TO_ALL && r->sender != sender)
            continue;
        cst_heard *h = &s->heard[(size_t)(r->block - s->owner.first) * (size_t)ranks + (size_t)sender];
        const cst_part *base = &h->frame->parts[h->part], *part = &frame->parts[k];
        uint8_t code = part->desc.code;
        if (r->ask == CST_ASK_RESEND) {
            if (code == CST_CODE_PLAIN || code == CST_CODE_ABSENT)
                return false;
            if (code == CST_CODE_EXACT && part->desc.class == CST_CLASS_SAME)
                return false;
            h->frame = frame;
            h->part = k;
        } else if (r->ask == CST_ASK_REFINE) {
            bool lattice = base->desc.code == CST_CODE_Z || base->desc.code == CST_CODE_E8 ||
                           base->desc.code == CST_CODE_ENTROPY || base->desc.code == CST_CODE_WIDE;
            if (code != (lattice ? CST_CODE_Z : CST_CODE_ABSENT))
                return false;
            h->refine = lattice ? part : NULL;
        } else {
            unsigned want = r->ask == CST_ASK_DIGITS ? r->arg : base->desc.code == CST_CODE_WIDE ? 64 : 32;
            if (code != CST_CODE_PLAIN || part->desc.class != want)
                return false;
            *(r->ask == CST_ASK_DIGITS ? &h->digits : &h->plain) = part;
        }
        k++;
    }
    return true;
}

static bool base_codes_fit(const cst_star_call *s, cst_parts *frame, int sender, int ranks)
{
    for (uint32_t i = 0; i < frame->header.blocks; i++) {
        if (frame->parts[i].desc.code == CST_CODE_PLAIN)
            return false;
        s->heard[(size_t)i * (size_t)ranks + (size_t)sender] = (cst_heard){.frame = frame, .part = i};
    }
    return true;
}

coset_status cst_star_hear(coset_round *round, int sender, size_t *declared)
{
    cst_star_call *s = cst_star_of(round);
    cst_star_buffers *b = &s->up[s->round];
    cst_parts *frame = &s->heard_from[s->round][sender];
    const uint8_t *bytes = b->recv + b->bytes * (size_t)sender;
    cst_frame_header h;
    coset_status status =
        open_frame(round, bytes, b->bytes, cst_header_of(round, CST_FRAME_UP, s->round, sender, round->mean->rank), &h);
    if (status)
        return status;
    uint32_t parts;
    cst_part_size *sizes = sizes_of_up(round, sender, &parts);
    if (!sizes)
        return COSET_ERR_MEMORY;
    bool fits = h.blocks == parts && h.requests == 0 && (s->round > 0 || h.first_block == s->owner.first);
    status = fits ? cst_parts_read(frame, bytes, &h, sizes, cst_exact_bytes(round->dtype, false), &round->mean->error)
                  : COSET_ERR_CORRUPT;
    free(sizes);
    if (!status) {
        int n = round->mean->size;
        fits = s->round == 0 ? base_codes_fit(s, frame, sender, n) : answers_fit(s, frame, sender, n);
        *declared = s->round == 0 && h.need_up > *declared ? (size_t)h.need_up : *declared;
    }
    return fits ? status
                : cst_fail(&round->mean->error, COSET_ERR_CORRUPT, sender,
                           "the codes of rank %d are not those of this exchange", sender);
}

coset_status cst_star_listen(coset_round *round, int owner, uint64_t *need_up, uint64_t *need_down)
{
    cst_star_call *s = cst_star_of(round);
    const uint8_t *bytes = s->down.recv + s->down.bytes * (size_t)owner;
    uint32_t first = s->shared.first[owner], blocks = s->shared.first[owner + 1] - first;
    cst_frame_header h;
    coset_status status =
        open_frame(round, bytes, s->down.bytes, cst_header_of(round, CST_FRAME_DOWN, s->round, owner, CST_TO_ALL), &h);
    if (status)
        return status;
    /* No frame asks for more than all of its blocks several times over: a bound for memory. */
    uint64_t most = 4096 + (uint64_t)blocks * (4096 * 16 + 512) * (uint64_t)round->mean->size;
    if (h.first_block != first || h.blocks != blocks || h.need_up > most || h.need_down > most)
        return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, owner,
                        "the means of rank %d are not those of its blocks", owner);
    cst_part_size *sizes = malloc((blocks ? blocks : 1) * sizeof *sizes);
    if (!sizes)
        return COSET_ERR_MEMORY;
    for (uint32_t i = 0; i < blocks; i++)
        sizes[i] = (cst_part_size){round->layout.blocks[first + i].n, round->layout.blocks[first + i].count};
    status =
        cst_parts_read(&s->told[owner], bytes, &h, sizes, cst_exact_bytes(round->dtype, true), &round->mean->error);
    free(sizes);
    *need_up = h.need_up > *need_up ? h.need_up : *need_up;
    *need_down = h.need_down > *need_down ? h.need_down : *need_down;
    return status;
}
