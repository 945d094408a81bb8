/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/track.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/wire.h"
#include "kernels/block.h"
#include "mean/layout.h"

#include <stdlib.h>

enum { RECORD = 28 }; /* id, calls, count: 8 bytes each; known, two margins, size of blocks: 1 */

static void tensor_free(cst_tensor *t)
{
    if (t) {
        free(t->stat);
        cst_past_forget(&t->past);
    }
    free(t);
}

void cst_track_free(cst_track *track)
{
    for (size_t i = 0; i < track->capacity; i++)
        tensor_free(track->slots[i]);
    free(track->slots);
    *track = (cst_track){0};
}

static size_t slot_of(cst_tensor *const *slots, size_t capacity, uint64_t id)
{
    uint64_t h = (id ^ id >> 31) * 0x9E3779B97F4A7C15u;
    size_t i = (size_t)(h >> 20) & (capacity - 1);
    while (slots[i] && slots[i]->id != id)
        i = (i + 1) & (capacity - 1);
    return i;
}

static bool grow(cst_track *track)
{
    size_t capacity = track->capacity ? 2 * track->capacity : 64;
    cst_tensor **slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < track->capacity; i++)
        if (track->slots[i])
            slots[slot_of(slots, capacity, track->slots[i]->id)] = track->slots[i];
    free(track->slots);
    track->slots = slots;
    track->capacity = capacity;
    return true;
}

static uint8_t learned(uint8_t margin, bool event, int raise, int most, bool stays)
{
    int next = event ? margin + raise : margin - !stays;
    return (uint8_t)(next < 0 ? 0 : next > most ? most : next);
}

/* Raises measured on local SGD; half an octave and one more at once, one and a half and two at most. */
void cst_margins_learn(cst_margins *m, bool repaired, bool refined, bool light)
{
    m->reach = learned(m->reach, repaired, 32, 96, light);
    m->share = learned(m->share, refined, 64, 128, light);
}

cst_margins cst_margins_of(bool model)
{
    return (cst_margins){.reach = 16, .share = model ? CST_SHARE_OF_MODELS : CST_SHARE_OF_OTHERS};
}

void cst_tensor_forget(cst_tensor *t)
{
    free(t->stat);
    t->stat = NULL;
    t->nblocks = t->block = 0;
    t->known = false;
    t->margins = cst_margins_of(false);
    cst_past_forget(&t->past);
}

bool cst_tensor_cut(cst_tensor *t, uint32_t block)
{
    uint32_t nblocks = cst_blocks_of(t->count, block);
    t->stat = calloc(nblocks ? nblocks : 1, sizeof *t->stat);
    if (!t->stat)
        return false;
    t->nblocks = nblocks;
    t->block = block;
    return true;
}

cst_tensor *cst_track_get(cst_track *track, uint64_t id, size_t count)
{
    if (2 * track->used >= track->capacity && !grow(track))
        return NULL;
    size_t i = slot_of(track->slots, track->capacity, id);
    cst_tensor *t = track->slots[i];
    if (t && t->count == count)
        return t;
    if (!t) {
        t = track->slots[i] = calloc(1, sizeof *t);
        if (!t)
            return NULL;
        t->id = id;
        track->used++;
    }
    cst_tensor_forget(t);
    t->count = count;
    return t;
}

cst_tensor *cst_track_find(const cst_track *track, uint64_t id)
{
    return track->capacity ? track->slots[slot_of(track->slots, track->capacity, id)] : NULL;
}

uint64_t cst_tensor_hash(const cst_tensor *t, uint64_t seed)
{
    uint64_t margins = (uint64_t)t->margins.reach << 8 | t->margins.share;
    uint64_t head[5] = {t->id, t->calls, t->count, t->known, margins << 16 | t->block};
    uint64_t h = seed;
    for (int i = 0; i < 5; i++)
        h = (h ^ head[i]) * 0xD6E8FEB86659FD93u + (h >> 31);
    if (!t->known)
        return h;
    for (uint32_t b = 0; b < t->nblocks; b++)
        h = (h ^ ((uint64_t)t->stat[b].s2 << 16 | t->stat[b].r2)) * 0xD6E8FEB86659FD93u + (h >> 31);
    return h;
}

size_t cst_track_bytes(const cst_track *track)
{
    size_t bytes = CST_BODY_AT;
    for (size_t i = 0; i < track->capacity; i++)
        if (track->slots[i])
            bytes += RECORD + (track->slots[i]->known ? (size_t)4 * track->slots[i]->nblocks : 0);
    return bytes;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = (*(cst_tensor *const *)a)->id, y = (*(cst_tensor *const *)b)->id;
    return x < y ? -1 : x > y;
}

static void tensor_write(cst_writer *w, const cst_tensor *t)
{
    cst_put(w, t->id, 8);
    cst_put(w, t->calls, 8);
    cst_put(w, t->count, 8);
    cst_put(w, t->known, 1);
    cst_put(w, t->margins.reach, 1);
    cst_put(w, t->margins.share, 1);
    cst_put(w, t->block / CST_UNIT, 1);
    for (uint32_t b = 0; t->known && b < t->nblocks; b++) {
        cst_put(w, t->stat[b].s2, 2);
        cst_put(w, t->stat[b].r2, 2);
    }
}

coset_status cst_track_save(const cst_track *track, uint64_t agreement, uint8_t *out, size_t bytes)
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
    for (size_t i = 0; i < k; i++)
        tensor_write(&w, sorted[i]);
    free(sorted);
    if (w.full)
        return COSET_ERR_ARGUMENT;
    cst_frame_header h = {
        .kind = CST_FRAME_STATE, .agreement = agreement, .blocks = (uint32_t)k, .receiver = CST_TO_ALL};
    cst_body_seal(out, &h, (size_t)(w.at - out), (size_t)(w.at - out));
    return COSET_OK;
}

/* False on damage. */
static bool tensor_read(cst_reader *r, cst_track *track, bool *no_memory)
{
    uint64_t id = cst_get64(r), calls = cst_get64(r), count = cst_get64(r);
    unsigned known = cst_get8(r);
    cst_margins margins = {.reach = (uint8_t)cst_get8(r)};
    margins.share = (uint8_t)cst_get8(r);
    uint32_t block = CST_UNIT * cst_get8(r);
    bool power_of_two = block && (block & (block - 1)) == 0;
    /* A known tensor brings four bytes per block, so its size is bounded by the buffer before memory is asked for. */
    if (r->bad || known > 1 || (known && !power_of_two) || block > CST_BLOCK || count / CST_UNIT > UINT32_MAX / 2)
        return false;
    size_t left = (size_t)(r->end - r->at);
    if (known && cst_blocks_of((size_t)count, block) > left / 4)
        return false;
    if (!known)
        count = 0; /* nothing is remembered but the calls: the size comes back with the next call */
    size_t before = track->used;
    cst_tensor *t = cst_track_get(track, id, (size_t)count);
    if (!t) {
        *no_memory = true;
        return false;
    }
    if (track->used == before)
        return false; /* the same id twice */
    t->calls = calls;
    if (known && !cst_tensor_cut(t, block)) {
        *no_memory = true;
        return false;
    }
    t->known = known;
    if (known)
        t->margins = margins;
    for (uint32_t b = 0; known && b < t->nblocks; b++) {
        t->stat[b].s2 = cst_get16(r);
        t->stat[b].r2 = cst_get16(r);
    }
    return !r->bad;
}

coset_status cst_track_load(cst_track *track, uint64_t agreement, const uint8_t *in, size_t bytes, coset_error *why)
{
    cst_frame_header h;
    coset_status status = cst_frame_open(in, bytes, &h, why);
    if (status)
        return status;
    if (h.kind != CST_FRAME_STATE)
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "not a saved state");
    if (h.agreement != agreement)
        return cst_fail(why, COSET_ERR_MISMATCH, -1,
                        "the state was saved with other options, another number of ranks or another seed");
    cst_reader r;
    if (!cst_body_open(in, &h, &r))
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "the saved state is damaged");
    cst_track loaded = {0};
    bool no_memory = false, good = true;
    for (uint32_t i = 0; good && i < h.blocks; i++)
        good = tensor_read(&r, &loaded, &no_memory);
    if (!good || r.at != r.end) {
        cst_track_free(&loaded);
        return no_memory ? cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for the saved state")
                         : cst_fail(why, COSET_ERR_CORRUPT, -1, "the saved state is damaged");
    }
    cst_track_free(track);
    *track = loaded;
    return COSET_OK;
}
