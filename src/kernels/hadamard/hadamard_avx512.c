/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rotation in AVX-512. A full block is 16 x 16 x 16: the first pass goes over index bits 8..11 (sixteen vectors
 * 256 apart) and takes the signs, the second over bits 4..7 (sixteen vectors next to each other) and 0..3 (inside each
 * vector). Shorter blocks do their stages one by one.
 */
#include "kernels/lanes/avx512.h"
#include "kernels/hadamard/hadamard_lanes.h"

/* Stages over index bits 0..3, and the scale. s[j]: +1 in lanes whose bit j is clear, -1 where it is set. */
typedef struct {
    fvec sign[4];
    fvec scale;
} inner_stages;

static inner_stages inner_prepare(float scale)
{
    inner_stages s = {.scale = f_set(scale)};
    for (int j = 0; j < 4; j++) {
        float lane[VEC_LANES];
        for (int l = 0; l < VEC_LANES; l++)
            lane[l] = l >> j & 1 ? -1.0f : 1.0f;
        s.sign[j] = f_load(lane);
    }
    return s;
}

CST_LANE_INLINE fvec inner(fvec v, const inner_stages *s)
{
    v = f_fma(v, s->sign[0], _mm512_permute_ps(v, 0xB1));
    v = f_fma(v, s->sign[1], _mm512_permute_ps(v, 0x4E));
    v = f_fma(v, s->sign[2], _mm512_shuffle_f32x4(v, v, 0xB1));
    v = f_fma(v, s->sign[3], _mm512_shuffle_f32x4(v, v, 0x4E));
    return f_mul(v, s->scale);
}

/* Four stages over sixteen registers. */
CST_LANE_INLINE void butterflies_16(fvec r[16], fvec one)
{
    CST_UNROLL
    for (int half = 1; half < 16; half *= 2) {
        CST_UNROLL
        for (int i = 0; i < 8; i++) {
            int low = (i & ~(half - 1)) * 2 + (i & (half - 1));
            butterfly(&r[low], &r[low + half], one, i & 1);
        }
    }
}

CST_LANE_INLINE void outer_pass(const float *x, float *y, const uint32_t *signs, const float *next)
{
    const fvec one = opaque_one();
    for (uint32_t b = 0; b < 16; b++) {
        fvec r[16];
        prefetch_lines(next, 8 * b, 8);
        CST_UNROLL
        for (uint32_t a = 0; a < 16; a++) {
            r[a] = f_load(x + 256 * a + 16 * b);
            if (signs)
                r[a] = apply_signs(r[a], signs, 16 * a + b, 0);
        }
        butterflies_16(r, one);
        CST_UNROLL
        for (uint32_t a = 0; a < 16; a++)
            f_store(y + 256 * a + 16 * b, r[a]);
    }
}

CST_LANE_INLINE void inner_pass(const float *y, float *out, const uint32_t *signs, float scale, const float *next,
                                bool stream)
{
    const fvec one = opaque_one();
    const inner_stages s = inner_prepare(scale);
    for (uint32_t a = 0; a < 16; a++) {
        fvec r[16];
        prefetch_lines(next, 128 + 8 * a, 8);
        CST_UNROLL
        for (uint32_t b = 0; b < 16; b++)
            r[b] = f_load(y + 256 * a + 16 * b);
        butterflies_16(r, one);
        CST_UNROLL
        for (uint32_t b = 0; b < 16; b++) {
            fvec v = inner(r[b], &s);
            if (signs)
                v = apply_signs(v, signs, 16 * a + b, 0);
            put(out + 256 * a + 16 * b, v, stream);
        }
    }
}

/* Blocks below 4096: stage by stage over memory that is in the first cache anyway. */
static void last_stages(float *y, float *out, uint32_t n, const uint32_t *signs, float scale)
{
    const inner_stages s = inner_prepare(scale);
    for (uint32_t v = 0; v < n / CST_LANES; v++) {
        fvec w = inner(f_load(y + CST_LANES * v), &s);
        if (signs)
            w = apply_signs(w, signs, v, 0);
        f_store(out + CST_LANES * v, w);
    }
}

static void rotate_lanes(const float *x, float *y, uint32_t n, const uint32_t *signs, const float *next)
{
    const float scale = forward_scale(n);
    if (n == CST_BLOCK) {
        outer_pass(x, y, signs, next ? next : x);
        inner_pass(y, y, NULL, scale, next ? next : x, false);
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
        outer_pass(y, between, NULL, next ? next : y);
        inner_pass(between, x, signs, scale, next ? next : y, past_caches);
        if (past_caches)
            _mm_sfence();
        return;
    }
    copy_with_signs(y, local, n, NULL);
    outer_stages(local, n);
    last_stages(local, x, n, signs, scale);
}

const cst_hadamard_kernels cst_hadamard_avx512 = {.rotate = rotate_lanes, .unrotate = unrotate_lanes};
