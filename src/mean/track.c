/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/track.h"

#include <stdlib.h>

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
    t->nblocks = 0;
    t->cut = (cst_cut){0};
    t->known = false;
    t->margins = cst_margins_of(false);
    cst_past_forget(&t->past);
}

bool cst_tensor_cut(cst_tensor *t, const cst_cut *cut)
{
    uint32_t nblocks = cst_blocks_of(t->count, cut);
    t->stat = calloc(nblocks ? nblocks : 1, sizeof *t->stat);
    if (!t->stat)
        return false;
    t->nblocks = nblocks;
    t->cut = *cut;
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
    const cst_cut *c = &t->cut;
    uint64_t cut[2] = {(uint64_t)c->grain << 32 | c->shares, (uint64_t)c->before << 32 | c->total};
    uint64_t head[7] = {t->id, t->calls, t->count, t->known, margins << 16 | c->block, cut[0], cut[1]};
    uint64_t h = seed;
    for (int i = 0; i < 7; i++)
        h = (h ^ head[i]) * 0xD6E8FEB86659FD93u + (h >> 31);
    if (!t->known)
        return h;
    for (uint32_t b = 0; b < t->nblocks; b++)
        h = (h ^ ((uint64_t)t->stat[b].s2 << 16 | t->stat[b].r2)) * 0xD6E8FEB86659FD93u + (h >> 31);
    return h;
}
