/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read, and no other bytes are. */
#include "transport/tcp/frame.h"
#include "unit.h"

#include <string.h>

static void heads(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 255, 65536, UINT32_MAX, 1ull << 40, UINT64_MAX};
    uint8_t bytes[CST_HEAD_BYTES];
    cst_head got;
    coset_entry entry;
    for (size_t i = 0; i < sizeof entry.bytes; i++)
        entry.bytes[i] = (uint8_t)(i + 1);
    for (size_t a = 0; a < 7; a++)
        for (size_t b = 0; b < 7; b++) {
            cst_head_write((uint32_t)values[a], values[b], values[6 - a], &entry, bytes);
            assert_true(cst_head_read(bytes, &got));
            assert_int_equal(got.tag, (uint32_t)values[a]);
            assert_int_equal(got.op, values[b]);
            assert_int_equal(got.bytes, values[6 - a]);
            assert_memory_equal(&got.entry, &entry, sizeof entry);
        }
    for (int bit = 0; bit < 8 * CST_HEAD_BYTES; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(cst_head_read(bytes, &got));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    cst_head_write(0, 0, 0, NULL, bytes);
    assert_true(cst_head_read(bytes, &got));
    memset(&entry, 0, sizeof entry);
    assert_memory_equal(&got.entry, &entry, sizeof entry);
}

static void tails(void **state)
{
    (void)state;
    uint8_t bytes[CST_TAIL_BYTES];
    bool cancelled;
    uint64_t sum;
    for (int c = 0; c < 2; c++) {
        cst_tail_write(c, 0x1234567890abcdefu, bytes);
        assert_true(cst_tail_read(bytes, &cancelled, &sum));
        assert_int_equal(cancelled, c);
        assert_int_equal(sum, 0x1234567890abcdefu);
    }
    for (int bit = 0; bit < 64; bit++) { /* the sum may be anything: the payload is judged by it */
        if (bit == 32)                   /* the difference between whole and cancelled */
            continue;
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(cst_tail_read(bytes, &cancelled, &sum));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static coset_notice example(void)
{
    coset_notice n = {COSET_NOTICE_MISMATCH, 3, COSET_ERR_MISMATCH, -1, 77, {0}};
    strcpy(n.text, "rank 3 expects 5 elements, rank 0 sends 6");
    return n;
}

static void records(void **state)
{
    (void)state;
    uint8_t bytes[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    coset_notice n = example(), got;
    bool is_notice;
    size_t length = cst_notice_write(&n, bytes);
    assert_int_equal(length, sizeof bytes);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(cst_record_read(bytes, i, &is_notice, &got), 0);
    assert_int_equal(cst_record_read(bytes, length, &is_notice, &got), length);
    assert_true(is_notice);
    assert_memory_equal(&got, &n, sizeof n);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(cst_record_read(bytes, length, &is_notice, &got), -1);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    length = cst_beat_write(bytes);
    assert_int_equal(length, CST_RECORD_BYTES);
    assert_int_equal(cst_record_read(bytes, sizeof bytes, &is_notice, &got), length); /* what follows is not its own */
    assert_false(is_notice);
}

static void texts_end_and_print(void **state)
{
    (void)state;
    uint8_t bytes[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    coset_notice n = example(), got;
    bool is_notice;
    memset(n.text, 'x', sizeof n.text); /* no end */
    n.text[3] = '\x1b';
    n.text[4] = '\n';
    n.text[5] = 127;
    cst_notice_write(&n, bytes);
    assert_true(cst_record_read(bytes, sizeof bytes, &is_notice, &got) > 0);
    assert_int_equal(strlen(got.text), sizeof got.text - 1);
    assert_memory_equal(got.text, "xxx???xxx", 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(tails),
        cmocka_unit_test(records),
        cmocka_unit_test(texts_end_and_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
