/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, descriptors, steps and energies: what is written is read, what is damaged is refused. */
#include "codec/wire.h"
#include "kernels/pack/pack.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCKS = 3, REQUESTS = 2, PAYLOAD = 40 };

static size_t make(uint8_t *frame, size_t room)
{
    cst_frame_header h = {.kind = CST_FRAME_DOWN,
                          .round = 2,
                          .sender = 7,
                          .receiver = CST_TO_ALL,
                          .call = 99,
                          .agreement = 0x0123456789ABCDEF,
                          .first_block = 1000,
                          .blocks = BLOCKS,
                          .requests = REQUESTS,
                          .error = 3,
                          .corrected = 4,
                          .need_up = 5,
                          .need_down = 1ull << 40};
    h.payload = CST_FRAME_HEADER + cst_frame_tables(&h);
    h.used = h.payload + PAYLOAD;
    assert_true(h.used <= room);
    for (size_t i = CST_FRAME_HEADER; i < h.used; i++)
        frame[i] = (uint8_t)(17 * i);
    cst_frame_seal(frame, &h);
    return (size_t)h.used;
}

static void header_comes_back(void **state)
{
    (void)state;
    uint8_t frame[512];
    size_t used = make(frame, sizeof frame);
    cst_frame_header h;
    assert_int_equal(cst_frame_open(frame, sizeof frame, &h, NULL), COSET_OK);
    assert_int_equal(h.used, used);
    assert_int_equal(h.payload, 80 + BLOCKS * 24 + REQUESTS * 8);
    assert_int_equal(h.kind, CST_FRAME_DOWN);
    assert_int_equal(h.round, 2);
    assert_int_equal(h.sender, 7);
    assert_int_equal(h.receiver, 0xFFFF);
    assert_int_equal(h.call, 99);
    assert_true(h.agreement == 0x0123456789ABCDEF);
    assert_int_equal(h.first_block, 1000);
    assert_int_equal(h.error, 3);
    assert_int_equal(h.corrected, 4);
    assert_int_equal(h.need_up, 5);
    assert_true(h.need_down == 1ull << 40);
}

/* Every single changed byte in header and tables is noticed, and every truncation that cuts into `used`. */
static void damage_is_noticed(void **state)
{
    (void)state;
    uint8_t frame[512];
    size_t used = make(frame, sizeof frame), checked = used - PAYLOAD;
    cst_frame_header h;
    for (size_t i = 0; i < checked; i++)
        for (int bit = 0; bit < 8; bit++) {
            frame[i] ^= (uint8_t)(1 << bit);
            assert_int_not_equal(cst_frame_open(frame, sizeof frame, &h, NULL), COSET_OK);
            frame[i] ^= (uint8_t)(1 << bit);
        }
    for (size_t n = 0; n < used; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        for (size_t i = 0; i < n; i++)
            copy[i] = frame[i];
        assert_int_equal(cst_frame_open(copy, n, &h, NULL), COSET_ERR_CORRUPT);
        free(copy);
    }
}

static void a_frame_of_another_format_is_a_mismatch(void **state)
{
    (void)state;
    uint8_t frame[512];
    make(frame, sizeof frame);
    frame[4]++;
    cst_frame_header h;
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(cst_frame_open(frame, sizeof frame, &h, &why), COSET_ERR_MISMATCH);
    assert_int_equal(why.status, COSET_ERR_MISMATCH);
}

static void replays_and_other_options_are_told_apart(void **state)
{
    (void)state;
    uint8_t frame[512];
    make(frame, sizeof frame);
    cst_frame_header h, want;
    assert_int_equal(cst_frame_open(frame, sizeof frame, &h, NULL), COSET_OK);
    want = h;
    assert_int_equal(cst_frame_expect(&h, &want, NULL), COSET_OK);
    want.call++;
    assert_int_equal(cst_frame_expect(&h, &want, NULL), COSET_ERR_CORRUPT);
    want = h;
    want.round = 0;
    assert_int_equal(cst_frame_expect(&h, &want, NULL), COSET_ERR_CORRUPT);
    want = h;
    want.sender = 6;
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(cst_frame_expect(&h, &want, &why), COSET_ERR_CORRUPT);
    assert_int_equal(why.peer, 6);
    want = h;
    want.agreement ^= 1;
    assert_int_equal(cst_frame_expect(&h, &want, &why), COSET_ERR_MISMATCH);
    assert_int_equal(why.peer, 7);
}

/* All 2^32 descriptors cannot be tried; all codes and classes can, at the ends of the range of steps and outside. */
static void descriptors_mean_one_thing_or_nothing(void **state)
{
    (void)state;
    const uint32_t steps[] = {
        0, 1, CST_STEP_LOW - 1, CST_STEP_LOW, CST_STEP_HIGH, CST_STEP_HIGH + 1, (1 << CST_STEP_BITS) - 1};
    int good = 0;
    for (unsigned code = 0; code < 8; code++)
        for (unsigned class = 0; class < 128; class ++)
            for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
                uint32_t bits = cst_desc_pack((cst_block_desc){(uint8_t)code, (uint8_t) class, steps[i]});
                cst_block_desc d;
                if (!cst_desc_unpack(bits, &d))
                    continue;
                good++;
                assert_int_equal(cst_desc_pack(d), bits);
                bool lattice = code >= CST_CODE_Z;
                unsigned most = code == CST_CODE_EXACT ? CST_CLASS_SAME : 0;
                assert_true(lattice ? d.step == CST_STEP_LOW || d.step == CST_STEP_HIGH : d.step == 0 && class <= most);
                if (code == CST_CODE_Z || code == CST_CODE_E8)
                    assert_true(cst_class_valid(class));
            }
    assert_int_equal(good, 4 + 2 * (42 + 42 + 97 + 62 + 18));
}

static void steps_round_down_within_a_thousandth(void **state)
{
    (void)state;
    for (double x = 1e-300; x < 1e300; x *= 1.0137) {
        double v = cst_step_value(cst_step_index(x, 0), 0);
        assert_true(v <= x && v > x * (1 - 1.0 / 1024));
        /* the same step in units of 2^100 */
        assert_true(cst_step_value(cst_step_index(x, 0), 100) == ldexp(v, -100));
    }
    assert_int_equal(cst_step_index(1, -3000), CST_STEP_LOW);
    assert_int_equal(cst_step_index(1, 3000), CST_STEP_HIGH);
    assert_true(isfinite(cst_step_value(CST_STEP_HIGH, 0)));
}

static void energies_round_to_a_thirtysecond_of_an_octave(void **state)
{
    (void)state;
    assert_int_equal(cst_energy_index(0, 0), 0);
    assert_true(cst_energy_value(0, 0) == 0);
    for (double x = 1e-300; x < 1e300; x *= 1.0137) {
        double v = cst_energy_value(cst_energy_index(x, 0), 0);
        assert_true(fabs(log2(v / x)) <= 1.0 / 32 + 1e-9);
        assert_int_equal(cst_energy_index(ldexp(x, -40), 20), cst_energy_index(x, 0));
    }
}

static void requests_come_back(void **state)
{
    (void)state;
    uint8_t at[CST_REQUEST_BYTES];
    cst_request r, in = {0xDEADBEEF, 0x1234, CST_ASK_REFINE, 200};
    cst_request_write(at, in);
    assert_true(cst_request_read(at, &r));
    assert_true(r.block == in.block && r.sender == in.sender && r.ask == in.ask && r.arg == in.arg);
    at[6] = 0;
    assert_false(cst_request_read(at, &r));
    at[6] = CST_ASK_REFINE + 1;
    assert_false(cst_request_read(at, &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_comes_back),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(a_frame_of_another_format_is_a_mismatch),
        cmocka_unit_test(replays_and_other_options_are_told_apart),
        cmocka_unit_test(descriptors_mean_one_thing_or_nothing),
        cmocka_unit_test(steps_round_down_within_a_thousandth),
        cmocka_unit_test(energies_round_to_a_thirtysecond_of_an_octave),
        cmocka_unit_test(requests_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
