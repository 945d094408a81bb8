/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input ends the process, so each parse runs in a child; what it printed and its status are the result. */
#include "unit.h"

#include "common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    int ranks, first;
    size_t min;
    double share;
    const char *algo, *memory;
    bool in_place;
} values;

static const char *const memories[] = {"coset", "malloc", NULL};

static values parse(int argc, char **argv, const char *positional)
{
    values v = {.ranks = 2, .min = 4, .share = 0.5, .algo = "auto", .memory = "coset"};
    const tool_option options[] = {
        TOOL_INT("ranks", 'n', "N", "ranks", &v.ranks, 1, 64),
        TOOL_SIZE("min", 'b', "SIZE", "size", &v.min),
        TOOL_REAL("share", 0, "X", "share", &v.share, 0, 1),
        TOOL_TEXT("algo", 0, "A", "algorithm", &v.algo),
        TOOL_CHOICE("memory", 0, "M", "memory", &v.memory, memories),
        TOOL_FLAG("in-place", 0, "in place", &v.in_place),
        TOOL_END,
    };
    v.first = tool_options_parse(argc, argv, options, "About.", positional);
    return v;
}

enum { MAX_ARGS = 12 };
/* Splits `line` at spaces (it must be writable) into argv. */
static int split(char *line, char **argv)
{
    int argc = 0;
    for (char *word = strtok(line, " "); word && argc < MAX_ARGS; word = strtok(NULL, " "))
        argv[argc++] = word;
    return argc;
}

static values parsed(const char *line, const char *positional)
{
    static char copy[256];
    char *argv[MAX_ARGS + 1] = {NULL};
    snprintf(copy, sizeof copy, "coset_test %s", line);
    int argc = split(copy, argv);
    return parse(argc, argv, positional);
}

/* The exit status of a child that parses `line`; *said = what it wrote. */
static int refused(const char *line, char *said, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        parsed(line, NULL);
        _exit(0);
    }
    close(ends[1]);
    ssize_t n = 0, got;
    while ((got = read(ends[0], said + n, size - 1 - (size_t)n)) > 0)
        n += got;
    said[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void every_kind_is_stored(void **state)
{
    (void)state;
    values v = parsed("-n 3 --min=64K --share 0.25 --algo ring --memory malloc --in-place", NULL);
    assert_int_equal(v.ranks, 3);
    assert_int_equal(v.min, 65536);
    assert_true(v.share == 0.25);
    assert_string_equal(v.algo, "ring");
    assert_string_equal(v.memory, "malloc");
    assert_true(v.in_place);
    assert_int_equal(v.first, 11); /* past the last word */
}

static void nothing_given_keeps_the_defaults(void **state)
{
    (void)state;
    values v = parsed("", NULL);
    assert_int_equal(v.ranks, 2);
    assert_int_equal(v.min, 4);
    assert_string_equal(v.algo, "auto");
    assert_false(v.in_place);
    assert_int_equal(v.first, 1);
}

static void options_end_at_the_first_word(void **state)
{
    (void)state;
    values v = parsed("-n 3 file -n 4", "FILE...");
    assert_int_equal(v.ranks, 3);
    assert_int_equal(v.first, 3);
    v = parsed("-n 3 -- -n 4", "FILE...");
    assert_int_equal(v.ranks, 3);
    assert_int_equal(v.first, 4);
}

static void sizes_take_powers_of_1024(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        size_t value;
    } cases[] = {
        {"0", 0, 0},
        {"4096", 0, 4096},
        {"64K", 0, 65536},
        {"64k", 0, 65536},
        {"25M", 0, 25u << 20},
        {"3G", 0, (size_t)3 << 30},
        {"18446744073709551615", 0, SIZE_MAX},
        {"17179869183G", 0, (size_t)17179869183u << 30},
        {"17179869184G", -1, 0}, /* 2^64 */
        {"18446744073709551616", -1, 0},
        {"-1", -1, 0},
        {" 1", -1, 0},
        {"+1", -1, 0},
        {"", -1, 0},
        {"K", -1, 0},
        {"1KB", -1, 0},
        {"1T", -1, 0},
        {"1.5M", -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t v = 77;
        assert_int_equal(tool_parse_size(cases[i].text, &v), cases[i].result);
        assert_true(v == (cases[i].result ? 77 : cases[i].value));
    }
}

static void what_was_asked_for_is_told(void **state)
{
    (void)state;
    int steps = 0;
    size_t min = 4;
    double rate = 0.05;
    const char *codec = NULL, *file = "a.json";
    bool compare = false, plot = true;
    const tool_option options[] = {
        TOOL_INT("steps", 0, "K", "", &steps, 1, 9),
        TOOL_SIZE("min", 0, "SIZE", "", &min),
        TOOL_REAL("rate", 0, "R", "", &rate, 0, 1),
        TOOL_TEXT("codec", 0, "C", "", &codec),
        TOOL_OUTPUT("json", 0, "FILE", "", &file),
        TOOL_FLAG("compare", 0, "", &compare),
        TOOL_FLAG("plot", 0, "", &plot),
        TOOL_END,
    };
    char text[200];
    tool_options_text("coset test", options, text, sizeof text);
    assert_string_equal(text,
                        "coset test\nno --steps\n--min=4\n--rate=0.05\nno --codec\n--json\nno --compare\n--plot\n");
    steps = 3;
    codec = "eden";
    compare = true;
    tool_options_text("coset test", options, text, sizeof text);
    assert_string_equal(text, "coset test\n--steps=3\n--min=4\n--rate=0.05\n--codec=eden\n--json\n--compare\n--plot\n");
    tool_options_text("coset test", options, text, 20); /* too short: cut, not overrun */
    assert_int_equal(strlen(text), 19);
}

static void bad_input_is_one_line_and_status_2(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"--nothing", "'--nothing'"},
        {"-q", "'-q'"},
        {"-n", "'-n'"},
        {"-n 0", "--ranks=0: expected a whole number from 1 to 64"},
        {"-n 65", "1 to 64"},
        {"-n 2x", "--ranks=2x"},
        {"-n 99999999999999999999", "1 to 64"},
        {"--min=4Q", "--min=4Q: expected a size"},
        {"--min=-1", "--min=-1"},
        {"--share=1.5", "from 0 to 1"},
        {"--share=nan", "from 0 to 1"},
        {"--share=", "from 0 to 1"},
        {"--memory=heap", "expected one of coset, malloc"},
        {"--in-place=1", "'--in-place=1'"},
        {"word", "'word' is not expected here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[2048];
        assert_int_equal(refused(cases[i].line, said, sizeof said), 2);
        assert_non_null(strstr(said, cases[i].words));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* exactly one line */
    }
}

static void help_names_every_option(void **state)
{
    (void)state;
    char said[4096];
    assert_int_equal(refused("--help", said, sizeof said), 0);
    static const char *const words[] = {"Usage: coset_test", "About.",   "--ranks=N",  "-b",         "--min=SIZE",
                                        "--share=X",         "--algo=A", "--memory=M", "--in-place", "--help"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_non_null(strstr(said, words[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_stored),          cmocka_unit_test(nothing_given_keeps_the_defaults),
        cmocka_unit_test(options_end_at_the_first_word), cmocka_unit_test(bad_input_is_one_line_and_status_2),
        cmocka_unit_test(help_names_every_option),       cmocka_unit_test(what_was_asked_for_is_told),
        cmocka_unit_test(sizes_take_powers_of_1024),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
