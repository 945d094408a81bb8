/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared randomness: dither, rotation signs and plain words, which any rank can regenerate from what it knows.
 *
 * A stream is a Philox key and three counter words; the fourth counter word numbers the calls inside the stream.
 *
 *     root:    key  = first two words of Philox(key = seed, counter = tensor low, tensor high, call low, call high)
 *     stream:  counter words 1..3 = block, sender, phase * 2^8 + use
 *
 * `call` is the tensor's own call counter, so nothing depends on how tensors are grouped into messages. Two (tensor,
 * call) pairs under one seed share a root with probability 2^-64. Rotation signs are common to all senders: their
 * sender is CST_EVERY_SENDER.
 *
 * Layout of the words: word 32g + 16v + l of a stream is word (l & 1) + 2v of call 8g + (l >> 1). The dither takes 16
 * bits per coordinate: coordinate 64g + 16t + l takes half t & 1 (0 = low) of word 32g + 16(t >> 1) + l.
 */
#ifndef CST_KERNELS_RANDOM_RANDOM_H
#define CST_KERNELS_RANDOM_RANDOM_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t key[2];
} cst_stream_root;

typedef struct {
    uint32_t key[2];
    uint32_t ctr[3];
} cst_stream;

/* What the randomness is for. Numbers are part of the wire format. */
typedef enum {
    CST_USE_DITHER = 0,   /* theta of a sender; A of the homomorphic code */
    CST_USE_SLOPE = 1,    /* B of the homomorphic code (theta_u = A + u B) */
    CST_USE_SIGNS = 2,    /* signs of the rotation */
    CST_USE_CHECKSUM = 3, /* checksum keys */
    CST_USE_BASELINE = 4, /* stochastic rounding and sampling of the baseline codecs */
    CST_USE_LEADER = 5,   /* choices that all ranks make alike: leaders, trees, sampled coordinates */
    CST_USE_PRIVATE = 6   /* rounding without shared randomness: the seed is the sender's own */
} cst_stream_use;

#define CST_EVERY_SENDER 0xFFFFFFFFu

cst_stream_root cst_stream_root_of(uint64_t seed, uint64_t tensor, uint64_t call);
/* `phase` < 2^24 numbers the steps of an exchange (its meaning is the caller's). */
cst_stream cst_stream_of(cst_stream_root root, cst_stream_use use, uint32_t phase, uint32_t sender, uint32_t block);

/* The kernels, one table per instruction set, all bit-identical. */
typedef struct {
    /* theta[0..n): uniform on the 2^16 odd multiples of 2^-17 in (-1/2, 1/2), symmetric, exact. n: multiple of 128. */
    void (*dither)(const cst_stream *stream, uint32_t n, float *theta);
    /* Words first .. first + count of the stream; both multiples of 32. Rotation signs are words 0 .. n/32 or more. */
    void (*words)(const cst_stream *stream, uint32_t first, uint32_t count, uint32_t *words);
} cst_random_kernels;

/* The best table not above `cpu_level` (CST_CPU_..., src/cpu/cpu.h). */
const cst_random_kernels *cst_random_kernels_for(int cpu_level);

extern const cst_random_kernels cst_random_scalar, cst_random_avx2, cst_random_avx512;

/* 16 random bits as theta * 2^32: an int32, odd multiple of 2^15, so every product with a power of two is exact. */
static inline int32_t cst_dither_scaled(uint32_t half)
{
    return (int32_t)((half << 16) | 0x8000u);
}
#endif
