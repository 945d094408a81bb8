/* SPDX-License-Identifier: Apache-2.0 */
/* Philox against published answers, the layout of streams, and the dither's distribution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/block.h"
#include "kernels/random/philox.h"
#include "kernels/random/random.h"

static void assert_philox(const uint32_t counter[4], const uint32_t key[2], const uint32_t expected[4])
{
    uint32_t out[4];
    cst_philox(counter, key, out);
    assert_memory_equal(out, expected, sizeof out);
}

/* The known-answer vectors of the authors' distribution (Random123, kat_vectors). */
static void test_known_answers(void **state)
{
    (void)state;
    assert_philox((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 0},
                  (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    assert_philox((uint32_t[]){0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, (uint32_t[]){0xffffffff, 0xffffffff},
                  (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    assert_philox((uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, (uint32_t[]){0xa4093822, 0x299f31d0},
                  (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void test_derivation_uses_every_input(void **state)
{
    (void)state;
    enum { VARIANTS = 10 };
    cst_stream s[VARIANTS];
    for (int i = 0; i < VARIANTS; i++) {
        uint64_t seed = 1 + (i == 1) + ((uint64_t)(i == 2) << 40), tensor = 2 + (i == 3) + ((uint64_t)(i == 4) << 40);
        uint64_t call = 3 + (i == 5);
        s[i] = cst_stream_of(cst_stream_root_of(seed, tensor, call), i == 6 ? CST_USE_SLOPE : CST_USE_DITHER, i == 7,
                             i == 8, i == 9);
    }
    for (int i = 0; i < VARIANTS; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(&s[i], &s[j], sizeof s[i]);
}

static void test_layout_of_words_and_dither(void **state)
{
    (void)state;
    cst_stream s = cst_stream_of(cst_stream_root_of(5, 6, 7), CST_USE_DITHER, 1, 2, 3);
    uint32_t words[CST_BLOCK / 2];
    float theta[CST_BLOCK];
    cst_random_scalar.words(&s, 0, CST_BLOCK / 2, words);
    cst_random_scalar.dither(&s, CST_BLOCK, theta);
    for (uint32_t i = 0; i < CST_BLOCK / 2; i++) {
        uint32_t g = i / 32, v = i / 16 % 2, l = i % 16, out[4];
        cst_philox((uint32_t[]){8 * g + l / 2, s.ctr[0], s.ctr[1], s.ctr[2]}, s.key, out);
        assert_int_equal(words[i], out[(l & 1) + 2 * v]);
    }
    for (uint32_t i = 0; i < CST_BLOCK; i++) {
        uint32_t g = i / 64, t = i / 16 % 4, l = i % 16;
        int16_t half = (int16_t)(words[32 * g + 16 * (t / 2) + l] >> 16 * (t & 1));
        assert_true(theta[i] == (2 * half + 1) * 0x1p-17f);
    }
    uint32_t later[64];
    cst_random_scalar.words(&s, 96, 64, later);
    assert_memory_equal(later, words + 96, sizeof later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_derivation_uses_every_input),
        cmocka_unit_test(test_layout_of_words_and_dither),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
