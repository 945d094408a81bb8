/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "common/draw.h"
#include "common/json.h"
#include "common/stats.h"
#include "common/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void percentiles_are_nearest_ranks(void **state)
{
    (void)state;
    double v[] = {5, 1, 4, 2, 3};
    assert_true(tool_percentile(v, 5, 0.5) == 3);
    assert_true(tool_percentile(v, 5, 0) == 1);
    assert_true(tool_percentile(v, 5, 1) == 5);
    assert_true(tool_percentile(v, 5, 0.99) == 5);
    assert_true(tool_percentile(v, 4, 0.5) == 2); /* sorted by now */
    assert_true(tool_percentile(v, 1, 0.5) == 1);
    assert_true(isnan(tool_percentile(v, 0, 0.5)));
}

static void sizes_stay_exact(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(tool_size_text(text, 0), "0 B");
    assert_string_equal(tool_size_text(text, 1023), "1023 B");
    assert_string_equal(tool_size_text(text, 65536), "64 KiB");
    assert_string_equal(tool_size_text(text, 25 << 20), "25 MiB");
    assert_string_equal(tool_size_text(text, 1536), "1.5 KiB");
}

static void a_table_ends_each_row_by_itself(void **state)
{
    (void)state;
    static const tool_column columns[] = {{"left", -6}, {"right", 7}, {NULL, 0}};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    tool_table t = tool_table_start(out, columns);
    tool_cell(&t, "a");
    tool_cell_number(&t, 3.14159, 3);
    tool_cell(&t, "%d", 12);
    tool_cell_number(&t, NAN, 3);
    tool_cell(&t, "big");
    tool_cell_number(&t, 123456.7, 3);
    tool_cell(&t, "small");
    tool_cell_number(&t, 0.00123456, 3);
    fclose(out);
    assert_string_equal(text, "left      right\n"
                              "a          3.14\n"
                              "12            -\n"
                              "big      123457\n"
                              "small   0.00123\n");
    free(text);
}

static void json_goes_to_a_file_and_nan_becomes_null(void **state)
{
    (void)state;
    char path[] = "/tmp/coset_json_XXXXXX", text[256] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "x", NAN);
    cJSON_AddNumberToObject(j, "y", 1.5);
    assert_int_equal(tool_json_write(path, j), 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    unlink(path);
    cJSON *back = cJSON_Parse(text);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(back, "x")));
    assert_true(cJSON_GetObjectItem(back, "y")->valuedouble == 1.5);
    cJSON_Delete(back);
}

static void an_unwritable_file_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(tool_json_write("/nowhere/at/all.json", cJSON_CreateObject()), -1);
    assert_int_equal(tool_json_write(NULL, cJSON_CreateObject()), 0);
}

static void tables_leave_standard_output_to_json(void **state)
{
    (void)state;
    assert_ptr_equal(tool_human_stream(NULL), stdout);
    assert_ptr_equal(tool_human_stream("file.json"), stdout);
    assert_ptr_equal(tool_human_stream("-"), stderr);
}

/* The seed is fixed. Over 200,000 draws a sample variance has a standard deviation of 0.3 % (gauss) or 3.5 % (spike); that of
 * t3 has none, since its fourth moment does not exist: a quarter is what heavy tails may do here. */
static void drawn_vectors_have_spread_one_and_the_asked_mean(void **state)
{
    (void)state;
    enum { N = 200000 };
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    for (const char *const *d = tool_distributions; *d; d++) {
        double own = 0, common = 0;
        tool_draw(a, N, *d, 3, 7, 0);
        tool_draw(b, N, *d, 3, 7, 1);
        for (int i = 0; i < N; i++) {
            own += (double)(a[i] - b[i]) * (double)(a[i] - b[i]) / 2 / N;
            common += (double)a[i] * (double)b[i] / N;
        }
        /* own: the variance between ranks; common: the energy of the mean */
        double slack = !strcmp(*d, "t3") ? 0.25 : 0.1;
        assert_true(fabs(own - 1) < slack);
        assert_true(fabs(common - 9) < 9 * slack);
        tool_draw(b, N, *d, 3, 7, 0);
        assert_memory_equal(a, b, N * sizeof *a);
    }
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_nearest_ranks),
        cmocka_unit_test(sizes_stay_exact),
        cmocka_unit_test(a_table_ends_each_row_by_itself),
        cmocka_unit_test(json_goes_to_a_file_and_nan_becomes_null),
        cmocka_unit_test(an_unwritable_file_is_an_error),
        cmocka_unit_test(drawn_vectors_have_spread_one_and_the_asked_mean),
        cmocka_unit_test(tables_leave_standard_output_to_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
