/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64 against the values that its specification and reference program publish, and in pieces. */
#include "base/hash.h"
#include "unit.h"

#include <string.h>

static void known_answers(void **state)
{
    (void)state;
    assert_int_equal(cst_hash64(0, "", 0), 0xEF46DB3751D8E999u);
    assert_int_equal(cst_hash64(0, "a", 1), 0xD24EC4F1A98C6E5Bu);
    assert_int_equal(cst_hash64(0, "abc", 3), 0x44BC2CF5AD770999u);
    const char *longer = "Nobody inspects the spammish repetition";
    assert_int_equal(cst_hash64(0, longer, strlen(longer)), 0xFBCEA83C8A378BF1u);
}

static void pieces_do_not_matter(void **state)
{
    (void)state;
    uint8_t data[200];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t length = 0; length <= sizeof data; length++) {
        uint64_t whole = cst_hash64(7, data, length);
        for (size_t piece = 1; piece <= length; piece += 1 + piece / 8) {
            cst_hash h;
            cst_hash_begin(&h, 7);
            for (size_t at = 0; at < length; at += piece)
                cst_hash_add(&h, data + at, length - at < piece ? length - at : piece);
            assert_int_equal(cst_hash_end(&h), whole);
        }
    }
}

static void every_bit_matters(void **state)
{
    (void)state;
    uint8_t data[100] = {0};
    uint64_t whole = cst_hash64(0, data, sizeof data);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(cst_hash64(0, data, sizeof data), whole);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(every_bit_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
