/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the protocol robust (robust.c), and the agreements it is made of (robust_digits.c): a point that a sender has fixed,
 * and of which a receiver learns more digits, piece by piece of 4096 coordinates, until it can decode them.
 */
#ifndef CST_MEAN_ROBUST_STATE_H
#define CST_MEAN_ROBUST_STATE_H
#include "mean/whole.h"

typedef enum {
    CST_ROBUST_START,
    CST_ROBUST_DIGITS_UP,
    CST_ROBUST_VERDICT_UP,
    CST_ROBUST_DIGITS_DOWN,
    CST_ROBUST_ANSWERS,
    CST_ROBUST_VERDICT_DOWN,
    CST_ROBUST_END
} cst_robust_stage;

enum { CST_ROBUST_WHOLE = 32, CST_ROBUST_MOST = 16 }; /* digits of a point, and of a colour */

/* One direction of one pair: digits of `points` known so far. */
typedef struct {
    unsigned bits; /* digits known of every coordinate of open pieces */
    uint8_t *open; /* per piece: not decoded yet */
    uint32_t nopen;
    uint32_t *digits; /* n, low digits known; at a receiver */
    cst_checksum *checks;
    float *value; /* decoded; at a receiver */
} cst_agreement;

typedef struct {
    cst_robust_stage at;
    int leader, pass;
    uint32_t phase; /* of the points under way */
    bool *sampled;  /* per rank: in S */
    int samples;
    cst_whole whole;
    float step;
    unsigned first_bits;
    int32_t *points; /* own vector's; at the leader, then the mean's */
    cst_checksum *checks;
    cst_agreement *with; /* leader: with every rank; others: with[0], with the leader */
    float *mean;
    uint8_t **send, **recv; /* per peer: frames of the transfer under way */
    coset_route *routes;
    bool again; /* the leader's decision: another pass in this direction */
} cst_robust_call;

/* All pieces open, no digit known; `receives`: with room for digits and values. False: no memory. */
bool cst_agreement_make(cst_agreement *a, const cst_whole *w, bool receives);
void cst_agreement_free(cst_agreement *a);
/* As it was made. */
void cst_agreement_reset(cst_agreement *a, const cst_whole *w);

/* How many digits come next, when `bits` are known. */
unsigned cst_agreement_next(const cst_robust_call *s, unsigned bits);
/* Bytes of the frame with the next digits of the open pieces; checksums come with the first. */
size_t cst_agreement_bytes(const cst_robust_call *s, const cst_agreement *a);
/* That frame, of the points and checksums at hand. */
void cst_agreement_write(const coset_round *round, const cst_agreement *a, int receiver, uint8_t *frame);
/* Takes in the digits that `sender` sent, and decodes what can be decoded now. CORRUPT, MISMATCH. */
coset_status cst_agreement_read(coset_round *round, cst_agreement *a, int sender, const uint8_t *frame);
#endif
