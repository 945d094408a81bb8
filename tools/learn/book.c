/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/book.h"

#include "command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void no_memory(void)
{
    fputs("coset learn: out of memory\n", stderr);
    exit(TOOL_FAILED);
}

void *learn_room(void *old, size_t bytes)
{
    void *room = realloc(old, bytes);
    if (!room)
        no_memory();
    return room;
}

static char *format_list(const char *format, va_list args)
{
    char *text;
    if (vasprintf(&text, format, args) < 0)
        no_memory();
    return text;
}

char *learn_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = format_list(format, args);
    va_end(args);
    return text;
}

static void add(learn_book *b, learn_block block)
{
    if (b->count == b->room) {
        b->room = b->room ? 2 * b->room : 64;
        b->blocks = learn_room(b->blocks, b->room * sizeof *b->blocks);
    }
    b->blocks[b->count++] = block;
}

void learn_lesson(learn_book *b, const char *id, const char *title)
{
    add(b, (learn_block){LEARN_LESSON, learn_format("%s", title), NULL, id});
}

void learn_page(learn_book *b, const char *figure, const char *title, ...)
{
    va_list args;
    va_start(args, title);
    add(b, (learn_block){LEARN_PAGE, format_list(title, args), NULL, figure});
    va_end(args);
}

void learn_text(learn_book *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(b, (learn_block){LEARN_TEXT, format_list(format, args), NULL, NULL});
    va_end(args);
}

void learn_item(learn_book *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(b, (learn_block){LEARN_ITEM, format_list(format, args), NULL, NULL});
    va_end(args);
}

void learn_key(learn_book *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(b, (learn_block){LEARN_KEY, format_list(format, args), NULL, NULL});
    va_end(args);
}

void learn_draft_open(learn_draft *d)
{
    d->out = open_memstream(&d->text, &d->length);
    if (!d->out)
        no_memory();
}

char *learn_draft_close(learn_draft *d)
{
    if (fclose(d->out))
        no_memory();
    return d->text;
}

void learn_drawing(learn_book *b, const char *figure, learn_draft *d, const char *label, ...)
{
    va_list args;
    va_start(args, label);
    add(b, (learn_block){LEARN_DRAWING, learn_draft_close(d), format_list(label, args), figure});
    va_end(args);
}

void learn_table(learn_book *b, learn_draft *d, const char *caption, ...)
{
    va_list args;
    va_start(args, caption);
    add(b, (learn_block){LEARN_TABLE, learn_draft_close(d), format_list(caption, args), NULL});
    va_end(args);
}

void learn_free(learn_book *b)
{
    for (size_t i = 0; i < b->count; i++) {
        free(b->blocks[i].text);
        free(b->blocks[i].label);
    }
    free(b->blocks);
    *b = (learn_book){0};
}
