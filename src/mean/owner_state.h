/* SPDX-License-Identifier: Apache-2.0 */
/* An owner's frame in the making: what owner.c, owner_budget.c and owner_requests.c share. */
#ifndef CST_MEAN_OWNER_STATE_H
#define CST_MEAN_OWNER_STATE_H
#include "mean/measure.h"
#include "mean/owner.h"

typedef struct {
    double s2;    /* of the group now */
    double least; /* errors below this are not asked for */
    int unit;
} cst_group_now;

typedef struct {
    cst_owner *o;
    cst_packer *packer;
    int round;
    uint32_t begin, end; /* blocks of one group that are here */
    cst_block_now now[CST_GROUP];
    size_t *answers;          /* per sender: bytes asked for so far */
    bool resend;              /* blocks that did not fit into the senders' frames are among them */
    double room, planned_all; /* rate control: bits for payloads in the frame, and planned for all blocks here */
    double planned, spent;    /* up to the group at hand; what entropy codes take is estimated */
    double modulo_planned, modulo_spent; /* of modulo codes alone: how good the estimate is */
    double need_down;
    coset_error *why;
} cst_group_work;

/* ---- owner_budget.c ---- */

/* The group's spread now: as measured for the blocks at hand, as told in an earlier round for those that are done. */
cst_group_now cst_owner_look(const cst_owner *o, const cst_group *g, const cst_block_now *now);
/* Was phase 1 too coarse for the spread measured now? *arg: how much finer its senders shall be, in quarters of an octave. */
bool cst_owner_refines(const cst_owner *o, const cst_block_now *b, const cst_group_now *g, uint8_t *arg);
/* D2, of a block's mean, that the budget leaves; and what it may become where a frame is too small. */
double cst_owner_error_left(const cst_group_work *w, const cst_block_now *now, const cst_group_now *g);
double cst_owner_error_at_most(const cst_group_work *w, const cst_block_now *now, const cst_group_now *g, double left);
/* What a block's mean will take after a refinement, bits per coordinate. */
double cst_owner_bits_refined(const cst_group_work *w, const cst_block_now *now, const cst_group_now *g, uint8_t arg);
/* Rate control: at the begin of a frame of `capacity` bytes; a group's factor on D2, plans of its blocks filled in; and after
 * a block, whose payload took `bits` (0: an entropy code, which is in no payload yet). */
void cst_owner_begin_rate(cst_group_work *w, size_t capacity);
double cst_owner_rate(cst_group_work *w, const cst_group_now *g);
void cst_owner_note_spent(cst_group_work *w, const cst_block_now *now, double d2, double bits);

/* ---- owner_requests.c ---- */

/* Of all requests a group has for digits, makes those smaller that are likely to be just beyond reach. */
void cst_owner_ask_less(cst_group_work *w);
/* Writes a request, unless there is no room for it, and counts its answers. */
void cst_owner_request(cst_group_work *w, cst_request r);
/* A block that has to wait: its requests asks[sender] (NULL: none), one for all senders where all are asked the same, and room
 * in the next frame. bits: per coordinate, what the code of its mean is expected to take, 0 if that is not known. */
void cst_owner_postpone(cst_group_work *w, uint32_t block, const cst_request *asks, double bits);
/* Where questions can be asked for the last time, payloads leave them room (in the frame's size it was counted, when the blocks
 * were postponed): for all blocks that wait; and given free when a block has its turn. */
void cst_owner_reserve(cst_group_work *w);
void cst_owner_release(cst_group_work *w);
#endif
