/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the compressed path, and the pipelines that codecs make of them; dither and checksum are always included. */
#include "bench_kernels/row.h"
#include "cpu/cpu.h"
#include "kernels/block.h"
#include "kernels/entropy/entropy.h"
#include "kernels/flush.h"
#include "kernels/hadamard/hadamard.h"
#include "kernels/norm/norm.h"
#include "kernels/pack/pack.h"
#include "kernels/quantise/sum.h"

#include <math.h>
#include <string.h>

/* What the buffers hold: vectors, codes, integers. */
enum { X, OUT, CODES, POINTS, BUFFERS };

static float *block_of(char *buffer, size_t b)
{
    return (float *)(void *)buffer + b * CST_BLOCK;
}
static uint8_t *codes_of(char *buffer, size_t b)
{
    return (uint8_t *)buffer + b * CST_PACKED_MAX;
}
static int32_t *points_of(char *buffer, size_t b)
{
    return (int32_t *)(void *)buffer + b * CST_BLOCK;
}

/* The kernels of the level in force, and what all blocks share. */
typedef struct {
    const cst_random_kernels *random;
    const cst_hadamard_kernels *hadamard;
    const cst_quantise_kernels *quantise;
    const cst_sum_kernels *sum;
    const cst_entropy_kernels *entropy;
    const cst_norm_kernels *norm;
    const cst_checksum_kernels *checksum;
    cst_stream_root root;
    float step;
    uint8_t classes[CST_BLOCK_UNITS];
    cst_entropy_model model;
    cst_flush_mode saved;
} kit;

static _Alignas(64) int32_t keys[CST_CHECKSUM_KEYS];

/* number: lattice, class (0: entropy) */
static kit open_kit(const kernel_row *row)
{
    const int level = (int)cst_cpu_level();
    const cst_lattice_kind lattice = (cst_lattice_kind)row->number[0];
    kit k = {cst_random_kernels_for(level),
             cst_hadamard_kernels_for(level),
             cst_quantise_kernels_for(lattice, level),
             cst_sum_kernels_for(lattice, level),
             cst_entropy_kernels_for(level),
             cst_norm_kernels_for(level),
             cst_checksum_kernels_for(level),
             cst_stream_root_of(1, 2, 3),
             0.25f,
             {0},
             {0},
             cst_flush_enter()};
    const int class = row->number[1] ? row->number[1] : CST_CLASS_MIN;
    memset(k.classes, class, sizeof k.classes);
    k.model = cst_entropy_model_for(2.0f);
    if (!row->number[1])
        k.step = 0.2886f; /* x, uniform on (-1, 1), is two steps rms */
    return k;
}
static void close_kit(const kit *k)
{
    cst_flush_leave(k->saved);
}

static cst_lattice_block lattice_block(const kit *k, size_t b)
{
    return (cst_lattice_block){CST_BLOCK, k->step, 1.0f, cst_stream_of(k->root, CST_USE_DITHER, 0, 1, (uint32_t)b),
                               keys};
}
static cst_sum_block sum_block(const kit *k, size_t b)
{
    const uint32_t block = (uint32_t)b;
    return (cst_sum_block){CST_BLOCK, k->step, cst_stream_of(k->root, CST_USE_DITHER, 0, CST_EVERY_SENDER, block),
                           cst_stream_of(k->root, CST_USE_SLOPE, 0, CST_EVERY_SENDER, block), keys};
}
static void make_signs(const kit *k, size_t b, uint32_t signs[CST_SIGN_WORDS])
{
    cst_stream s = cst_stream_of(k->root, CST_USE_SIGNS, 0, CST_EVERY_SENDER, (uint32_t)b);
    k->random->words(&s, 0, CST_SIGN_WORDS, signs);
}

/* --- one block, by kernel: `b` counts down where streams are written from their end --- */

static void do_dither(const kit *k, char *const buffer[], size_t b)
{
    _Alignas(64) float theta[CST_BLOCK];
    cst_stream s = cst_stream_of(k->root, CST_USE_DITHER, 0, 1, (uint32_t)b);
    (void)buffer;
    k->random->dither(&s, CST_BLOCK, theta);
    __asm__ volatile("" : : "r"(theta) : "memory");
}
static void do_checksum(const kit *k, char *const buffer[], size_t b)
{
    cst_checksum sum = k->checksum->points(points_of(buffer[POINTS], b), CST_BLOCK, keys);
    __asm__ volatile("" : : "r"(&sum) : "memory");
}
static void do_stats(const kit *k, char *const buffer[], size_t b)
{
    cst_norm_stats s = k->norm->stats(block_of(buffer[X], b), CST_BLOCK);
    __asm__ volatile("" : : "r"(&s) : "memory");
}
static void do_dot(const kit *k, char *const buffer[], size_t b)
{
    double d = k->norm->dot(block_of(buffer[X], b), block_of(buffer[OUT], b), CST_BLOCK);
    __asm__ volatile("" : : "r"(&d) : "memory");
}
static void do_rotate(const kit *k, char *const buffer[], size_t b)
{
    _Alignas(64) float rotated[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    make_signs(k, b, signs);
    k->hadamard->rotate(block_of(buffer[X], b), rotated, CST_BLOCK, signs, block_of(buffer[X], b + 1));
    __asm__ volatile("" : : "r"(rotated) : "memory");
}
static void do_unrotate(const kit *k, char *const buffer[], size_t b)
{
    uint32_t signs[CST_SIGN_WORDS];
    make_signs(k, b, signs);
    k->hadamard->unrotate(block_of(buffer[X], b), block_of(buffer[OUT], b), CST_BLOCK, signs,
                          block_of(buffer[X], b + 1), true);
}
static void do_encode(const kit *k, char *const buffer[], size_t b)
{
    const cst_lattice_block l = lattice_block(k, b);
    k->quantise->encode(&l, block_of(buffer[X], b), k->classes, codes_of(buffer[CODES], b), NULL);
}
static void do_decode(const kit *k, char *const buffer[], size_t b)
{
    const cst_lattice_block l = lattice_block(k, b);
    k->quantise->decode(&l, codes_of(buffer[CODES], b), k->classes, block_of(buffer[X], b), 1.0f,
                        block_of(buffer[OUT], b), NULL);
}
static void do_quantise(const kit *k, char *const buffer[], size_t b)
{
    const cst_lattice_block l = lattice_block(k, b);
    k->quantise->quantise(&l, block_of(buffer[X], b), points_of(buffer[POINTS], b));
}
static void do_reconstruct(const kit *k, char *const buffer[], size_t b)
{
    const cst_lattice_block l = lattice_block(k, b);
    k->quantise->reconstruct(&l, points_of(buffer[POINTS], b), block_of(buffer[OUT], b));
}
static void do_need(const kit *k, char *const buffer[], size_t b)
{
    float need[CST_BLOCK_UNITS] = {0};
    k->quantise->need(block_of(buffer[X], b), block_of(buffer[OUT], b), CST_BLOCK, 0.9f, k->step, need);
    __asm__ volatile("" : : "r"(need) : "memory");
}
static void do_sum_encode(const kit *k, char *const buffer[], size_t b)
{
    const cst_sum_block s = sum_block(k, b);
    k->sum->encode(&s, block_of(buffer[X], b), 3, codes_of(buffer[CODES], b), NULL);
}
static void do_sum_decode(const kit *k, char *const buffer[], size_t b)
{
    const cst_sum_block s = sum_block(k, b);
    k->sum->decode(&s, codes_of(buffer[CODES], b), 4, block_of(buffer[X], b), 1.0f, block_of(buffer[OUT], b), NULL);
}
static void do_rotate_encode(const kit *k, char *const buffer[], size_t b)
{
    _Alignas(64) float rotated[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    const cst_lattice_block l = lattice_block(k, b);
    make_signs(k, b, signs);
    k->hadamard->rotate(block_of(buffer[X], b), rotated, CST_BLOCK, signs, block_of(buffer[X], b + 1));
    k->quantise->encode(&l, rotated, k->classes, codes_of(buffer[CODES], b), NULL);
}
static void do_decode_unrotate(const kit *k, char *const buffer[], size_t b)
{
    _Alignas(64) float rotated[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    const cst_lattice_block l = lattice_block(k, b);
    k->quantise->decode(&l, codes_of(buffer[CODES], b), k->classes, block_of(buffer[X], b), 1.0f, rotated, NULL);
    make_signs(k, b, signs);
    k->hadamard->unrotate(rotated, block_of(buffer[OUT], b), CST_BLOCK, signs, block_of(buffer[X], b + 1), true);
}

typedef void one_block(const kit *, char *const buffer[], size_t b);

static void run_blocks(const kernel_row *row, char *const buffer[], size_t bytes)
{
    const kit k = open_kit(row);
    one_block *act;
    memcpy(&act, row->arg, sizeof act);
    for (size_t b = 0; b < bytes / (4 * CST_BLOCK); b++)
        act(&k, buffer, b);
    close_kit(&k);
}

static void prepare_codes(const kernel_row *row, char *const buffer[], size_t bytes)
{
    cst_checksum_keys(7, keys);
    const kit k = open_kit(row);
    for (size_t b = 0; b < bytes / (4 * CST_BLOCK); b++) {
        if (row->number[1])
            do_encode(&k, buffer, b);
        do_quantise(&k, buffer, b);
    }
    close_kit(&k);
}

/* --- the entropy code: streams of 16 blocks, each from the end of its place in CODES --- */

enum { STREAM_BLOCKS = 16 };

static size_t stream_blocks(size_t bytes, size_t first)
{
    const size_t left = bytes / (4 * CST_BLOCK) - first;
    return left < STREAM_BLOCKS ? left : STREAM_BLOCKS;
}

static uint8_t *encode_stream(const kit *k, char *const buffer[], size_t first, size_t blocks, bool whole_pipeline)
{
    _Alignas(64) float rotated[CST_BLOCK];
    _Alignas(64) int32_t points[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    cst_entropy_encoder e;
    cst_entropy_encoder_init(&e, codes_of(buffer[CODES], first), blocks * CST_PACKED_MAX);
    for (size_t b = first + blocks; b-- > first;) {
        const int32_t *source = points_of(buffer[POINTS], b);
        if (whole_pipeline) {
            const cst_lattice_block l = lattice_block(k, b);
            make_signs(k, b, signs);
            k->hadamard->rotate(block_of(buffer[X], b), rotated, CST_BLOCK, signs, block_of(buffer[X], b ? b - 1 : 0));
            k->quantise->quantise(&l, rotated, points);
            source = points;
        }
        k->entropy->encode(&e, k->model, source, CST_BLOCK);
    }
    return cst_entropy_encoder_finish(&e);
}

static void decode_stream(const kit *k, char *const buffer[], size_t first, size_t blocks, bool whole_pipeline)
{
    _Alignas(64) float rotated[CST_BLOCK];
    _Alignas(64) int32_t points[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    const uint8_t *end = codes_of(buffer[CODES], first + blocks), *start;
    cst_entropy_decoder d;
    memcpy(&start, end, sizeof start);
    cst_entropy_decoder_init(&d, start, (size_t)(end - start));
    for (size_t b = first; b < first + blocks; b++) {
        k->entropy->decode(&d, k->model, points, CST_BLOCK);
        if (!whole_pipeline)
            continue;
        const cst_lattice_block l = lattice_block(k, b);
        k->quantise->reconstruct(&l, points, rotated);
        make_signs(k, b, signs);
        k->hadamard->unrotate(rotated, block_of(buffer[OUT], b), CST_BLOCK, signs, NULL, true);
    }
}

/* number[2]: decode; number[3]: with rotation, quantiser and dither */
static void run_streams(const kernel_row *row, char *const buffer[], size_t bytes)
{
    const kit k = open_kit(row);
    for (size_t first = 0; first < bytes / (4 * CST_BLOCK); first += STREAM_BLOCKS) {
        const size_t blocks = stream_blocks(bytes, first);
        if (row->number[2])
            decode_stream(&k, buffer, first, blocks, row->number[3]);
        else
            encode_stream(&k, buffer, first, blocks, row->number[3]);
    }
    close_kit(&k);
}

/* Each stream's start is noted behind its end, where the next one has slack enough. */
static void prepare_streams(const kernel_row *row, char *const buffer[], size_t bytes)
{
    prepare_codes(row, buffer, bytes);
    const kit k = open_kit(row);
    for (size_t first = 0; first < bytes / (4 * CST_BLOCK); first += STREAM_BLOCKS) {
        const size_t blocks = stream_blocks(bytes, first);
        const uint8_t *start = encode_stream(&k, buffer, first, blocks, row->number[3]);
        memcpy(codes_of(buffer[CODES], first + blocks), &start, sizeof start);
    }
    close_kit(&k);
}

/* --- the rows --- */

#define BLOCK_BYTES (4 * CST_BLOCK)
#define ROW(name, act, moved, lattice, class)                                                                          \
    {                                                                                                                  \
        name, BUFFERS, moved, BLOCK_BYTES, run_blocks, prepare_codes, &(one_block *const){act},                        \
        {                                                                                                              \
            lattice, class                                                                                             \
        }                                                                                                              \
    }
#define LATTICE_ROWS(text, lattice, class, bits)                                                                       \
    ROW(text " encode", do_encode, 1 + bits / 32.0, lattice, class),                                                   \
        ROW(text " decode", do_decode, 2 + bits / 32.0, lattice, class),                                               \
        ROW(text " rotate+encode", do_rotate_encode, 1 + bits / 32.0, lattice, class),                                 \
        ROW(text " decode+unrotate", do_decode_unrotate, 2 + bits / 32.0, lattice, class)
#define STREAM_ROW(name, decode, whole)                                                                                \
    {                                                                                                                  \
        name, BUFFERS, 1.1, BLOCK_BYTES, run_streams, prepare_streams, NULL,                                           \
        {                                                                                                              \
            CST_LATTICE_Z, 0, decode, whole                                                                            \
        }                                                                                                              \
    }

const kernel_row kernel_rows_codec[] = {
    ROW("codec dither", do_dither, 0, CST_LATTICE_Z, 16),
    ROW("codec checksum", do_checksum, 1, CST_LATTICE_Z, 16),
    ROW("codec stats", do_stats, 1, CST_LATTICE_Z, 16),
    ROW("codec dot", do_dot, 2, CST_LATTICE_Z, 16),
    ROW("codec rotate", do_rotate, 1, CST_LATTICE_Z, 16),
    ROW("codec unrotate nt", do_unrotate, 2, CST_LATTICE_Z, 16),
    LATTICE_ROWS("codec z q=16", CST_LATTICE_Z, 16, 4),
    LATTICE_ROWS("codec z q=256", CST_LATTICE_Z, 32, 8),
    LATTICE_ROWS("codec z q=11", CST_LATTICE_Z, 14, 3.5),
    ROW("codec z q=107 encode", do_encode, 1.2, CST_LATTICE_Z, 27),
    ROW("codec z q=107 decode", do_decode, 2.2, CST_LATTICE_Z, 27),
    ROW("codec z q=1448 encode", do_encode, 1.33, CST_LATTICE_Z, 42),
    ROW("codec z q=1448 decode", do_decode, 2.33, CST_LATTICE_Z, 42),
    ROW("codec z quantise", do_quantise, 2, CST_LATTICE_Z, 0),
    ROW("codec z reconstruct", do_reconstruct, 2, CST_LATTICE_Z, 0),
    ROW("codec z need", do_need, 2, CST_LATTICE_Z, 16),
    LATTICE_ROWS("codec e8 q=16", CST_LATTICE_E8, 16, 4),
    LATTICE_ROWS("codec e8 q=11", CST_LATTICE_E8, 14, 3.5),
    ROW("codec e8 need", do_need, 2, CST_LATTICE_E8, 16),
    ROW("codec z sum encode", do_sum_encode, 1.25, CST_LATTICE_Z, 32),
    ROW("codec z sum decode", do_sum_decode, 2.25, CST_LATTICE_Z, 32),
    ROW("codec e8 sum encode", do_sum_encode, 1.25, CST_LATTICE_E8, 32),
    ROW("codec e8 sum decode", do_sum_decode, 2.25, CST_LATTICE_E8, 32),
    STREAM_ROW("codec entropy encode", 0, 0),
    STREAM_ROW("codec entropy decode", 1, 0),
    STREAM_ROW("codec entropy rotate+quantise+encode", 0, 1),
    STREAM_ROW("codec entropy decode+unrotate", 1, 1),
    {NULL, 0, 0, 0, NULL, NULL, NULL, {0}},
};
