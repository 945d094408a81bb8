/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/cuts.h"

#include "base/dtype.h"
#include "codec/wire.h"

#include <stdlib.h>

/* Of a block, and of an owner's share: two groups of 16 blocks, whose streams one entropy coder interleaves. */
#define BLOCK        ((size_t)4096)
#define OWNER_BLOCKS ((size_t)32)

size_t cst_cut_length(size_t wished, int owners)
{
    size_t least = (size_t)owners * OWNER_BLOCKS * BLOCK;
    return wished && wished < least ? least : wished;
}

/* Pieces are equally long but for the last. */
static size_t piece_length(const coset_span *s, size_t length)
{
    size_t pieces = length ? (s->count + length / 2) / length : 0;
    if (pieces < 2 || !s->send || !s->recv)
        return s->count;
    return (s->count / pieces + BLOCK) / BLOCK * BLOCK;
}

static size_t pieces_of(const coset_span *s, size_t length)
{
    size_t each = piece_length(s, length);
    return each ? (s->count + each - 1) / each : 1;
}

static uint64_t piece_id(uint64_t id, size_t piece)
{
    uint64_t parts[2] = {id, piece};
    return piece ? cst_bytes_hash(parts, sizeof parts, 0) : id;
}

/* Opens the next segment if this one has grown to its length. */
static void place(cst_cuts *s, size_t index, size_t count, size_t length, size_t *held)
{
    if (length && *held && *held + count > length + length / 4) {
        s->first[s->count++] = index;
        *held = 0;
    }
    *held += count;
}

static void cut(cst_cuts *s, const coset_span *spans, size_t nspans, size_t width, size_t length)
{
    size_t n = 0, held = 0;
    s->first[0] = 0;
    s->count = 1;
    for (size_t i = 0; i < nspans; i++) {
        coset_span rest = spans[i];
        size_t each = piece_length(&rest, length), pieces = pieces_of(&rest, length);
        for (size_t k = 0; k < pieces; k++) {
            size_t count = k + 1 < pieces ? each : rest.count;
            place(s, n, count, length, &held);
            s->spans[n++] = (coset_span){piece_id(spans[i].id, k), rest.send, rest.recv, count};
            rest.count -= count;
            if (rest.count) {
                rest.send = (const char *)rest.send + count * width;
                rest.recv = (char *)rest.recv + count * width;
            }
        }
    }
    s->first[s->count] = n;
}

coset_status cst_cuts_make(cst_cuts *s, const coset_span *spans, size_t nspans, coset_dtype dtype, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < nspans; i++)
        n += pieces_of(&spans[i], length);
    s->spans = malloc((n ? n : 1) * sizeof *s->spans);
    s->first = malloc((n + 2) * sizeof *s->first);
    if (!s->spans || !s->first) {
        cst_cuts_free(s);
        return COSET_ERR_MEMORY;
    }
    cut(s, spans, nspans, coset_dtype_size(dtype), length);
    return COSET_OK;
}

void cst_cuts_free(cst_cuts *s)
{
    free(s->spans);
    free(s->first);
    *s = (cst_cuts){0};
}
