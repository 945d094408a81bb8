/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block of a vector as a lattice point, and the point as bytes: what all protocols of the compressed mean share.
 *
 * Values live in the rotated domain, in units of 2^exponent: the caller scales a block by a power of two so that f32
 * arithmetic neither overflows nor loses denormals. Steps on the wire are absolute. Points are what the kernels call
 * points (kernels/quantise/quantise.h). All functions need the codecs' floating-point mode (kernels/fpmode).
 */
#ifndef CST_CODEC_BLOCK_H
#define CST_CODEC_BLOCK_H
#include "codec/wire.h"
#include "kernels/block.h"
#include "kernels/checksum/checksum.h"
#include "kernels/entropy/entropy.h"
#include "kernels/hadamard/hadamard.h"
#include "kernels/norm/norm.h"
#include "kernels/pack/pack.h"
#include "kernels/quantise/quantise.h"
#include "kernels/quantise/sum.h"
#include "kernels/random/random.h"

/* The kernels of one processor level, and the job's checksum keys. */
typedef struct {
    const cst_random_kernels *random;
    const cst_checksum_kernels *checksum;
    const cst_hadamard_kernels *hadamard;
    const cst_norm_kernels *norm;
    const cst_entropy_kernels *entropy;
    const cst_pack_kernels *pack;
    const cst_quantise_kernels *z, *e8;
    const cst_sum_kernels *sum_z, *sum_e8;
    _Alignas(64) int32_t keys[CST_CHECKSUM_KEYS];
} cst_tools;

void cst_tools_init(cst_tools *tools, int cpu_level, uint64_t seed);

/* Coordinates of the next block when `rest` >= 1 remain: 4096; at the end fewer, so cut that padding to a power of two
 * wastes no more than an eighth (2100 = 2048 + 52). */
uint32_t cst_next_block(size_t rest);

/* Which block, and with which randomness. */
typedef struct {
    cst_stream_root root;
    uint32_t index;  /* of the block in its tensor */
    uint32_t sender; /* whose dither */
    uint32_t phase;  /* CST_PHASE_... */
    uint32_t n;      /* padded length */
    int exponent;    /* values are in units of 2^exponent */
} cst_block_id;

/* What a dither stream is for. Part of the wire format. */
enum { CST_PHASE_UP = 0, CST_PHASE_DOWN = 1, CST_PHASE_REFINE = 2, CST_PHASE_SUM = 3 };

/* The geometry that kernels need; `desc` has code Z, E8, ENTROPY or PLAIN. */
cst_lattice_block cst_block_geometry(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc);
const cst_quantise_kernels *cst_block_kernels(const cst_tools *tools, uint8_t code);
/* Squared error per coordinate of that code with that step (in the step's own units). */
double cst_code_error(uint8_t code, double step);
/* Largest inner product of a dithering error (in steps) with what cst_quantise_kernels.need of E8 looks at; and of Z. */
double cst_code_reach(uint8_t code, bool need_e8);

/* Bytes of the payload of a block with one class for all units: Z, E8, WIDE, PLAIN, ZERO; EXACT with `element` bytes per
 * element and `count` elements. 0 for ENTROPY and ABSENT. */
size_t cst_block_bytes(cst_block_desc desc, uint32_t n, uint32_t count, size_t element);

/* Units' classes beside a block's payload (DOWN frames): ceil(n/256) bytes, one nibble per unit, low first: how many
 * valid classes above the descriptor's. */
size_t cst_classes_bytes(uint32_t n);
/* classes[u] := the class that will be sent, at least what it was; returns the descriptor's class. */
uint8_t cst_classes_write(uint8_t *classes, uint32_t n, uint8_t *out);
bool cst_classes_read(const uint8_t *in, uint8_t base, uint32_t n, uint8_t *classes);

/* Checksums as 16 bytes. */
void cst_check_write(uint8_t *at, cst_checksum sum);
cst_checksum cst_check_read(const uint8_t *at);

/* Whole integers, 4 bytes each. */
void cst_plain_write(const int32_t *points, uint32_t n, uint8_t *out);
void cst_plain_read(const uint8_t *in, uint32_t n, int32_t *points);
#endif
