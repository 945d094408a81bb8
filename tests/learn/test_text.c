/* SPDX-License-Identifier: Apache-2.0 */
/* The lessons on a terminal: what fits where, and what never appears. */
#include "learn/figures.h"
#include "learn/text.h"
#include "learn/lessons.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* 24 lines less a blank one and the prompt. */
enum { LINES = 22, COLUMNS = 79 };

static void build(learn_book *b, int ranks, size_t bytes)
{
    learn_choice choice = {ranks, bytes};
    for (int t = 0; t < LEARN_TOPICS; t++) {
        learn_lesson(b, learn_lessons[t].word, learn_lessons[t].title);
        learn_lessons[t].build(b, &choice);
    }
}

static void check_page(const char *page, bool short_enough)
{
    int lines = 0;
    for (const char *line = page; *line; line = strchr(line, '\n') + 1) {
        size_t length = strcspn(line, "\n");
        if (length > COLUMNS)
            fail_msg("%zu columns: %.*s", length, (int)length, line);
        if (length > 0 && line[length - 1] == ' ')
            fail_msg("a space at the end: '%.*s'", (int)length, line);
        lines++;
    }
    if (short_enough && lines > LINES)
        fail_msg("%d lines:\n%s", lines, page);
    for (const char *c = page; *c; c++)
        if (*c != '\n' && (*c < ' ' || *c > '~'))
            fail_msg("character %d in: %s", *c, page);
}

static void pages_fit_80x24(void **state)
{
    (void)state;
    for (int ranks = LEARN_MIN_RANKS; ranks <= LEARN_MAX_RANKS; ranks++) {
        learn_book b = {0};
        learn_pages pages;
        build(&b, ranks, (size_t)100 << 20);
        learn_layout(&b, (learn_style){COLUMNS, false}, &pages);
        for (size_t i = 0; i < pages.count; i++)
            check_page(pages.page[i], ranks <= 8);
        learn_pages_free(&pages);
        learn_free(&b);
    }
}

static void sizes_do_not_break_the_layout(void **state)
{
    (void)state;
    static const size_t sizes[] = {64, 1000, 4097, (size_t)1 << 40};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        learn_book b = {0};
        learn_pages pages;
        build(&b, 7, sizes[s]);
        learn_layout(&b, (learn_style){COLUMNS, false}, &pages);
        for (size_t i = 0; i < pages.count; i++)
            check_page(pages.page[i], false);
        learn_pages_free(&pages);
        learn_free(&b);
    }
}

/* With and without colours the same words stand in the same places. */
static void colours_change_no_line(void **state)
{
    (void)state;
    learn_book b = {0};
    learn_pages plain, coloured;
    build(&b, 4, (size_t)100 << 20);
    learn_layout(&b, (learn_style){COLUMNS, false}, &plain);
    learn_layout(&b, (learn_style){COLUMNS, true}, &coloured);
    assert_int_equal(plain.count, coloured.count);
    for (size_t i = 0; i < coloured.count; i++) {
        assert_null(strchr(plain.page[i], '\033'));
        int column = 0;
        for (const char *c = coloured.page[i]; *c; c++) {
            if (*c == '\033')
                c = strchr(c, 'm');
            else
                column = *c == '\n' ? 0 : column + 1;
            assert_true(column <= COLUMNS);
        }
        assert_null(strchr(coloured.page[i], '`'));
    }
    learn_pages_free(&plain);
    learn_pages_free(&coloured);
    learn_free(&b);
}

static void every_step_is_drawn(void **state)
{
    (void)state;
    learn_book b = {0};
    learn_choice choice = {5, 1000};
    learn_lesson_ring(&b, &choice);
    int frames = 0;
    for (size_t i = 0; i < b.count; i++)
        frames += b.blocks[i].kind == LEARN_PAGE && b.blocks[i].id != NULL;
    assert_int_equal(frames, 1 + 2 * (5 - 1));
    learn_free(&b);
}

static char *wrapped(learn_style style, const char *text)
{
    learn_draft d;
    learn_draft_open(&d);
    learn_wrap(d.out, style, "- ", text);
    return learn_draft_close(&d);
}

static void wrapping(void **state)
{
    (void)state;
    char *text = wrapped((learn_style){10, false}, "aa bb cc averyverylongword d");
    assert_string_equal(text, "- aa bb cc\n  averyverylongword\n  d\n");
    free(text);
    text = wrapped((learn_style){10, true}, "aa `b c` d");
    assert_string_equal(text, "- aa \033[36mb c\033[39m d\n");
    free(text);
    text = wrapped((learn_style){10, false}, "");
    assert_string_equal(text, "- \n");
    free(text);
}

static void byte_counts(void **state)
{
    (void)state;
    learn_bytes_text room;
    assert_string_equal(learn_bytes(room, 0), "0 bytes");
    assert_string_equal(learn_bytes(room, 1023), "1023 bytes");
    assert_string_equal(learn_bytes(room, 1024), "1 KiB");
    assert_string_equal(learn_bytes(room, 1.5 * 1024 * 1024), "1.5 MiB");
    assert_string_equal(learn_bytes(room, 100.0 * 1024 * 1024), "100 MiB");
    assert_string_equal(learn_seconds(room, 0.0425), "42.5 ms");
    assert_string_equal(learn_seconds(room, 2e-6), "2.00 us");
    assert_string_equal(learn_seconds(room, 12.34), "12.3 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_fit_80x24),
        cmocka_unit_test(sizes_do_not_break_the_layout),
        cmocka_unit_test(colours_change_no_line),
        cmocka_unit_test(every_step_is_drawn),
        cmocka_unit_test(wrapping),
        cmocka_unit_test(byte_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
