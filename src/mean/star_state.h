/* SPDX-License-Identifier: Apache-2.0 */
/* A call of the sharded star under way: its state, what is heard of the others (hear.c) and learnt (star_notes.c). */
#ifndef CST_MEAN_STAR_STATE_H
#define CST_MEAN_STAR_STATE_H
#include "codec/parts.h"
#include "mean/internal.h"
#include "mean/owner.h"
#include "mean/sender.h"
#include "mean/sketch.h"

typedef enum { CST_AT_START, CST_AT_SKETCHES, CST_AT_STATISTICS, CST_AT_UP, CST_AT_DOWN, CST_AT_END } cst_star_stage;

enum { CST_STAR_ROUNDS = CST_LAST_ROUND + 1 };
enum { CST_STAR_REPAIRED = 1, CST_STAR_REFINED = 2 };

typedef struct {
    uint8_t *send, *recv;
    size_t bytes; /* of a frame */
} cst_star_buffers;

typedef struct {
    cst_star_stage at;
    int round;
    size_t declared; /* bytes of codes that did not fit into a sender's first frame: the most of any sender */
    cst_sketch sketch;
    cst_shared shared;
    cst_sender sender;
    cst_owner owner;
    cst_heard *heard;
    cst_packer packer;
    cst_request *asked; /* by this rank as owner, in its last DOWN frame */
    uint32_t nasked;
    cst_star_buffers up[CST_STAR_ROUNDS],
        down;                               /* UP frames are kept till the end: blocks that wait are decoded again */
    cst_parts *heard_from[CST_STAR_ROUNDS]; /* UP frames, per sender */
    cst_parts *told;                        /* the last DOWN frames, per owner */
    cst_star_buffers extra;                 /* sketches and statistics */
    uint16_t *errors;                       /* per owner: predicted error of its blocks, as told last */
    uint32_t *corrected;                    /* per owner */
    uint8_t *current;                       /* per block: its owner has told new statistics */
    uint8_t *events;                        /* per span: CST_STAR_REPAIRED, CST_STAR_REFINED */
} cst_star_call;

static inline cst_star_call *cst_star_of(const coset_round *round)
{
    return round->state;
}

/* How many of n requests are for `sender`. */
uint32_t cst_star_answers_of(const cst_request *requests, uint32_t n, int sender);
/* The requests in a DOWN frame of `owner`, checked. *out is malloc'ed. CORRUPT, MEMORY. */
coset_status cst_star_requests(const coset_round *round, const cst_parts *frame, int owner, cst_request **out);
/* Takes the UP frame of `sender` in this round apart, into state->heard. *declared becomes what it has left out, if that is
 * more. CORRUPT, MISMATCH, MEMORY. */
coset_status cst_star_hear(coset_round *round, int sender, size_t *declared);
/* Takes the DOWN frame of `owner` apart, into state->told[owner]; *need_up and *need_down become what it wants in the next
 * round, if that is more. CORRUPT, MISMATCH, MEMORY. */
coset_status cst_star_listen(coset_round *round, int owner, uint64_t *need_up, uint64_t *need_down);

/* What the DOWN frame of `owner` (the own one too) tells beside the means: statistics, into what is tracked, events and counts. */
void cst_star_note(coset_round *round, int owner, const cst_parts *frame);
/* The call is complete: margins, last means and the report. */
void cst_star_conclude(coset_round *round);
#endif
