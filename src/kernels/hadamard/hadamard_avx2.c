/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rotation in AVX2, whose sixteen registers hold eight operands and some constants. A full block goes in three
 * passes, over index bits 8 9 10, over 11 4 5, and over 6 7 0 1 2 3 (bit 3 distinguishes the two halves of a vector): the
 * order of stages that hadamard.h demands.
 */
#include "kernels/lanes/avx2.h"
#include "kernels/hadamard/hadamard_lanes.h"

/* Stages over index bits 0..2: +1 and -1 by lane. */
typedef struct {
    fvec sign[3];
    fvec scale;
} inner_stages;

static inner_stages inner_prepare(float scale)
{
    return (inner_stages){{_mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1), _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1),
                           _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1)},
                          f_set(scale)};
}

CST_LANE_INLINE fvec inner(fvec v, const inner_stages *s)
{
    v = f_fma(v, s->sign[0], _mm256_permute_ps(v, 0xB1));
    v = f_fma(v, s->sign[1], _mm256_permute_ps(v, 0x4E));
    return f_fma(v, s->sign[2], _mm256_permute2f128_ps(v, v, 1));
}

/* One stage over eight registers: pairs `half` apart. */
CST_LANE_INLINE void butterflies_8(fvec r[8], int half, fvec one)
{
    CST_UNROLL
    for (int i = 0; i < 4; i++) {
        int low = (i & ~(half - 1)) * 2 + (i & (half - 1));
        butterfly(&r[low], &r[low + half], one, i & 1);
    }
}
CST_LANE_INLINE void butterflies_three(fvec r[8], fvec one)
{
    butterflies_8(r, 1, one);
    butterflies_8(r, 2, one);
    butterflies_8(r, 4, one);
}

/* Index bits 8, 9, 10. */
CST_LANE_INLINE void first_pass(const float *x, float *y, const uint32_t *signs, const float *next)
{
    const fvec one = opaque_one();
    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t b = 0; b < 32; b++) {
            fvec r[8];
            prefetch_lines(next, 64 * half + 2 * b, 2);
            CST_UNROLL
            for (uint32_t a = 0; a < 8; a++) {
                uint32_t at = 2048 * half + 256 * a + 8 * b;
                r[a] = f_load(x + at);
                if (signs)
                    r[a] = apply_signs(r[a], signs, at / CST_LANES, b & 1);
            }
            butterflies_three(r, one);
            CST_UNROLL
            for (uint32_t a = 0; a < 8; a++)
                f_store(y + 2048 * half + 256 * a + 8 * b, r[a]);
        }
}

/* Index bits 11, 4, 5. */
CST_LANE_INLINE void second_pass(float *y)
{
    const fvec one = opaque_one();
    for (uint32_t i = 0; i < 64; i++) { /* bits 8, 9, 10; 6, 7; 3 */
        float *p = y + 256 * (i >> 3) + 64 * (i >> 1 & 3) + 8 * (i & 1);
        fvec r[8];
        CST_UNROLL
        for (int j = 0; j < 8; j++)
            r[j] = f_load(p + 2048 * (j & 1) + 16 * (j >> 1));
        butterflies_three(r, one);
        CST_UNROLL
        for (int j = 0; j < 8; j++)
            f_store(p + 2048 * (j & 1) + 16 * (j >> 1), r[j]);
    }
}

/* Index bits 6, 7 between registers, 0, 1, 2 inside them, 3 between registers. */
CST_LANE_INLINE void third_pass(const float *y, float *out, const uint32_t *signs, float scale, const float *next,
                                bool stream)
{
    const fvec one = opaque_one();
    const inner_stages s = inner_prepare(scale);
    for (uint32_t i = 0; i < 64; i++) { /* bits 8..11; 4, 5 */
        const uint32_t at = 256 * (i >> 2) + 16 * (i & 3);
        fvec r[8];
        prefetch_lines(next, 128 + 2 * i, 2);
        CST_UNROLL
        for (int j = 0; j < 8; j++)
            r[j] = f_load(y + at + 64 * (j & 3) + 8 * (j >> 2));
        butterflies_8(r, 1, one);
        butterflies_8(r, 2, one);
        CST_UNROLL
        for (int j = 0; j < 8; j++)
            r[j] = inner(r[j], &s);
        butterflies_8(r, 4, one);
        CST_UNROLL
        for (int j = 0; j < 8; j++) {
            const uint32_t to = at + 64 * (j & 3) + 8 * (j >> 2);
            fvec v = f_mul(r[j], s.scale);
            if (signs)
                v = apply_signs(v, signs, to / CST_LANES, j >> 2);
            put(out + to, v, stream);
        }
    }
}

/* Blocks below 4096: bits 0..3 of each pair of registers, the others having been done stage by stage. */
static void last_stages(const float *y, float *out, uint32_t n, const uint32_t *signs, float scale)
{
    const inner_stages s = inner_prepare(scale);
    for (uint32_t v = 0; v < n / CST_LANES; v++) {
        fvec low = inner(f_load(y + CST_LANES * v), &s), high = inner(f_load(y + CST_LANES * v + 8), &s);
        fvec sum = f_mul(f_add(low, high), s.scale), difference = f_mul(f_sub(low, high), s.scale);
        f_store(out + CST_LANES * v, signs ? apply_signs(sum, signs, v, 0) : sum);
        f_store(out + CST_LANES * v + 8, signs ? apply_signs(difference, signs, v, 1) : difference);
    }
}

static void rotate_lanes(const float *x, float *y, uint32_t n, const uint32_t *signs, const float *next)
{
    const float scale = forward_scale(n);
    if (n == CST_BLOCK) {
        first_pass(x, y, signs, next ? next : x);
        second_pass(y);
        third_pass(y, y, NULL, scale, next ? next : x, false);
        return;
    }
    copy_with_signs(x, y, n, signs);
    outer_stages(y, n);
    last_stages(y, y, n, NULL, scale);
}

static void unrotate_lanes(const float *y, float *x, uint32_t n, const uint32_t *signs, const float *next, bool stream)
{
    const float scale = inverse_scale(n);
    _Alignas(64) float local[CST_BLOCK];
    if (n == CST_BLOCK) {
        const bool past_caches = stream && (uintptr_t)x % 64 == 0;
        float *between = past_caches ? local : x;
        first_pass(y, between, NULL, next ? next : y);
        second_pass(between);
        third_pass(between, x, signs, scale, next ? next : y, past_caches);
        if (past_caches)
            _mm_sfence();
        return;
    }
    copy_with_signs(y, local, n, NULL);
    outer_stages(local, n);
    last_stages(local, x, n, signs, scale);
}

const cst_hadamard_kernels cst_hadamard_avx2 = {.rotate = rotate_lanes, .unrotate = unrotate_lanes};
