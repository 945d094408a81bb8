/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/block.h"

#include "codec/portable.h"

void cst_tools_init(cst_tools *tools, int cpu_level, uint64_t seed)
{
    tools->random = cst_random_kernels_for(cpu_level);
    tools->checksum = cst_checksum_kernels_for(cpu_level);
    tools->hadamard = cst_hadamard_kernels_for(cpu_level);
    tools->norm = cst_norm_kernels_for(cpu_level);
    tools->entropy = cst_entropy_kernels_for(cpu_level);
    tools->pack = cst_pack_kernels_for(cpu_level);
    tools->z = cst_quantise_kernels_for(CST_LATTICE_Z, cpu_level);
    tools->e8 = cst_quantise_kernels_for(CST_LATTICE_E8, cpu_level);
    tools->sum_z = cst_sum_kernels_for(CST_LATTICE_Z, cpu_level);
    tools->sum_e8 = cst_sum_kernels_for(CST_LATTICE_E8, cpu_level);
    cst_checksum_keys(seed, tools->keys);
}

uint32_t cst_next_block(size_t rest)
{
    if (rest >= CST_BLOCK)
        return CST_BLOCK;
    uint32_t n = cst_padded_length(rest);
    bool wasteful = n > CST_UNIT && rest < n - n / 8;
    return wasteful ? n / 2 : (uint32_t)rest;
}

cst_lattice_block cst_block_geometry(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc)
{
    return (cst_lattice_block){
        .n = id->n,
        .step = (float)cst_step_value(desc.step, id->exponent),
        .weight = 1,
        .dither = cst_stream_of(id->root, CST_USE_DITHER, id->phase, id->sender, id->index),
        .keys = tools->keys,
    };
}

const cst_quantise_kernels *cst_block_kernels(const cst_tools *tools, uint8_t code)
{
    return code == CST_CODE_E8 ? tools->e8 : tools->z;
}

double cst_code_error(uint8_t code, double step)
{
    const double second_moment_z = 1.0 / 12, second_moment_e8 = 929.0 / 12960;
    return (code == CST_CODE_E8 ? second_moment_e8 : second_moment_z) * step * step;
}

double cst_code_reach(uint8_t code, bool need_e8)
{
    if (need_e8) /* minimal vectors have norm 2: half of it on E8's own cell, (1/2)^8 . (1/2)^8 on the cube */
        return code == CST_CODE_E8 ? 1 : 2;
    return code == CST_CODE_E8 ? 2 : 1; /* 2 max |r_i|: E8's cell has vertices at distance 1 on the axes */
}

size_t cst_block_bytes(cst_block_desc desc, uint32_t n, uint32_t count, size_t element)
{
    uint8_t classes[CST_BLOCK_UNITS];
    switch (desc.code) {
    case CST_CODE_EXACT: return desc.class == CST_CLASS_SAME ? 0 : count * element;
    case CST_CODE_Z:
    case CST_CODE_E8: memset(classes, desc.class, sizeof classes); return cst_packed_bytes(classes, n / CST_UNIT);
    case CST_CODE_WIDE:
    case CST_CODE_PLAIN: return ((size_t)n * desc.class + 7) / 8;
    default: return 0;
    }
}

size_t cst_classes_bytes(uint32_t n)
{
    return (n / CST_UNIT + 1) / 2;
}

/* Valid classes in order, so that a nibble need not count the gaps. */
static const uint8_t ladder[] = {4,  7,  8,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                 28, 29, 30, 31, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64};
enum { RUNGS = sizeof ladder, NIBBLE_MAX = 15 };

/* The first rung that is no less than the class. */
static unsigned rung_of(uint8_t class)
{
    static const uint8_t rung[CST_CLASS_MAX + 1] = {
        0,  0,  0,  0,  0,  1,  1,  1,  2,  3,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
        15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31,
        31, 32, 32, 33, 33, 34, 34, 35, 35, 36, 36, 37, 37, 38, 38, 39, 39, 40, 40, 41, 41,
    };
    return rung[class < CST_CLASS_MAX ? class : CST_CLASS_MAX];
}

uint8_t cst_classes_write(uint8_t *classes, uint32_t n, uint8_t *out)
{
    uint32_t units = n / CST_UNIT;
    unsigned rung[CST_BLOCK_UNITS], low = RUNGS, high = 0;
    for (uint32_t u = 0; u < units; u++) {
        rung[u] = rung_of(classes[u]);
        low = rung[u] < low ? rung[u] : low;
        high = rung[u] > high ? rung[u] : high;
    }
    if (high - low > NIBBLE_MAX)
        low = high - NIBBLE_MAX;
    memset(out, 0, cst_classes_bytes(n));
    for (uint32_t u = 0; u < units; u++) {
        unsigned above = rung[u] > low ? rung[u] - low : 0;
        classes[u] = ladder[low + above];
        out[u / 2] |= (uint8_t)(above << (u % 2 ? 4 : 0));
    }
    return ladder[low];
}

bool cst_classes_read(const uint8_t *in, uint8_t base, uint32_t n, uint8_t *classes)
{
    unsigned low = rung_of(base);
    for (uint32_t u = 0; u < n / CST_UNIT; u++) {
        unsigned r = low + (in[u / 2] >> (u % 2 ? 4 : 0) & 15);
        if (r >= RUNGS)
            return false;
        classes[u] = ladder[r];
    }
    return n / CST_UNIT % 2 == 0 || in[n / CST_UNIT / 2] >> 4 == 0;
}

void cst_check_write(uint8_t *at, cst_checksum sum)
{
    cst_writer w = cst_writer_of(at, CST_CHECK_BYTES);
    cst_put(&w, sum.sum[0], 8);
    cst_put(&w, sum.sum[1], 8);
}

cst_checksum cst_check_read(const uint8_t *at)
{
    cst_reader r = cst_reader_of(at, CST_CHECK_BYTES);
    uint64_t low = cst_get64(&r);
    return (cst_checksum){{low, cst_get64(&r)}};
}

void cst_plain_write(const int32_t *points, uint32_t n, uint8_t *out)
{
    cst_writer w = cst_writer_of(out, (size_t)4 * n);
    for (uint32_t i = 0; i < n; i++)
        cst_put(&w, (uint32_t)points[i], 4);
}

void cst_plain_read(const uint8_t *in, uint32_t n, int32_t *points)
{
    cst_reader r = cst_reader_of(in, (size_t)4 * n);
    for (uint32_t i = 0; i < n; i++)
        points[i] = (int32_t)cst_get32(&r);
}
