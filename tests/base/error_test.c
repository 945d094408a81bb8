/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

static void every_status_has_its_own_line(void **state)
{
    (void)state;
    static const coset_status all[] = {
        COSET_OK,       COSET_ERR_ARGUMENT, COSET_ERR_UNSUPPORTED, COSET_ERR_MEMORY,  COSET_IN_PROGRESS, COSET_ERR_PEER,
        COSET_ERR_LATE, COSET_ERR_MISMATCH, COSET_ERR_ABORTED,     COSET_ERR_CORRUPT, COSET_ERR_SYSTEM,
    };
    const size_t count = sizeof all / sizeof *all;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(coset_strerror(all[i]), coset_strerror(all[j]));
    assert_string_equal(coset_strerror((coset_status)9999), "unknown status");
    assert_string_equal(coset_strerror((coset_status)-1), "unknown status");
}

static void numbers_are_stable(void **state)
{
    (void)state;
    assert_int_equal(COSET_OK, 0);
    assert_int_equal(COSET_ERR_ARGUMENT, 1);
    assert_int_equal(COSET_ERR_UNSUPPORTED, 2);
    assert_int_equal(COSET_ERR_MEMORY, 3);
    assert_int_equal(COSET_IN_PROGRESS, 16);
    assert_int_equal(COSET_ERR_PEER, 32);
    assert_int_equal(COSET_ERR_LATE, 33);
    assert_int_equal(COSET_ERR_MISMATCH, 34);
    assert_int_equal(COSET_ERR_ABORTED, 35);
    assert_int_equal(COSET_ERR_CORRUPT, 36);
    assert_int_equal(COSET_ERR_SYSTEM, 64);
}

static void fail_fills_and_returns(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    why.rank = 3;
    why.op = 17;
    strcpy(why.host, "here");
    assert_int_equal(cst_fail(&why, COSET_ERR_PEER, 2, "rank %d is gone", 2), COSET_ERR_PEER);
    assert_int_equal(why.status, COSET_ERR_PEER);
    assert_int_equal(why.peer, 2);
    assert_string_equal(why.text, "rank 2 is gone");
    /* what somebody further in knew stays */
    assert_int_equal(why.rank, 3);
    assert_int_equal(why.op, 17);
    assert_string_equal(why.host, "here");
    assert_int_equal(cst_fail(NULL, COSET_ERR_LATE, -1, "nobody reads this"), COSET_ERR_LATE);
}

static void a_long_text_is_cut_and_terminated(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    cst_fail(&why, COSET_ERR_ARGUMENT, -1, "%s", text);
    assert_int_equal(strlen(why.text), sizeof why.text - 1);
}

static void system_errors_name_errno_and_keep_it(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    errno = ENOSPC;
    assert_int_equal(cst_fail_errno(&why, "memfd_create"), COSET_ERR_SYSTEM);
    assert_int_equal(errno, ENOSPC);
    char expected[128] = "memfd_create: ";
    strcat(expected, strerror(ENOSPC));
    assert_string_equal(why.text, expected);
}

/* A caller compiled against a shorter coset_error: nothing beyond its struct_size may change. */
static void no_byte_beyond_struct_size_is_written(void **state)
{
    (void)state;
    for (size_t size = 0; size <= sizeof(coset_error); size++) {
        union {
            coset_error error;
            unsigned char bytes[sizeof(coset_error)];
        } caller;
        memset(&caller, 0x5a, sizeof caller);
        caller.error.struct_size = size;
        cst_fail(&caller.error, COSET_ERR_CORRUPT, 1, "a text that is not empty");
        assert_true(caller.error.struct_size == size);
        for (size_t i = size > sizeof(size_t) ? size : sizeof(size_t); i < sizeof caller; i++)
            assert_int_equal(caller.bytes[i], 0x5a);
        cst_error_clear(&caller.error);
        for (size_t i = size > sizeof(size_t) ? size : sizeof(size_t); i < sizeof caller; i++)
            assert_int_equal(caller.bytes[i], 0x5a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_line),
        cmocka_unit_test(numbers_are_stable),
        cmocka_unit_test(fail_fills_and_returns),
        cmocka_unit_test(a_long_text_is_cut_and_terminated),
        cmocka_unit_test(system_errors_name_errno_and_keep_it),
        cmocka_unit_test(no_byte_beyond_struct_size_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
