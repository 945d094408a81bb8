/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CST_KERNELS_CHECKSUM_CHECKSUM_LANES_H
#define CST_KERNELS_CHECKSUM_CHECKSUM_LANES_H
#include "kernels/checksum/checksum.h"
#include "kernels/lanes/lanes.h"

/* Both sums, of even and odd lanes apart. */
typedef struct {
    ivec even[2], odd[2];
} checksum_lanes;

CST_LANE_INLINE checksum_lanes checksum_start(void)
{
    return (checksum_lanes){{i_zero(), i_zero()}, {i_zero(), i_zero()}};
}
/* keys: those of the first lane of `points`. */
CST_LANE_INLINE void checksum_add(checksum_lanes *s, ivec points, const int32_t *keys)
{
    const ivec odd = q_shr(points, 32);
    CST_UNROLL
    for (int j = 0; j < 2; j++) {
        const ivec key = i_load(keys + CST_CHECKSUM_SHIFT * j);
        s->even[j] = q_add(s->even[j], q_mul_even_signed(points, key));
        s->odd[j] = q_add(s->odd[j], q_mul_even_signed(odd, q_shr(key, 32)));
    }
}
CST_LANE_INLINE cst_checksum checksum_end(const checksum_lanes *s)
{
    return (cst_checksum){{q_sum(q_add(s->even[0], s->odd[0])), q_sum(q_add(s->even[1], s->odd[1]))}};
}
#endif
