/* SPDX-License-Identifier: Apache-2.0 */
/* The sink is opened once per process, so each case runs in a child with its own environment. */
#include "unit.h"

#include "base/env.h"
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/coset_log_XXXXXX";
static char path[128];

/* What `write_lines` logs with COSET_DEBUG=level, read back; the caller frees it. */
static char *logged(const char *level, void (*write_lines)(void))
{
    unlink(path);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("COSET_DEBUG", level, 1);
        setenv("COSET_DEBUG_FILE", path, 1);
        write_lines();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    FILE *f = fopen(path, "r");
    if (f) {
        size_t n = fread(text, 1, (1 << 20) - 1, f);
        text[n] = 0;
        fclose(f);
    }
    return text;
}

static void one_of_each(void)
{
    cst_log(CST_LOG_WARN, "a warning %d", 1);
    cst_log(CST_LOG_INFO, "some information");
    cst_log(CST_LOG_TRACE, "a trace");
}

static void levels_hold_back_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *level;
        int warn, info, trace;
    } cases[] = {{"", 0, 0, 0},     {"none", 0, 0, 0},  {"warn", 1, 0, 0},
                 {"info", 1, 1, 0}, {"TRACE", 1, 1, 1}, {"nonsense", 1, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = logged(cases[i].level, one_of_each);
        assert_int_equal(strstr(text, "WARN a warning 1\n") != NULL, cases[i].warn);
        assert_int_equal(strstr(text, "INFO some information\n") != NULL, cases[i].info);
        assert_int_equal(strstr(text, "TRACE a trace\n") != NULL, cases[i].trace);
        free(text);
    }
}

static void long_line(void)
{
    char words[3000];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = 0;
    cst_log(CST_LOG_WARN, "%s", words);
    cst_log(CST_LOG_WARN, "next");
}

static void a_long_line_is_cut_and_ended(void **state)
{
    (void)state;
    char *text = logged("warn", long_line);
    char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_in_range(end - text, 900, 1023);
    assert_non_null(strstr(end, "next\n"));
    free(text);
}

enum { THREADS = 4, LINES = 500 };
static void *write_many(void *arg)
{
    for (int i = 0; i < LINES; i++)
        cst_log(CST_LOG_INFO, "thread %d says <%d>", *(int *)arg, i);
    return NULL;
}

static void from_threads(void)
{
    pthread_t threads[THREADS];
    int names[THREADS];
    for (int i = 0; i < THREADS; i++) {
        names[i] = i;
        pthread_create(&threads[i], NULL, write_many, &names[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    char *text = logged("info", from_threads);
    int next[THREADS] = {0}, lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int thread, number;
        char *message = strstr(line, "thread ");
        assert_non_null(message);
        assert_int_equal(sscanf(message, "thread %d says <%d>", &thread, &number), 2);
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(number, next[thread]++);
        lines++;
    }
    assert_int_equal(lines, THREADS * LINES);
    free(text);
}

static void look_at_environment(void)
{
    setenv("COSET_TRANPSORT", "shm", 1);
    setenv("COSET_RANK", "0", 1);
    cst_env_warn_unknown();
    cst_env_warn_unknown();
}

static void an_unknown_variable_is_named_once(void **state)
{
    (void)state;
    char *text = logged("warn", look_at_environment);
    char *first = strstr(text, "COSET_TRANPSORT");
    assert_non_null(first);
    assert_null(strstr(first + 1, "COSET_TRANPSORT"));
    assert_null(strstr(text, "COSET_RANK"));
    free(text);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/log", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_hold_back_what_they_say),
        cmocka_unit_test(a_long_line_is_cut_and_ended),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(an_unknown_variable_is_named_once),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
