/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner: from what is known of a block to code, modulus and step. Pure and portable (codec/portable.h): ranks agree
 * on what it says, and on frame sizes, without talking.
 *
 * n ranks, R^2 energy of their common mean and s^2 variance between them, per coordinate; D1 and D2 the squared error per
 * coordinate that phase 1 adds to each vector and phase 2 to the mean. The error of the result over the exact mean is
 * D1 (n-1)/n^2 + D2 (the owner has its own vector exactly); the budget allows beta s^2/n. Rates fall by half a bit per
 * doubling of either, so the best split gives both halves the same share.
 */
#ifndef CST_MEAN_PLAN_H
#define CST_MEAN_PLAN_H
#include "codec/wire.h"

/* Which of the three codes may be used. */
enum { CST_MAY_ENTROPY = 1, CST_MAY_E8 = 2, CST_MAY_Z = 4, CST_MAY_ALL = 7 };

typedef struct {
    int ranks;
    unsigned may;        /* CST_MAY_... */
    double second_price; /* what a coordinate's Z code saves in time over the others, in bits (0: bits only count) */
} cst_plan_rules;

typedef struct {
    uint8_t code, class;
    double step;  /* phase 1, modulo codes: of the average sender; see cst_position_factor */
    double error; /* D that the step gives */
    double bits;  /* per coordinate, expected */
} cst_plan;

/* D1 that takes half of the budget beta for the spread s2; D2 that takes what `mean_error`, phase 1's error of the mean
 * as it came out, leaves of it, but at least a fifth of the budget. */
double cst_error_up(const cst_plan_rules *rules, double beta, double s2);
double cst_error_down(const cst_plan_rules *rules, double beta, double s2, double mean_error);

/*
 * Senders are decoded one after the other, against the average of the owner's vector and those decoded before: the sender
 * at position p = (sender - owner) mod n, 1 .. n-1, meets the average of p vectors, from which it differs by
 * v_p = s^2 + R^2 s^2 / (p R^2 + s^2). All use the same modulus; the step is proportional to sqrt(v_p), so that all
 * frames have the same size and the later senders are the more precise. This is the factor, sqrt(v_p / mean of v).
 */
double cst_position_factor(const cst_plan_rules *rules, double s2, double r2, int position);
/* Multiple of the average of k vectors that is nearest to another vector: R^2 / (R^2 + s^2/k). */
double cst_reference_up(double s2, double r2, int k);
/* Multiple of a rank's own vector that is nearest to the mean: (R^2 + s^2/n) / (R^2 + s^2). */
double cst_reference_down(const cst_plan_rules *rules, double s2, double r2);
/* The same from energies as they stand in a frame: owner and receivers must take the same multiple. */
double cst_reference_of_indices(const cst_plan_rules *rules, uint16_t s2, uint16_t r2);

/* Phase 1: the cheapest code for error d1, that is, with the fewest bits of both phases when the other's error makes up
 * for what rounding to a class does to this one's. d1 is `share` of what phase 1 may add by an even split; moduli take
 * residuals `reach` times as large as expected. s2 + r2 > 0, d1 > 0, share <= 1 <= reach. */
cst_plan cst_plan_up(const cst_plan_rules *rules, double s2, double r2, double d1, double share, double reach);
/* Phase 2: the mean's error so far is mean_error, d2 is to be added; step1: the largest step of phase 1, and `up` its
 * code. Classes are chosen per unit by who knows all receivers: `class` is 0 for modulo codes, `bits` what to expect. */
cst_plan cst_plan_down(const cst_plan_rules *rules, double s2, double r2, double mean_error, double d2, uint8_t up,
                       double step1);
/* What phase 2 is expected to need when phase 1 goes as planned: for agreeing on the size of frames. */
cst_plan cst_plan_down_ahead(const cst_plan_rules *rules, double s2, double r2, const cst_plan *up, double d2);

/* sigma that the modulus of `class` can take with this step, in the sense of the planner's reach: a sender whose own
 * energy says more than that by a twentieth takes a larger class. */
double cst_plan_sigma(uint8_t code, uint8_t class, double step);
#endif
