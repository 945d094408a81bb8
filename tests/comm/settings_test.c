/* SPDX-License-Identifier: Apache-2.0 */
/* Environment and options: what means nothing is refused by name, never ignored. */
#include "unit.h"

#include "api/settings.h"
#include "coll/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static coset_status with(const char *name, const char *value, cst_settings *s, char *text)
{
    coset_error why = COSET_ERROR_INIT;
    setenv(name, value, 1);
    coset_status status = cst_settings_from(NULL, s, &why);
    unsetenv(name);
    memcpy(text, why.text, sizeof why.text);
    return status;
}

static void test_bad_variables(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"COSET_ALGO", "abacus"},
        {"COSET_PROGRESS", "sometimes"},
        {"COSET_RANK_ORDER", "2"},
        {"COSET_LATE_MS", "0"},
        {"COSET_LATE_MS", "12x"},
        {"COSET_DEAD_MS", "-5"},
        {"COSET_DEAD_MS", "99999999999999999999"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cst_settings s;
        char text[256];
        assert_int_equal(with(bad[i][0], bad[i][1], &s, text), COSET_ERR_ARGUMENT);
        assert_non_null(strstr(text, bad[i][1]));
    }
}

/* Also a variable that an option makes needless to read. */
static void test_bad_variable_beside_option(void **state)
{
    (void)state;
    cst_settings s;
    coset_error why = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    o.algorithm = "tree";
    o.late_ms = 77;
    setenv("COSET_LATE_MS", "soon", 1);
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "COSET_LATE_MS=soon"));
    setenv("COSET_LATE_MS", "5", 1);
    setenv("COSET_ALGO", "abacus", 1);
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "abacus"));
    unsetenv("COSET_ALGO");
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_OK);
    unsetenv("COSET_LATE_MS");
}

typedef struct {
    int lines;
    coset_status status;
    char line[256];
} heard;

static void hear(void *ctx, coset_status status, const char *line)
{
    heard *h = ctx;
    h->lines++;
    h->status = status;
    snprintf(h->line, sizeof h->line, "%s", line);
}

/* Every variable that has a form is looked at, though nothing here would read it. */
static void test_every_variable_is_looked_at(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"COSET_ALGO", "abacus"},       {"COSET_CPU", "sse9"},         {"COSET_DEAD_MS", "1"},
        {"COSET_FAULT", "do=nonsense"}, {"COSET_IFNAME", "eth0,,"},    {"COSET_LATE_MS", "soon"},
        {"COSET_LOCAL_RANK", "-1"},     {"COSET_LOCAL_SIZE", "0"},     {"COSET_PORT_RANGE", "9-1"},
        {"COSET_PROGRESS", "slow"},     {"COSET_RANK", "first"},       {"COSET_RANK_ORDER", "yes"},
        {"COSET_ROOT", "here"},         {"COSET_SHM_METHOD", "cat"},   {"COSET_SIZE", "0"},
        {"COSET_SOCKETS", "17"},        {"COSET_TRANSPORT", "pigeon"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        heard h = {0};
        setenv(bad[i][0], bad[i][1], 1);
        assert_int_equal(coset_check_environment(hear, &h), COSET_ERR_ARGUMENT);
        unsetenv(bad[i][0]);
        assert_int_equal(h.lines, 1);
        assert_int_equal(h.status, COSET_ERR_ARGUMENT);
        assert_non_null(strstr(h.line, bad[i][0]));
    }
    assert_int_equal(coset_check_environment(NULL, NULL), COSET_OK);
}

static void test_unknown_name_is_told(void **state)
{
    (void)state;
    heard h = {0};
    setenv("COSET_TRANPSORT", "shm", 1);
    assert_int_equal(coset_check_environment(hear, &h), COSET_OK);
    unsetenv("COSET_TRANPSORT");
    assert_int_equal(h.lines, 1);
    assert_int_equal(h.status, COSET_OK);
    assert_non_null(strstr(h.line, "COSET_TRANPSORT"));
}

/* Transport threads reads none of these; all ranks are told all the same. */
static void test_creation_looks_at_all_transports(void **state)
{
    (void)state;
    coset_comm *comms[2];
    coset_error why = COSET_ERROR_INIT;
    setenv("COSET_SOCKETS", "many", 1);
    assert_int_equal(coset_comm_create_threads(2, NULL, comms, &why), COSET_ERR_ARGUMENT);
    unsetenv("COSET_SOCKETS");
    assert_non_null(strstr(why.text, "COSET_SOCKETS=many"));
}

static void test_good_variables(void **state)
{
    (void)state;
    cst_settings s;
    char text[256];
    assert_int_equal(with("COSET_ALGO", "ring", &s, text), COSET_OK);
    assert_int_equal(s.algorithm, CST_ALGO_RING);
    assert_int_equal(with("COSET_PROGRESS", "caller", &s, text), COSET_OK);
    assert_int_equal(s.progress, COSET_PROGRESS_CALLER);
    assert_int_equal(with("COSET_LATE_MS", "1500", &s, text), COSET_OK);
    assert_int_equal(s.late_ms, 1500);
    assert_int_equal(with("COSET_TRANSPORT", "", &s, text), COSET_OK);
    assert_string_equal(s.transport, "");
}

static void test_options_win(void **state)
{
    (void)state;
    cst_settings s;
    coset_error why = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    o.algorithm = "tree";
    o.late_ms = 77;
    o.transport = "shm";
    setenv("COSET_ALGO", "ring", 1);
    setenv("COSET_LATE_MS", "1500", 1);
    setenv("COSET_TRANSPORT", "tcp", 1);
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_OK);
    unsetenv("COSET_ALGO");
    unsetenv("COSET_LATE_MS");
    unsetenv("COSET_TRANSPORT");
    assert_int_equal(s.algorithm, CST_ALGO_TREE);
    assert_int_equal(s.late_ms, 77);
    assert_string_equal(s.transport, "shm");
}

static void test_bad_options(void **state)
{
    (void)state;
    cst_settings s;
    coset_error why = COSET_ERROR_INIT;
    coset_comm_options o = {0};
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_ERR_ARGUMENT); /* struct_size not set */
    o = (coset_comm_options)COSET_COMM_OPTIONS_INIT;
    o.progress = 7;
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_ERR_ARGUMENT);
    o = (coset_comm_options)COSET_COMM_OPTIONS_INIT;
    o.late_ms = -1;
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_ERR_ARGUMENT);
    o = (coset_comm_options)COSET_COMM_OPTIONS_INIT;
    o.transport = "a name much longer than any transport could ever have";
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_ERR_ARGUMENT);
}

/* A caller compiled against a shorter struct: what it did not have is default. */
static void test_short_struct(void **state)
{
    (void)state;
    cst_settings s;
    coset_error why = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    o.late_ms = 77;
    o.struct_size = offsetof(coset_comm_options, late_ms);
    assert_int_equal(cst_settings_from(&o, &s, &why), COSET_OK);
    assert_int_equal(s.late_ms, 600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_variables),
        cmocka_unit_test(test_bad_variable_beside_option),
        cmocka_unit_test(test_every_variable_is_looked_at),
        cmocka_unit_test(test_unknown_name_is_told),
        cmocka_unit_test(test_creation_looks_at_all_transports),
        cmocka_unit_test(test_good_variables),
        cmocka_unit_test(test_options_win),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_short_struct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
