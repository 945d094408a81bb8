/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU level: what COSET_CPU may say, what a wrong value gives, and that the level is fixed at first use. */
#include "unit.h"

#include "cpu/cpu.h"
#include "cpu/fpmode.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const every[] = {"scalar", "avx2", "avx512", "neon"};

/* The level that a fresh process takes with COSET_CPU set to `value`; NULL unsets it. */
static cst_cpu level_with(const char *value)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (value)
            setenv("COSET_CPU", value, 1);
        else
            unsetenv("COSET_CPU");
        _exit((int)cst_cpu_level());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (cst_cpu)WEXITSTATUS(status);
}

static void the_mask_chooses_any_level_that_the_machine_has(void **state)
{
    (void)state;
    assert_true(cst_cpu_has(CST_CPU_SCALAR));
    for (cst_cpu level = 0; level < CST_CPU_COUNT; level++) {
        assert_string_equal(cst_cpu_name(level), every[level]);
        if (cst_cpu_has(level))
            assert_int_equal(level_with(every[level]), level);
    }
}

static void levels_of_one_processor_contain_the_lower_ones(void **state)
{
    (void)state;
    if (cst_cpu_has(CST_CPU_AVX512))
        assert_true(cst_cpu_has(CST_CPU_AVX2));
    assert_false(cst_cpu_has(CST_CPU_NEON) && cst_cpu_has(CST_CPU_AVX2));
    assert_false(cst_cpu_has((cst_cpu)CST_CPU_COUNT));
}

static void without_a_mask_or_with_a_wrong_one_the_best_level_is_taken(void **state)
{
    (void)state;
    const cst_cpu best = level_with(NULL);
    assert_true(cst_cpu_has(best));
    for (cst_cpu higher = best + 1; higher < CST_CPU_NEON; higher++)
        assert_false(cst_cpu_has(higher));
    assert_int_equal(level_with("sse9"), best);
    assert_int_equal(level_with("AVX2"), best); /* names are lower case */
}

static void a_wrong_mask_is_an_argument_error_that_says_what_can_be_done(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    setenv("COSET_CPU", "sse9", 1);
    assert_int_equal(cst_cpu_check(&why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "COSET_CPU=sse9"));
    assert_non_null(strstr(why.text, "avx512"));
    for (cst_cpu level = 0; level < CST_CPU_COUNT; level++) {
        setenv("COSET_CPU", every[level], 1);
        coset_status status = cst_cpu_check(&why);
        assert_int_equal(status, cst_cpu_has(level) ? COSET_OK : COSET_ERR_ARGUMENT);
        if (status)
            assert_non_null(strstr(why.text, "its best level is"));
    }
    setenv("COSET_CPU", "", 1);
    assert_int_equal(cst_cpu_check(&why), COSET_OK);
    unsetenv("COSET_CPU");
    assert_int_equal(cst_cpu_check(NULL), COSET_OK);
}

static void the_level_stays_what_it_was_at_first_use(void **state)
{
    (void)state;
    const cst_cpu before = cst_cpu_level();
    setenv("COSET_CPU", before == CST_CPU_SCALAR ? "avx2" : "scalar", 1);
    assert_int_equal(cst_cpu_level(), before);
    unsetenv("COSET_CPU");
}

static void a_default_floating_point_mode_is_left_alone(void **state)
{
    (void)state;
    const uint64_t mode = cst_fpmode_read() & ~(uint64_t)CST_FPMODE_FLAGS;
    assert_true(mode == CST_FPMODE_DEFAULT);
    cst_fpmode saved = cst_fpmode_enter();
    assert_true((cst_fpmode_read() & ~(uint64_t)CST_FPMODE_FLAGS) == CST_FPMODE_DEFAULT);
    cst_fpmode_leave(saved);
    assert_true((cst_fpmode_read() & ~(uint64_t)CST_FPMODE_FLAGS) == CST_FPMODE_DEFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mask_chooses_any_level_that_the_machine_has),
        cmocka_unit_test(levels_of_one_processor_contain_the_lower_ones),
        cmocka_unit_test(without_a_mask_or_with_a_wrong_one_the_best_level_is_taken),
        cmocka_unit_test(a_wrong_mask_is_an_argument_error_that_says_what_can_be_done),
        cmocka_unit_test(the_level_stays_what_it_was_at_first_use),
        cmocka_unit_test(a_default_floating_point_mode_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
