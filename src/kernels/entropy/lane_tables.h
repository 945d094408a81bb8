/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permutations of eight lanes for every set of them, as constants: byte i of an entry is the lane that position i takes.
 *
 *     lanes_to_top[set]     the set's lanes, in order, in the highest positions (what is below is lane 0)
 *     ranks_of_lanes[set]   position i takes the rank of i in the set: spreads the first lanes over the set
 */
#ifndef CST_KERNELS_ENTROPY_LANE_TABLES_H
#define CST_KERNELS_ENTROPY_LANE_TABLES_H
#include <stdint.h>

#define BIT(set, i) ((set) >> (i)&1)
#define SIZE(set)                                                                                                      \
    (BIT(set, 0) + BIT(set, 1) + BIT(set, 2) + BIT(set, 3) + BIT(set, 4) + BIT(set, 5) + BIT(set, 6) + BIT(set, 7))
#define RANK(set, i) SIZE((set) & ((1 << (i)) - 1))

#define TOP(set, i)    ((uint64_t)(BIT(set, i) * (i)) << 8 * ((8 - SIZE(set) + RANK(set, i)) & 7))
#define SPREAD(set, i) ((uint64_t)(RANK(set, i) * BIT(set, i)) << 8 * (i))

#define EIGHT(OF, set)                                                                                                 \
    (OF(set, 0) | OF(set, 1) | OF(set, 2) | OF(set, 3) | OF(set, 4) | OF(set, 5) | OF(set, 6) | OF(set, 7))
#define FOUR_SETS(OF, s)    EIGHT(OF, (s)), EIGHT(OF, (s) + 1), EIGHT(OF, (s) + 2), EIGHT(OF, (s) + 3)
#define SIXTEEN_SETS(OF, s) FOUR_SETS(OF, s), FOUR_SETS(OF, (s) + 4), FOUR_SETS(OF, (s) + 8), FOUR_SETS(OF, (s) + 12)
#define ALL_SETS(OF)                                                                                                   \
    SIXTEEN_SETS(OF, 0), SIXTEEN_SETS(OF, 16), SIXTEEN_SETS(OF, 32), SIXTEEN_SETS(OF, 48), SIXTEEN_SETS(OF, 64),       \
        SIXTEEN_SETS(OF, 80), SIXTEEN_SETS(OF, 96), SIXTEEN_SETS(OF, 112), SIXTEEN_SETS(OF, 128),                      \
        SIXTEEN_SETS(OF, 144), SIXTEEN_SETS(OF, 160), SIXTEEN_SETS(OF, 176), SIXTEEN_SETS(OF, 192),                    \
        SIXTEEN_SETS(OF, 208), SIXTEEN_SETS(OF, 224), SIXTEEN_SETS(OF, 240)

static const uint64_t lanes_to_top[256] = {ALL_SETS(TOP)};
static const uint64_t ranks_of_lanes[256] = {ALL_SETS(SPREAD)};
#endif
