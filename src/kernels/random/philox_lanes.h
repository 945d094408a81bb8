/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Philox on 64-bit lanes: one call per lane, its words in the low halves (the high halves carry junk until the end), so
 * that a round is two widening multiplications and a few exclusive-ors. A pair of calls is interleaved: one alone waits
 * for the multiplier.
 */
#ifndef CST_KERNELS_RANDOM_PHILOX_LANES_H
#define CST_KERNELS_RANDOM_PHILOX_LANES_H
#include "kernels/lanes/lanes.h"
#include "kernels/random/philox.h"
#include "kernels/random/random.h"

enum { CALLS_PER_GROUP = 8, CALLS_PER_PART = CALLS_PER_GROUP / PARTS, CHAINS = 2 };

/* A stream ready for use: the keys of all rounds. */
typedef struct {
    uint32_t key0[CST_PHILOX_ROUNDS], key1[CST_PHILOX_ROUNDS];
    uint32_t ctr[3];
} philox_lanes;

CST_LANE_INLINE philox_lanes philox_prepare(const cst_stream *s)
{
    philox_lanes p = {.ctr = {s->ctr[0], s->ctr[1], s->ctr[2]}};
    for (uint32_t r = 0; r < CST_PHILOX_ROUNDS; r++) {
        p.key0[r] = s->key[0] + r * CST_PHILOX_W0;
        p.key1[r] = s->key[1] + r * CST_PHILOX_W1;
    }
    return p;
}

/* Words of groups `group` and `group + 1`: [0], [1] the 2 x 16 words of the first, [2], [3] of the second; this
 * part's lanes of them. */
CST_LANE_INLINE void philox_two_groups(const philox_lanes *p, uint32_t group, uint32_t part, ivec words[2 * CHAINS])
{
    ivec a[CHAINS], b[CHAINS], c[CHAINS], d[CHAINS];
    const ivec m0 = q_set(CST_PHILOX_M0), m1 = q_set(CST_PHILOX_M1);
    CST_UNROLL
    for (uint32_t i = 0; i < CHAINS; i++) {
        a[i] = q_add(q_set(CALLS_PER_GROUP * (group + i) + CALLS_PER_PART * part), q_count());
        b[i] = q_set(p->ctr[0]);
        c[i] = q_set(p->ctr[1]);
        d[i] = q_set(p->ctr[2]);
    }
    CST_UNROLL
    for (int round = 0; round < CST_PHILOX_ROUNDS; round++) {
        const ivec key0 = i_set((int32_t)p->key0[round]), key1 = i_set((int32_t)p->key1[round]);
        CST_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            ivec p0 = q_mul_even(a[i], m0), p1 = q_mul_even(c[i], m1);
            a[i] = i_xor3(q_shr(p1, 32), b[i], key0);
            b[i] = p1;
            c[i] = i_xor3(q_shr(p0, 32), d[i], key1);
            d[i] = p0;
        }
    }
    CST_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        words[2 * i] = i_even_odd(a[i], q_shl(b[i], 32));
        words[2 * i + 1] = i_even_odd(c[i], q_shl(d[i], 32));
    }
}

/* theta * 2^32 of a unit's eight vectors, exact, in (-2^31, 2^31): this part's lanes. */
CST_LANE_INLINE void dither_unit(const philox_lanes *p, uint32_t unit, uint32_t part, fvec scaled[CST_UNIT_VECTORS])
{
    ivec words[2 * CHAINS];
    const ivec last = i_set(0x8000), high = i_set((int32_t)0xffff0000u);
    philox_two_groups(p, 2 * unit, part, words);
    CST_UNROLL
    for (int i = 0; i < 2 * CHAINS; i++) {
        scaled[2 * i] = i_to_f(i_or(i_shl(words[i], 16), last));
        scaled[2 * i + 1] = i_to_f(i_and_or(words[i], high, last));
    }
}
#define DITHER_SCALE 0x1p-32f
#endif
