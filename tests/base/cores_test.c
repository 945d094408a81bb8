/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

static void quotas_are_whole_cores(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int cores;
    } row[] = {
        {"max 100000", 0}, {"200000 100000", 2},   {"150000 100000", 1},       {"50000 100000", 1},
        {"-1 100000", 0},  {"400000 100000\n", 4}, {"99999999999999 1", 8192}, {"", -1},
        {"0 100000", -1},  {"100000", -1},         {"100000 0", -1},           {"x y", -1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_int_equal(cst_cores_of_quota(row[i].line), row[i].cores);
}

static void a_mask_does_not_count(void **state)
{
    (void)state;
    cpu_set_t all, one;
    int cores = cst_cores_of_host(), first = 0;
    assert_in_range(cores, 1, sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cst_cores_of_host(), cores);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas_are_whole_cores),
        cmocka_unit_test(a_mask_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
