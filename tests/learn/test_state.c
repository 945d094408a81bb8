/* SPDX-License-Identifier: Apache-2.0 */
/* The remembered answers: kept, damaged, unreadable, shared by two sessions. */
#include "learn/quiz.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/coset-learn-XXXXXX";
static char path[128], bad_path[144];

static int begin(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    setenv("XDG_STATE_HOME", folder, 1);
    snprintf(path, sizeof path, "%s/coset/learn.json", folder);
    snprintf(bad_path, sizeof bad_path, "%s.bad", path);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void put_file(const char *text, size_t length)
{
    char parent[160];
    snprintf(parent, sizeof parent, "%s/coset", folder);
    mkdir(parent, 0700);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, length, f), length);
    fclose(f);
}

static bool there(const char *name)
{
    struct stat info;
    return lstat(name, &info) == 0;
}

/* What a function prints on standard error, as lines. */
static int quiet_fd = -1;

static void hear_errors(void)
{
    quiet_fd = dup(STDERR_FILENO);
    char name[160];
    snprintf(name, sizeof name, "%s/errors", folder);
    int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static int error_lines(void)
{
    char text[4096];
    off_t length = lseek(STDERR_FILENO, 0, SEEK_END);
    ssize_t got = pread(STDERR_FILENO, text, sizeof text, 0);
    assert_true(got == length && got < (ssize_t)sizeof text);
    dup2(quiet_fd, STDERR_FILENO);
    close(quiet_fd);
    int lines = 0;
    for (ssize_t i = 0; i < got; i++)
        lines += text[i] == '\n';
    return lines;
}

static void remembers(void **state)
{
    (void)state;
    learn_state *s = learn_state_open();
    assert_string_equal(learn_state_path(s), path);
    assert_false(there(path)); /* looking leaves nothing behind */
    learn_state_record(s, "one", true);
    learn_state_record(s, "two", false);
    learn_state_record(s, "two", true);
    learn_state_record(s, "three", false);
    learn_state_close(s);
    s = learn_state_open();
    learn_score one = learn_state_score(s, "one"), two = learn_state_score(s, "two"),
                three = learn_state_score(s, "three");
    assert_true(one.right == 1 && one.wrong == 0 && !one.again);
    assert_true(two.right == 1 && two.wrong == 1 && !two.again);
    assert_true(three.right == 0 && three.wrong == 1 && three.again);
    assert_int_equal(learn_state_score(s, "none").right, 0);
    assert_int_equal(learn_state_reset(s), 0);
    assert_false(there(path));
    assert_int_equal(learn_state_score(s, "three").wrong, 0);
    assert_int_equal(learn_state_reset(s), 0);
    learn_state_close(s);
}

static void no_temporary_file_stays(void **state)
{
    (void)state;
    learn_state *s = learn_state_open();
    for (int i = 0; i < 20; i++)
        learn_state_record(s, "one", i % 2);
    learn_state_close(s);
    char command[200];
    snprintf(command, sizeof command, "test \"$(ls -A '%s/coset')\" = learn.json", folder);
    assert_int_equal(system(command), 0);
}

static void damaged_files(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "",
        "{",
        "[]",
        "null",
        "42",
        "\"text\"",
        "{}",
        "{\"version\": 1}",
        "{\"version\": 2, \"questions\": {}}",
        "{\"version\": \"1\", \"questions\": {}}",
        "{\"version\": 1, \"questions\": []}",
        "{\"version\": 1, \"questions\": {\"one\": 3}}",
        "{\"version\": 1, \"questions\": {\"one\": {}}}",
        "{\"version\": 1, \"questions\": {\"one\": {\"right\": -1, \"wrong\": 0, \"again\": false}}}",
        "{\"version\": 1, \"questions\": {\"one\": {\"right\": 1, \"wrong\": 0, \"again\": \"no\"}}}",
        "{\"version\": 1, \"questions\": {}} trailing",
        "\xff\xfe\xfd",
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        put_file(damaged[i], strlen(damaged[i]));
        hear_errors();
        learn_state *s = learn_state_open();
        learn_state_record(s, "one", true);
        learn_state_close(s);
        assert_int_equal(error_lines(), 1);
        assert_true(there(bad_path)); /* nothing is thrown away */
        s = learn_state_open();
        assert_int_equal(learn_state_score(s, "one").right, 1);
        learn_state_close(s);
        unlink(bad_path);
    }
}

static void nested_too_deeply(void **state)
{
    (void)state;
    enum { DEEP = 200000 };
    char *text = malloc(DEEP);
    memset(text, '[', DEEP);
    put_file(text, DEEP);
    free(text);
    hear_errors();
    learn_state_close(learn_state_open());
    assert_int_equal(error_lines(), 1);
}

/* Numbers beyond int, and questions of other versions. */
static void strange_but_valid(void **state)
{
    (void)state;
    const char *text = "{\"version\": 1, \"questions\": {\"one\": {\"right\": 1e300, \"wrong\": 0.5, \"again\": true},"
                       "\"future\": {\"right\": 7, \"wrong\": 0, \"again\": false, \"more\": [1, 2]}}}";
    put_file(text, strlen(text));
    learn_state *s = learn_state_open();
    assert_true(learn_state_score(s, "one").again);
    assert_int_equal(learn_state_score(s, "one").right, 0);
    learn_state_record(s, "two", true);
    learn_state_close(s);
    s = learn_state_open();
    assert_int_equal(learn_state_score(s, "future").right, 7);
    learn_state_close(s);
}

static void too_large_or_no_file(void **state)
{
    (void)state;
    char *text = calloc(2 << 20, 1);
    memset(text, ' ', 2 << 20);
    put_file(text, 2 << 20);
    free(text);
    for (int kind = 0; kind < 3; kind++) {
        hear_errors();
        learn_state *s = learn_state_open(); /* a fifo must not block it */
        learn_state_record(s, "one", true);
        assert_int_equal(learn_state_score(s, "one").right, 1); /* for this session */
        learn_state_close(s);
        assert_int_equal(error_lines(), 1);
        assert_false(there(bad_path));
        if (kind == 0) {
            unlink(path);
            assert_int_equal(mkfifo(path, 0600), 0);
        } else if (kind == 1) {
            unlink(path);
            assert_int_equal(mkdir(path, 0700), 0);
        }
    }
}

/* A file stands where the folder should be: nothing can be written, whoever runs the test. */
static void unwritable(void **state)
{
    (void)state;
    char blocked[160];
    snprintf(blocked, sizeof blocked, "%s/coset", folder);
    FILE *f = fopen(blocked, "w");
    assert_non_null(f);
    fclose(f);
    hear_errors();
    learn_state *s = learn_state_open();
    learn_state_record(s, "one", false);
    learn_state_record(s, "two", false);
    assert_true(learn_state_score(s, "one").again);
    learn_state_close(s);
    assert_int_equal(error_lines(), 1);
}

static void relative_folder_is_ignored(void **state)
{
    (void)state;
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", folder, 1);
    learn_state *s = learn_state_open();
    char wanted[160];
    snprintf(wanted, sizeof wanted, "%s/.local/state/coset/learn.json", folder);
    assert_string_equal(learn_state_path(s), wanted);
    learn_state_record(s, "one", true);
    learn_state_close(s);
    assert_true(there(wanted));
    struct stat info;
    snprintf(wanted, sizeof wanted, "%s/.local", folder);
    assert_int_equal(stat(wanted, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

/* Sessions at the same time: no answer is lost. */
static void two_sessions(void **state)
{
    (void)state;
    enum { SESSIONS = 4, ANSWERS = 25 };
    for (int i = 0; i < SESSIONS; i++)
        if (fork() == 0) {
            learn_state *s = learn_state_open();
            for (int j = 0; j < ANSWERS; j++)
                learn_state_record(s, "one", true);
            learn_state_close(s);
            _exit(0);
        }
    for (int i = 0; i < SESSIONS; i++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    learn_state *s = learn_state_open();
    assert_int_equal(learn_state_score(s, "one").right, SESSIONS * ANSWERS);
    learn_state_close(s);
}

/* The output of a quiz that gets `input`; to be freed. */
static char *quiz_output(learn_state *s, learn_quiz quiz, const char *input)
{
    learn_draft d;
    learn_draft_open(&d);
    quiz.style = (learn_style){78, false};
    quiz.in = *input ? fmemopen((char *)(uintptr_t)input, strlen(input), "r") : fopen("/dev/null", "r");
    quiz.out = d.out;
    learn_ask(&quiz, s);
    fclose(quiz.in);
    return learn_draft_close(&d);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

static void quiz_asks_mistakes_first(void **state)
{
    (void)state;
    learn_state *s = learn_state_open();
    learn_topic topic;
    learn_state_record(s, learn_question_at(5, &topic)->id, false);
    learn_state_record(s, learn_question_at(50, &topic)->id, false);
    for (int number = 1; number <= 30; number++)
        if (number != 5)
            learn_state_record(s, learn_question_at(number, &topic)->id, true);
    for (uint64_t seed = 0; seed < 5; seed++) {
        char *text = quiz_output(s, (learn_quiz){.seed = seed, .topics = 15, .limit = 4}, "\n\n\n\n");
        int first, second;
        assert_int_equal(sscanf(strstr(text, "Question "), "Question %d", &first), 1);
        assert_int_equal(sscanf(strstr(strstr(text, "Question ") + 1, "Question "), "Question %d", &second), 1);
        assert_true((first == 5 && second == 50) || (first == 50 && second == 5));
        int third;
        char *rest = strstr(strstr(strstr(text, "Question ") + 1, "Question ") + 1, "Question ");
        assert_int_equal(sscanf(rest, "Question %d", &third), 1);
        assert_true(third > 30); /* then what is new */
        free(text);
    }
    learn_state_close(s);
}

static void quiz_tells_right_from_wrong(void **state)
{
    (void)state;
    learn_state *s = learn_state_open();
    int right = 0, wrong = 0;
    for (int number = 1; number <= learn_question_count(); number++)
        for (char letter = 'a'; letter <= 'd'; letter++) {
            char input[] = {letter, '\n', 0};
            char *text = quiz_output(s, (learn_quiz){.seed = 9, .topics = 15, .number = number}, input);
            bool good = strstr(text, "\nRight.\n"), bad = strstr(text, "\nNo.\n");
            assert_true(good != bad);
            assert_true(bad == (strstr(text, "The answer is ") != NULL));
            learn_topic topic;
            assert_true(learn_state_score(s, learn_question_at(number, &topic)->id).again == bad);
            right += good;
            wrong += bad;
            free(text);
        }
    assert_int_equal(right, learn_question_count());
    assert_int_equal(wrong, 3 * learn_question_count());
    learn_state_close(s);
}

static void quiz_takes_odd_input(void **state)
{
    (void)state;
    learn_state *s = learn_state_open();
    learn_quiz quiz = {.seed = 1, .topics = 15, .limit = 3};
    static const char *const inputs[] = {
        "", "q\n", "Q", "\n\n\n", "x\ny\nzz\nq\n", "e\n5\n0\naa\nq\n", "  b  \r\nq\n", "1\n2\n3\n"};
    static const int questions[] = {1, 1, 1, 3, 1, 1, 2, 3}, hints[] = {0, 0, 0, 0, 3, 4, 0, 0},
                     answers[] = {0, 0, 0, 0, 0, 0, 1, 3};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        char *text = quiz_output(s, quiz, inputs[i]);
        assert_int_equal(count_of(text, "Question "), questions[i]);
        assert_int_equal(count_of(text, "Type one letter"), hints[i]);
        assert_int_equal(count_of(text, "\nRight.\n") + count_of(text, "\nNo.\n"), answers[i]);
        free(text);
    }
    learn_state_close(s);
}

/* The same seed gives the same questions; other seeds give other places to the right answer, about a quarter each. */
static void seeds(void **state)
{
    (void)state;
    learn_state *s = learn_state_open();
    int places[LEARN_OPTIONS] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        learn_quiz quiz = {.seed = seed, .topics = 15, .number = 6, .answers = true};
        char *text = quiz_output(s, quiz, ""), *again = quiz_output(s, quiz, "");
        assert_string_equal(text, again);
        int place = 0;
        for (char *c = text; c < strstr(text, "Right: "); c++)
            place = !strncmp(c, "\n  ", 3) && c[4] == ')' ? c[3] - 'a' : place;
        assert_in_range(place, 0, LEARN_OPTIONS - 1);
        places[place]++;
        free(text);
        free(again);
    }
    for (int i = 0; i < LEARN_OPTIONS; i++)
        assert_in_range(places[i], 60, 140); /* 100 +- 4.6 standard deviations */
    learn_state_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(remembers, begin, end),
        cmocka_unit_test_setup_teardown(no_temporary_file_stays, begin, end),
        cmocka_unit_test_setup_teardown(damaged_files, begin, end),
        cmocka_unit_test_setup_teardown(nested_too_deeply, begin, end),
        cmocka_unit_test_setup_teardown(strange_but_valid, begin, end),
        cmocka_unit_test_setup_teardown(too_large_or_no_file, begin, end),
        cmocka_unit_test_setup_teardown(unwritable, begin, end),
        cmocka_unit_test_setup_teardown(relative_folder_is_ignored, begin, end),
        cmocka_unit_test_setup_teardown(two_sessions, begin, end),
        cmocka_unit_test_setup_teardown(quiz_asks_mistakes_first, begin, end),
        cmocka_unit_test_setup_teardown(quiz_tells_right_from_wrong, begin, end),
        cmocka_unit_test_setup_teardown(quiz_takes_odd_input, begin, end),
        cmocka_unit_test_setup_teardown(seeds, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
