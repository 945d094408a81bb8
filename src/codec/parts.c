/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/parts.h"

#include "base/error.h"
#include "codec/model.h"

#include <stdlib.h>

enum { UNKNOWN = 0, KNOWN, BROKEN };

static coset_status corrupt(coset_error *why, const cst_frame_header *h, const char *what)
{
    return cst_fail(why, COSET_ERR_CORRUPT, h->sender, "a frame of rank %u: %s", h->sender, what);
}

static coset_status allocate(cst_parts *p, uint32_t blocks)
{
    size_t n = blocks ? blocks : 1;
    p->parts = calloc(n, sizeof *p->parts);
    p->entropy = calloc(n, sizeof *p->entropy);
    p->known = calloc(n, 1);
    p->at = aligned_alloc(64, n * sizeof *p->at);
    if (p->parts && p->entropy && p->known && p->at)
        return COSET_OK;
    cst_parts_free(p);
    return COSET_ERR_MEMORY;
}

/* Descriptors, statistics, checks. */
static bool read_tables(cst_parts *p, const uint8_t *frame, const cst_part_size *sizes)
{
    uint32_t blocks = p->header.blocks;
    bool down = p->header.kind == CST_FRAME_DOWN;
    cst_reader desc = cst_reader_of(frame + CST_FRAME_HEADER, (size_t)4 * blocks);
    cst_reader stat = cst_reader_of(desc.end, down ? (size_t)4 * blocks : 0);
    const uint8_t *check = stat.end;
    bool good = true;
    for (uint32_t b = 0; b < blocks; b++) {
        cst_part *part = &p->parts[b];
        good &= cst_desc_unpack(cst_get32(&desc), &part->desc);
        if (down) {
            part->s2 = cst_get16(&stat);
            part->r2 = cst_get16(&stat);
        }
        part->n = sizes[b].n;
        part->check = cst_check_read(check + (size_t)CST_CHECK_BYTES * b);
    }
    p->requests = check + (size_t)CST_CHECK_BYTES * blocks;
    return good;
}

static bool place_payloads(cst_parts *p, cst_reader *r, const cst_part_size *sizes, size_t element)
{
    for (uint32_t b = 0; b < p->header.blocks; b++) {
        cst_part *part = &p->parts[b];
        uint8_t code = part->desc.code;
        bool modulo = code == CST_CODE_Z || code == CST_CODE_E8;
        if (code == CST_CODE_ENTROPY) {
            part->ordinal = p->nentropy;
            p->entropy[p->nentropy++] = b;
            continue;
        }
        size_t bytes = cst_block_bytes(part->desc, part->n, sizes[b].count, element);
        if (modulo && p->header.kind == CST_FRAME_DOWN) {
            uint8_t classes[CST_BLOCK_UNITS];
            part->classes = cst_take(r, cst_classes_bytes(part->n));
            if (!part->classes || !cst_classes_read(part->classes, part->desc.class, part->n, classes))
                return false;
            bytes = cst_packed_bytes(classes, part->n / CST_UNIT);
        }
        if (bytes) {
            part->payload = cst_take(r, bytes);
            if (!part->payload)
                return false;
        }
    }
    return true;
}

static bool place_streams(cst_parts *p, cst_reader *r)
{
    for (uint32_t e = 0; e < p->nentropy; e += CST_STREAM_BLOCKS) {
        uint32_t length = cst_get32(r);
        const uint8_t *bytes = cst_take(r, length);
        if (!bytes)
            return false;
        p->known[e] = cst_entropy_decoder_init(&p->at[e], bytes, length) ? KNOWN : BROKEN;
    }
    return r->at == r->end;
}

coset_status cst_parts_read(cst_parts *p, const uint8_t *frame, const cst_frame_header *header,
                            const cst_part_size *sizes, size_t element, coset_error *why)
{
    *p = (cst_parts){.header = *header};
    if (allocate(p, header->blocks))
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for the parts of a frame");
    cst_reader r = cst_reader_of(frame + header->payload, (size_t)(header->used - header->payload));
    const char *wrong = !read_tables(p, frame, sizes)            ? "a descriptor that means nothing"
                        : !place_payloads(p, &r, sizes, element) ? "payloads longer than the frame"
                        : !place_streams(p, &r)                  ? "streams that do not fit the frame"
                                                                 : NULL;
    if (!wrong)
        return COSET_OK;
    cst_parts_free(p);
    return corrupt(why, header, wrong);
}

void cst_parts_free(cst_parts *p)
{
    free(p->parts);
    free(p->entropy);
    free(p->known);
    free(p->at);
    *p = (cst_parts){0};
}

bool cst_parts_points(cst_parts *p, const cst_entropy_kernels *kernels, uint32_t part, int32_t *points)
{
    uint32_t want = p->parts[part].ordinal, e = want;
    while (p->known[e] == UNKNOWN)
        e--;
    for (;; e++) {
        if (p->known[e] == BROKEN)
            return false;
        const cst_part *at = &p->parts[p->entropy[e]];
        cst_entropy_decoder d = p->at[e];
        bool good = kernels->decode(&d, cst_model_of_class(at->desc.class), points, at->n);
        bool last = (e + 1) % CST_STREAM_BLOCKS == 0 || e + 1 == p->nentropy;
        if (!last && p->known[e + 1] == UNKNOWN) {
            p->known[e + 1] = good ? KNOWN : BROKEN;
            p->at[e + 1] = d;
        }
        if (!good || (last && !cst_entropy_decoder_finish(&d)))
            return false;
        if (e == want)
            return true;
    }
}
