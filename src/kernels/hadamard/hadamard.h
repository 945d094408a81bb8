/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Randomised Hadamard rotation of a block: y = c H D x, with D random signs and H the Walsh-Hadamard matrix of +-1.
 *
 * Scaling. Forward multiplies by 2^-floor(m/2), inverse by 2^-ceil(m/2), n = 2^m: both exact powers of two, and the
 * inverse undoes the forward without a systematic factor. For even m (n = 256, 1024, 4096) the rotation is orthogonal; for
 * odd m (128, 512, 2048: only in the last block of a tensor) rotated coordinates are sqrt(2) times larger than
 * orthogonal ones, that is, energies are cst_rotation_energy(n) = 2 times those of the input. A step chosen in the
 * rotated domain stands for step / sqrt(that) in the original one.
 *
 * Rounding. Stages are done in a fixed order of index bits (8 9 10 11 4 5 6 7 0 1 2 3, those below m), each output
 * being one rounded sum or difference, so all variants agree bit for bit. Relative error about 1e-7 of the rms.
 * At FLT_MAX sums overflow: scale blocks by a power of two before.
 */
#ifndef CST_KERNELS_HADAMARD_HADAMARD_H
#define CST_KERNELS_HADAMARD_HADAMARD_H
#include <stdbool.h>
#include <stdint.h>

/* Words of signs that a rotation reads: one bit per coordinate. Coordinate 16v + l takes bit 31 - (v & 31) of word
 * 16 (v >> 5) + l; set means minus. They are the first words of a stream of use CST_USE_SIGNS. */
enum { CST_SIGN_WORDS = 128 };
/* How many of them a block of n needs, rounded up to what cst_random_kernels.words can produce (32). */
static inline uint32_t cst_sign_words(uint32_t n)
{
    return n <= 1024 ? 32 : n / 32;
}
/* Ratio of energies after and before the forward rotation: 1 or 2. */
static inline float cst_rotation_energy(uint32_t n)
{
    return (n & 0x55555555u) ? 1.0f : 2.0f;
}

typedef struct {
    /* y = c H D x; n a power of two, 128..4096; y may be x, no other overlap. `next` (may be NULL) is where the
     * following block will be read from: it is prefetched meanwhile. */
    void (*rotate)(const float *x, float *y, uint32_t n, const uint32_t *signs, const float *next);
    /* x = c' D H y. `stream`: the output goes past the caches (for results that are not read again soon: a quarter
     * faster from memory to memory); only for full blocks with x aligned to 64 bytes, else these are ordinary stores. */
    void (*unrotate)(const float *y, float *x, uint32_t n, const uint32_t *signs, const float *next, bool stream);
} cst_hadamard_kernels;

const cst_hadamard_kernels *cst_hadamard_kernels_for(int cpu_level);

extern const cst_hadamard_kernels cst_hadamard_scalar, cst_hadamard_avx2, cst_hadamard_avx512;

/* The same in f64, in place, plain C: for blocks whose mean exceeds 2^13 spreads, where f32 sums would cost accuracy. */
void cst_rotate_f64(double *x, uint32_t n, const uint32_t *signs);
void cst_unrotate_f64(double *x, uint32_t n, const uint32_t *signs);
#endif
