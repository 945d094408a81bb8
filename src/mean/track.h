/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks remember of each tensor from call to call, the same on all of them: how often it was averaged, per block
 * the spread s^2 and mean energy R^2 per coordinate as the owners last measured them (in the wire's 1/16 octaves), and how
 * much to leave to chance.
 */
#ifndef CST_MEAN_TRACK_H
#define CST_MEAN_TRACK_H
#include "mean/layout.h"
#include "mean/past.h"

#include <coset.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint16_t s2, r2; /* cst_energy_index */
} cst_block_stat;

/*
 * Margins of a tensor whose spread moves from call to call, in 64ths of an octave: a repair or a refinement costs several
 * bits per coordinate, half a bit more on all prevents most. Each event raises the margin at once, each call without one lowers it a
 * little, so that they settle where one call in 25 or 30 has an event (outer-loop control, as of the power of radio links).
 */
typedef struct {
    uint8_t reach; /* of moduli beyond what the tracked spread takes */
    uint8_t share; /* of D1 below half of the budget */
} cst_margins;

typedef struct {
    uint64_t id;
    uint64_t calls;
    size_t count; /* coordinates */
    cst_cut cut;  /* into blocks; block 0: not yet */
    uint32_t nblocks;
    bool known;           /* stat holds measurements */
    bool busy;            /* in a call that has not ended */
    cst_block_stat *stat; /* NULL: not cut yet */
    cst_margins margins;
    cst_past past; /* this rank's own */
} cst_tensor;

typedef struct {
    cst_tensor **slots; /* open addressing; the tensors themselves never move */
    size_t capacity, used;
} cst_track;

void cst_track_free(cst_track *track);
/* The tensor, made if it is new, forgotten (but for its count of calls) if its size has changed. NULL: no memory. */
cst_tensor *cst_track_get(cst_track *track, uint64_t id, size_t count);
/* The tensor if it is there; NULL. */
cst_tensor *cst_track_find(const cst_track *track, uint64_t id);
/* Nothing is known of it any more, but its count of calls. */
void cst_tensor_forget(cst_tensor *tensor);
/* Into blocks; once, before its first call. False: no memory. */
bool cst_tensor_cut(cst_tensor *tensor, const cst_cut *cut);
enum { CST_SHARE_OF_MODELS = 48, CST_SHARE_OF_OTHERS = 16 };
/* To begin with. The spread of a model, whose mean is far larger, is known less from its vectors alone. */
cst_margins cst_margins_of(bool model);
/* After a call: whether moduli did not reach, whether steps were too coarse; `light`: the tensor is so small a part of the
 * call that its margins cost less than its events, and may stay. */
void cst_margins_learn(cst_margins *margins, bool repaired, bool refined, bool light);
/* Hash of what is remembered about one tensor. */
uint64_t cst_tensor_hash(const cst_tensor *tensor, uint64_t seed);
#endif
