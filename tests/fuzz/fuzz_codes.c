/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile payloads: entropy streams and packed lattice codes. Whatever comes, every level of this machine must make the
 * same of it, without reading or writing out of bounds. */
#include "cpu/cpu.h"
#include "kernels/block.h"
#include "kernels/entropy/entropy.h"
#include "kernels/flush.h"
#include "kernels/pack/pack.h"
#include "kernels/quantise/quantise.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHOICES = 4, MAX_BLOCKS = 4 };

static void require(bool fact)
{
    if (!fact)
        abort();
}

/* Blocks decoded, plus one if the stream ended as it should; the points one after another. */
static int decode_stream(const cst_entropy_kernels *k, const uint8_t *choice, const uint8_t *bytes, size_t size,
                         int32_t *points)
{
    const uint32_t n = (uint32_t)CST_UNIT << choice[3] % 6;
    const cst_entropy_model m = {choice[1] % CST_ENTROPY_TABLES, choice[2] % (CST_ENTROPY_SHIFT_MAX + 1)};
    cst_entropy_decoder d;
    int blocks = 0;
    if (!cst_entropy_decoder_init(&d, bytes, size))
        return -1;
    while (blocks < MAX_BLOCKS && d.next != d.end && k->decode(&d, m, points + (size_t)blocks * n, n))
        blocks++;
    return blocks + (cst_entropy_decoder_finish(&d) ? MAX_BLOCKS : 0);
}

static void try_stream(const uint8_t *choice, const uint8_t *bytes, size_t size)
{
    static int32_t expected[MAX_BLOCKS * CST_BLOCK], got[MAX_BLOCKS * CST_BLOCK];
    const int blocks = decode_stream(&cst_entropy_scalar, choice, bytes, size, expected);
    const uint32_t n = (uint32_t)CST_UNIT << choice[3] % 6;
    for (cst_cpu level = CST_CPU_AVX2; level < CST_CPU_COUNT; level++) {
        if (!cst_cpu_has(level))
            continue;
        require(decode_stream(cst_entropy_kernels_for((int)level), choice, bytes, size, got) == blocks);
        if (blocks > 0)
            require(!memcmp(expected, got, 4 * n * (size_t)(blocks % MAX_BLOCKS)));
    }
}

/* One block's packed codes, its reference and step taken from the same bytes. */
static void try_codes(const uint8_t *choice, const uint8_t *bytes, size_t size)
{
    static int32_t keys[CST_CHECKSUM_KEYS], expected[CST_BLOCK], got[CST_BLOCK];
    static float ref[CST_BLOCK], out[CST_BLOCK];
    const uint32_t n = (uint32_t)CST_UNIT << choice[3] % 6;
    uint8_t classes[CST_BLOCK_UNITS];
    for (uint32_t u = 0; u < n / CST_UNIT; u++) {
        classes[u] = (uint8_t)(CST_CLASS_MIN + (choice[1] + u * (choice[2] & 3)) % (CST_CLASS_MAX - CST_CLASS_MIN + 1));
        classes[u] = cst_class_valid(classes[u]) ? classes[u] : CST_CLASS_MIN;
    }
    const size_t packed = cst_packed_bytes(classes, n / CST_UNIT);
    if (size < packed + sizeof(float))
        return;
    cst_lattice_block b = {n, 1.0f, choice[2] & 4 ? 1.0f : 0.0f, {{1, 2}, {3, 4, 5}}, keys};
    memcpy(&b.step, bytes + packed, sizeof b.step);
    for (uint32_t i = 0; i < n; i++)
        memcpy(&ref[i], bytes + (4 * i) % (size - 3), sizeof ref[i]);
    uint8_t *codes = malloc(packed); /* alone, so that a sanitizer sees what lies behind */
    require(codes != NULL);
    memcpy(codes, bytes, packed);
    const cst_lattice_kind lattice = choice[2] & 8 ? CST_LATTICE_E8 : CST_LATTICE_Z;
    cst_quantise_kernels_for(lattice, CST_CPU_SCALAR)->decode(&b, codes, classes, ref, 1.0f, out, expected);
    for (cst_cpu level = CST_CPU_AVX2; level < CST_CPU_COUNT; level++) {
        if (!cst_cpu_has(level))
            continue;
        cst_quantise_kernels_for(lattice, (int)level)->decode(&b, codes, classes, ref, 1.0f, out, got);
        require(!memcmp(expected, got, 4 * n));
    }
    free(codes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CHOICES)
        return 0;
    cst_flush_mode saved = cst_flush_enter();
    if (data[0] & 1)
        try_codes(data, data + CHOICES, size - CHOICES);
    else
        try_stream(data, data + CHOICES, size - CHOICES);
    cst_flush_leave(saved);
    return 0;
}
