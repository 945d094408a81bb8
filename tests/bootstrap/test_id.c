/* SPDX-License-Identifier: Apache-2.0 */
/* The 128 bytes of a unique id, and frames: what is written is read, and nothing else is. */
#include "base/hash.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/frame.h"
#include "bootstrap/id.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static cst_addr address(const char *text, uint16_t port)
{
    cst_addr a;
    assert_int_equal(cst_addr_parse(text, &a), 0);
    cst_addr_set_port(&a, port);
    return a;
}

static void round_trip(void **state)
{
    (void)state;
    cst_id id = {.token = cst_token_from_text("t"), .port = 40000, .host = 77, .count = 3}, got;
    id.addr[0] = address("10.1.2.3", 40000);
    id.addr[1] = address("fd00::5", 40000);
    id.addr[2] = address("127.0.0.1", 40000);
    uint8_t bytes[128];
    cst_id_write(&id, bytes);
    assert_true(cst_id_read(bytes, &got));
    assert_memory_equal(&got, &id, sizeof id);
}

static void as_many_addresses_as_fit(void **state)
{
    (void)state;
    cst_id id = {.port = 1, .count = CST_ROUTES}, got;
    for (int i = 0; i < CST_ROUTES; i++)
        id.addr[i] = address("fd00::5", 1);
    uint8_t bytes[128];
    cst_id_write(&id, bytes);
    assert_true(cst_id_read(bytes, &got));
    assert_int_equal(got.count, (120 - 32) / 17);
    for (int i = 0; i < CST_ROUTES; i++)
        id.addr[i] = address("10.0.0.1", 1);
    cst_id_write(&id, bytes);
    assert_true(cst_id_read(bytes, &got));
    assert_int_equal(got.count, (120 - 32) / 5);
}

static void every_changed_bit_is_noticed(void **state)
{
    (void)state;
    coset_unique_id id;
    cst_id got;
    assert_int_equal(cst_unique_id_create(&id, NULL), COSET_OK);
    assert_true(cst_id_read(id.bytes, &got));
    assert_true(got.count > 0 && got.port > 0);
    for (int bit = 0; bit < 1024; bit++) {
        id.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(cst_id_read(id.bytes, &got));
        id.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* With a right sum over it, so that the fields themselves are put to the test. */
static void contents_are_checked_too(void **state)
{
    (void)state;
    cst_id id = {.port = 9, .count = 1}, got;
    id.addr[0] = address("10.0.0.1", 9);
    uint8_t good[128], bad[128];
    cst_id_write(&id, good);
    for (size_t at = 0; at < 120; at++)
        for (int value = 0; value < 256; value++) {
            memcpy(bad, good, sizeof bad);
            bad[at] = (uint8_t)value;
            uint64_t sum = cst_hash64(0, bad, 120);
            memcpy(bad + 120, &sum, sizeof sum);
            if (cst_id_read(bad, &got))
                assert_true(got.count >= 1 && got.count <= CST_ROUTES && got.port);
        }
}

static void loopback_is_for_its_own_host(void **state)
{
    (void)state;
    cst_id id = {.port = 9, .host = cst_id_this_host(), .count = 2};
    cst_routes routes;
    coset_error why = COSET_ERROR_INIT;
    id.addr[0] = address("127.0.0.1", 9);
    id.addr[1] = address("10.0.0.1", 9);
    assert_int_equal(cst_id_routes(&id, &routes, &why), COSET_OK);
    assert_int_equal(routes.count, 2);
    id.host++;
    assert_int_equal(cst_id_routes(&id, &routes, &why), COSET_OK);
    assert_int_equal(routes.count, 1);
    id.count = 1;
    assert_int_equal(cst_id_routes(&id, &routes, &why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "COSET_IFNAME"));
    setenv("COSET_HOSTID", "elsewhere", 1);
    uint32_t elsewhere = cst_id_this_host();
    unsetenv("COSET_HOSTID");
    assert_int_not_equal(elsewhere, cst_id_this_host());
}

static void frames(void **state)
{
    (void)state;
    cst_frame frame = {CST_FRAME_ALL, 7, 1ull << 40}, got;
    uint8_t bytes[CST_FRAME_BYTES];
    cst_frame_write(&frame, bytes);
    assert_true(cst_frame_read(bytes, &got));
    assert_memory_equal(&frame, &got, sizeof frame);
    bytes[16] ^= 1;
    assert_false(cst_frame_read(bytes, &got));
}

static void failures(void **state)
{
    (void)state;
    coset_error error = COSET_ERROR_INIT, got = COSET_ERROR_INIT;
    uint8_t bytes[CST_FAILURE_BYTES];
    error.status = COSET_ERR_PEER;
    error.peer = 3;
    strcpy(error.text, "rank 3 is gone\x1b[31m");
    cst_failure_write(&error, bytes);
    assert_true(cst_failure_read(bytes, &got));
    assert_int_equal(got.status, COSET_ERR_PEER);
    assert_int_equal(got.peer, 3);
    assert_string_equal(got.text, "rank 3 is gone?[31m"); /* nothing that a terminal would obey */
    bytes[0] = 99;
    assert_false(cst_failure_read(bytes, &got));
    bytes[0] = COSET_OK;
    assert_false(cst_failure_read(bytes, &got));
    bytes[0] = COSET_ERR_PEER;
    memset(bytes + 8, 'x', sizeof bytes - 8); /* a text without an end */
    assert_false(cst_failure_read(bytes, &got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(as_many_addresses_as_fit),
        cmocka_unit_test(every_changed_bit_is_noticed),
        cmocka_unit_test(contents_are_checked_too),
        cmocka_unit_test(loopback_is_for_its_own_host),
        cmocka_unit_test(frames),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
