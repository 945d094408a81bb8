/* SPDX-License-Identifier: Apache-2.0 */
/* The floor must do the work that it stands for: all ranks' passes together are a correct all-reduce. */
#include "unit.h"

#include "bench_allreduce/floor.h"

#include <stdlib.h>
#include <string.h>

static void fill(float *region, int ranks, size_t step, size_t floats)
{
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < floats; i++)
            region[(size_t)r * step + i] = (float)(i % 101 + (size_t)r);
}

static void check(int ranks, size_t bytes, bool in_place, floor_mode mode)
{
    size_t floats = bytes / sizeof(float), step = (bytes + 4095) / 4096 * 4096 / sizeof(float);
    size_t region_bytes = floor_region_bytes(ranks, bytes, in_place);
    float *region = aligned_alloc(4096, region_bytes);
    assert_non_null(region);
    memset(region, 0xff, region_bytes);
    fill(region, ranks, step, floats);
    for (int r = 0; r < ranks; r++)
        floor_pass(region, r, ranks, bytes, bytes, in_place, mode);
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < floats / 16 * 16; i++) {
            float expected = (float)((i % 101) * (size_t)ranks + (size_t)(ranks * (ranks - 1) / 2));
            assert_true(region[(size_t)(in_place ? r : ranks + r) * step + i] == expected);
        }
    free(region);
}

static void all_passes_together_reduce(void **state)
{
    (void)state;
    static const int ranks[] = {1, 2, 3, 4, 5, 8};
    static const size_t sizes[] = {64, 128, 4096, 4096 + 64, 100000};
    for (size_t n = 0; n < sizeof ranks / sizeof *ranks; n++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            check(ranks[n], sizes[s], true, FLOOR_STORE_NORMAL);
            for (int mode = 0; mode < FLOOR_MODES; mode++)
                check(ranks[n], sizes[s], false, (floor_mode)mode);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_passes_together_reduce)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
