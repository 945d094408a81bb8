/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/saved.h"

#include "base/error.h"
#include "codec/wire.h"
#include "kernels/block.h"
#include "mean/layout.h"

#include <stdlib.h>

enum { HEAD = 8, RECORD = 28 }; /* link; id, calls, count: 8 bytes each, flags, two margins, size of blocks: 1 */
enum { SHARES = 16 };           /* if shares cut it: grain, shares, before, total: 4 each */
enum { KNOWN = 1, PAST = 2, SHARED = 4 }; /* flags */

/* ---- writing ---- */

static size_t bytes_of(const cst_tensor *t)
{
    return RECORD + (t->cut.grain ? SHARES : 0) + (size_t)4 * t->nblocks + cst_past_bytes(&t->past, t->count);
}

size_t cst_saved_bytes(const cst_track *track, size_t hosts_bytes)
{
    size_t bytes = CST_BODY_AT + HEAD + hosts_bytes;
    for (size_t i = 0; i < track->capacity; i++)
        if (track->slots[i])
            bytes += bytes_of(track->slots[i]);
    return bytes;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = (*(cst_tensor *const *)a)->id, y = (*(cst_tensor *const *)b)->id;
    return x < y ? -1 : x > y;
}

static void tensor_write(cst_writer *w, const cst_tensor *t)
{
    bool past = cst_past_bytes(&t->past, t->count) > 0;
    cst_put(w, t->id, 8);
    cst_put(w, t->calls, 8);
    cst_put(w, t->count, 8);
    cst_put(w, (t->known ? KNOWN : 0) | (past ? PAST : 0) | (t->cut.grain ? SHARED : 0), 1);
    cst_put(w, t->margins.reach, 1);
    cst_put(w, t->margins.share, 1);
    cst_put(w, t->cut.block / CST_UNIT, 1);
    const uint32_t shares[SHARES / 4] = {t->cut.grain, t->cut.shares, t->cut.before, t->cut.total};
    for (int i = 0; t->cut.grain && i < SHARES / 4; i++)
        cst_put(w, shares[i], 4);
    for (uint32_t b = 0; b < t->nblocks; b++) {
        cst_put(w, t->stat[b].s2, 2);
        cst_put(w, t->stat[b].r2, 2);
    }
    if (past)
        cst_past_write(&t->past, t->count, w);
}

coset_status cst_saved_write(const cst_track *track, const cst_saved *with, uint8_t *out, size_t bytes)
{
    cst_tensor **sorted = malloc((track->used ? track->used : 1) * sizeof(cst_tensor *));
    if (!sorted)
        return COSET_ERR_MEMORY;
    size_t k = 0;
    for (size_t i = 0; i < track->capacity; i++)
        if (track->slots[i])
            sorted[k++] = track->slots[i];
    qsort(sorted, k, sizeof *sorted, by_id);
    cst_writer w = cst_writer_of(out, bytes);
    cst_room(&w, CST_BODY_AT);
    cst_put_f64(&w, with->link_gbps);
    for (size_t i = 0; i < k; i++)
        tensor_write(&w, sorted[i]);
    cst_put_bytes(&w, with->hosts, with->hosts_bytes);
    free(sorted);
    if (w.full)
        return COSET_ERR_ARGUMENT;
    cst_frame_header h = {.kind = CST_FRAME_STATE,
                          .call = with->calls,
                          .agreement = with->agreement,
                          .blocks = (uint32_t)k,
                          .receiver = CST_TO_ALL};
    cst_body_seal(out, &h, (size_t)(w.at - out), (size_t)(w.at - out));
    return COSET_OK;
}

/* ---- reading ---- */

/* What a record begins with. */
typedef struct {
    uint64_t id, calls, count;
    unsigned flags;
    cst_margins margins;
    cst_cut cut;
} record;

static record record_read(cst_reader *r)
{
    record t = {.id = cst_get64(r), .calls = cst_get64(r), .count = cst_get64(r)};
    t.flags = cst_get8(r);
    t.margins.reach = cst_get8(r);
    t.margins.share = cst_get8(r);
    t.cut.block = CST_UNIT * (uint32_t)cst_get8(r);
    if (t.flags & SHARED) {
        t.cut.grain = cst_get32(r);
        t.cut.shares = cst_get32(r);
        t.cut.before = cst_get32(r);
        t.cut.total = cst_get32(r);
    }
    return t;
}

/* Four bytes per block are still to come, so a tensor's size is bounded by the buffer before memory is asked for, or time. */
static bool meaningful(const record *t, const cst_reader *r)
{
    if (r->bad || t->flags > (KNOWN | PAST | SHARED) || t->count / CST_UNIT > UINT32_MAX / 2)
        return false;
    if (!t->cut.block)
        return !t->flags;
    bool shared = t->flags & SHARED;
    return shared == (t->cut.grain > 0) && cst_cut_valid(&t->cut, (size_t)t->count) &&
           t->count / CST_BLOCK <= (size_t)(r->end - r->at) / 4 &&
           cst_blocks_of((size_t)t->count, &t->cut) <= (size_t)(r->end - r->at) / 4;
}

/* COSET_OK, CORRUPT or MEMORY. */
static coset_status tensor_read(cst_reader *r, cst_track *track)
{
    record from = record_read(r);
    if (!meaningful(&from, r))
        return COSET_ERR_CORRUPT;
    size_t before = track->used;
    cst_tensor *t = cst_track_get(track, from.id, (size_t)from.count);
    if (!t)
        return COSET_ERR_MEMORY;
    if (track->used == before)
        return COSET_ERR_CORRUPT; /* the same id twice */
    t->calls = from.calls;
    t->margins = from.margins;
    if (from.cut.block && !cst_tensor_cut(t, &from.cut))
        return COSET_ERR_MEMORY;
    t->known = from.flags & KNOWN;
    for (uint32_t b = 0; b < t->nblocks; b++) {
        t->stat[b].s2 = cst_get16(r);
        t->stat[b].r2 = cst_get16(r);
    }
    if (from.flags & PAST)
        return cst_past_read(&t->past, t->count, r);
    return r->bad ? COSET_ERR_CORRUPT : COSET_OK;
}

static coset_status body_read(cst_reader *r, uint32_t tensors, cst_track *track, cst_saved *with)
{
    with->link_gbps = cst_get_f64(r);
    coset_status status = with->link_gbps >= 0 && with->link_gbps <= 1e9 ? COSET_OK : COSET_ERR_CORRUPT;
    for (uint32_t i = 0; !status && i < tensors; i++)
        status = tensor_read(r, track);
    if (status || r->bad)
        return status ? status : COSET_ERR_CORRUPT;
    with->hosts = r->at;
    with->hosts_bytes = (size_t)(r->end - r->at);
    return COSET_OK;
}

coset_status cst_saved_read(cst_track *track, cst_saved *with, const uint8_t *in, size_t bytes, coset_error *why)
{
    cst_frame_header h;
    coset_status status = cst_frame_open(in, bytes, &h, why);
    if (status)
        return status;
    if (h.kind != CST_FRAME_STATE || h.used != bytes)
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "not a saved state");
    if (h.agreement != with->agreement)
        return cst_fail(why, COSET_ERR_MISMATCH, -1,
                        "the state was saved with other options, another number of ranks or another seed");
    cst_reader r;
    if (!cst_body_open(in, &h, &r))
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "the saved state is damaged");
    cst_track loaded = {0};
    cst_saved read = {.agreement = h.agreement, .calls = h.call};
    status = body_read(&r, h.blocks, &loaded, &read);
    if (status) {
        cst_track_free(&loaded);
        return cst_fail(why, status, -1,
                        status == COSET_ERR_MEMORY ? "no memory for the saved state" : "the saved state is damaged");
    }
    cst_track_free(track);
    *track = loaded;
    *with = read;
    return COSET_OK;
}
