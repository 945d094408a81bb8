/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 8 };

void learn_look_on(FILE *out, learn_style style, learn_look look)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[1;32m", "\033[1;31m", "\033[2m"};
    if (style.colour)
        fputs(codes[look], out);
}

/* Columns that the word takes: with colours the back quotes become a change of colour. */
static int word_width(learn_style style, const char *word, int length)
{
    int ticks = 0;
    for (int i = 0; i < length; i++)
        ticks += word[i] == '`';
    return style.colour ? length - ticks : length;
}

static void print_word(FILE *out, learn_style style, const char *word, int length, bool *code)
{
    for (int i = 0; i < length; i++) {
        if (word[i] != '`' || !style.colour) {
            fputc(word[i], out);
            continue;
        }
        *code = !*code;
        fputs(*code ? "\033[36m" : "\033[39m", out);
    }
}

void learn_wrap(FILE *out, learn_style style, const char *first, const char *text)
{
    int indent = (int)strlen(first), column = indent;
    bool code = false, fresh = true;
    fputs(first, out);
    while (*text) {
        int length = (int)strcspn(text, " "), width = word_width(style, text, length);
        if (!fresh && column + 1 + width > style.width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (!fresh) {
            fputc(' ', out);
            column++;
        }
        print_word(out, style, text, length, &code);
        column += width;
        fresh = false;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* The cell that starts at `text`: its length; *next = the one after it, or NULL at the end of the row. */
static int cell(const char *text, const char **next)
{
    int length = (int)strcspn(text, "\t\n");
    *next = text[length] == '\t' ? text + length + 1 : NULL;
    return length;
}

static int table_widths(const char *rows, int widths[MAX_COLUMNS])
{
    int columns = 0;
    memset(widths, 0, MAX_COLUMNS * sizeof *widths);
    for (const char *row = rows; *row; row = strchr(row, '\n') + 1) {
        const char *next = row;
        for (int c = 0; next && c < MAX_COLUMNS; c++) {
            int length = cell(next, &next);
            widths[c] = length > widths[c] ? length : widths[c];
            columns = c + 1 > columns ? c + 1 : columns;
        }
    }
    return columns;
}

static void print_table(FILE *out, learn_style style, const learn_block *block)
{
    int widths[MAX_COLUMNS], columns = table_widths(block->text, widths), total = 0;
    for (int c = 0; c < columns; c++)
        total += widths[c] + 3 * (c > 0);
    learn_wrap(out, style, "  ", block->label);
    for (const char *row = block->text; *row; row = strchr(row, '\n') + 1) {
        const char *next = row;
        fputs("  ", out);
        for (int c = 0; next && c < columns; c++) {
            const char *text = next;
            int length = cell(text, &next), pad = widths[c] - length;
            fprintf(out, "%s%*s%.*s", c ? "   " : "", c ? pad : 0, "", length, text);
            if (c == 0 && next)
                fprintf(out, "%*s", pad, "");
        }
        fputc('\n', out);
        if (row == block->text) {
            fputs("  ", out);
            for (int i = 0; i < total; i++)
                fputc('-', out);
            fputc('\n', out);
        }
    }
}

static void print_drawing(FILE *out, const char *lines)
{
    while (*lines) {
        int length = (int)strcspn(lines, "\n"), seen = length;
        while (seen > 0 && lines[seen - 1] == ' ')
            seen--;
        fprintf(out, seen ? "  %.*s\n" : "%.*s\n", seen, lines);
        lines += length + (lines[length] == '\n');
    }
}

static void print_block(FILE *out, learn_style style, const learn_block *block)
{
    switch (block->kind) {
    case LEARN_TEXT: learn_wrap(out, style, "", block->text); break;
    case LEARN_ITEM: learn_wrap(out, style, "  - ", block->text); break;
    case LEARN_KEY:
        learn_look_on(out, style, LEARN_BOLD);
        learn_wrap(out, style, "  => ", block->text);
        learn_look_on(out, style, LEARN_PLAIN);
        break;
    case LEARN_DRAWING: print_drawing(out, block->text); break;
    case LEARN_TABLE: print_table(out, style, block); break;
    case LEARN_LESSON:
    case LEARN_PAGE: break;
    }
}

static size_t pages_of_lesson(const learn_book *b, size_t from)
{
    size_t pages = 0;
    for (size_t i = from; i < b->count && b->blocks[i].kind != LEARN_LESSON; i++)
        pages += b->blocks[i].kind == LEARN_PAGE;
    return pages;
}

static void print_head(FILE *out, learn_style style, const char *lesson, const char *page, size_t number, size_t of)
{
    char *head = learn_format("%s: %s", lesson, page), *place = learn_format("%zu of %zu", number, of);
    int gap = style.width - (int)strlen(head) - (int)strlen(place);
    learn_look_on(out, style, LEARN_BOLD);
    fputs(head, out);
    learn_look_on(out, style, LEARN_PLAIN);
    learn_look_on(out, style, LEARN_DIM);
    fprintf(out, "%*s%s", gap > 2 ? gap : 2, "", place);
    learn_look_on(out, style, LEARN_PLAIN);
    fputs("\n", out);
    free(head);
    free(place);
}

/* A blank line goes before every block, but not between the items of a list. */
static bool gap_before(const learn_block *block)
{
    return block->kind != LEARN_ITEM || block[-1].kind != LEARN_ITEM;
}

void learn_layout(const learn_book *b, learn_style style, learn_pages *pages)
{
    const char *lesson = "";
    size_t number = 0, of = 0;
    *pages = (learn_pages){learn_room(NULL, (b->count + 1) * sizeof(char *)), 0};
    for (size_t i = 0; i < b->count;) {
        if (b->blocks[i].kind == LEARN_LESSON) {
            lesson = b->blocks[i].text;
            of = pages_of_lesson(b, ++i);
            number = 0;
            continue;
        }
        learn_draft d;
        learn_draft_open(&d);
        print_head(d.out, style, lesson, b->blocks[i].text, ++number, of);
        for (i++; i < b->count && b->blocks[i].kind > LEARN_PAGE; i++) {
            if (gap_before(&b->blocks[i]))
                fputc('\n', d.out);
            print_block(d.out, style, &b->blocks[i]);
        }
        pages->page[pages->count++] = learn_draft_close(&d);
    }
}

void learn_pages_free(learn_pages *pages)
{
    for (size_t i = 0; i < pages->count; i++)
        free(pages->page[i]);
    free(pages->page);
    *pages = (learn_pages){0};
}
