/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder's file is JSON, whatever is in the texts and whatever goes on meanwhile. */
#include "unit.h"

#include "comm/recorder.h"

#include <stdlib.h>
#include <string.h>

static char *written(const cst_recorder *r, const char *text)
{
    char *out = NULL;
    size_t bytes;
    FILE *f = open_memstream(&out, &bytes);
    coset_error why = COSET_ERROR_INIT;
    snprintf(why.text, sizeof why.text, "%s", text);
    assert_non_null(f);
    assert_int_equal(cst_recorder_write(r, 0, 2, &why, f), 0);
    fclose(f);
    return out;
}

static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"a \"quote\", a \\, a\ttab", "a \\\"quote\\\", a \\\\, a\\u0009tab"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"latin \xfc", "latin \\ufffd"},
        {"cut \xe2\x82", "cut \\ufffd\\ufffd"},
        {"no start \x82\xac", "no start \\ufffd\\ufffd"},
        {"overlong \xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf",
         "overlong \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\\ufffd"},
        {"surrogate \xed\xa0\x80", "surrogate \\ufffd\\ufffd\\ufffd"},
        {"beyond \xf4\x90\x80\x80", "beyond \\ufffd\\ufffd\\ufffd\\ufffd"},
    };
    static const cst_recorder none;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = written(&none, cases[i].text), wanted[256];
        snprintf(wanted, sizeof wanted, "\"text\": \"%s\",", cases[i].json);
        if (!strstr(out, wanted))
            fail_msg("%s in %s", wanted, out);
        free(out);
    }
}

static cst_recorder busy;

static void another(void)
{
    const cst_call call = {.kind = CST_BARRIER};
    cst_recorder_end(cst_recorder_begin(&busy, &call, busy.written, 0), COSET_OK);
}

/* A file into which every write takes as long as an operation. */
static ssize_t slow(void *cookie, const char *data, size_t bytes)
{
    another();
    return fwrite(data, 1, bytes, cookie) == bytes ? (ssize_t)bytes : -1;
}

static size_t occurrences(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static void test_operations_meanwhile(void **state)
{
    (void)state;
    char *out = NULL;
    size_t bytes;
    coset_error why = COSET_ERROR_INIT;
    FILE *memory = open_memstream(&out, &bytes);
    FILE *f = fopencookie(memory, "w", (cookie_io_functions_t){.write = slow});
    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    for (int i = 0; i < 7; i++)
        another();
    assert_int_equal(cst_recorder_write(&busy, 0, 2, &why, f), 0);
    fclose(f);
    fclose(memory);
    assert_int_equal(occurrences(out, "[\n    {\"op\""), 1);
    assert_int_equal(occurrences(out, ",\n    {\"op\"") + 1, occurrences(out, "\n    {\"op\""));
    assert_true(occurrences(out, "{\"op\"") <= CST_RECORDS);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_operations_meanwhile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
