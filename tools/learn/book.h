/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lessons as data: a list of blocks, which text.c lays out for terminals and html.c for browsers.
 *
 * Everything is plain text. `code` in back quotes is set as code where that is possible. A page is what a reader sees
 * at once on a terminal; the lesson's builder starts one with learn_page.
 */
#ifndef COSET_LEARN_BOOK_H
#define COSET_LEARN_BOOK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum {
    LEARN_LESSON, /* text = title, id = the word that names the lesson ("ring") */
    LEARN_PAGE,   /* text = title; id = name of a figure that these pages are the frames of, or NULL */
    LEARN_TEXT,   /* a paragraph */
    LEARN_ITEM,   /* one of a list */
    LEARN_KEY,    /* the sentence to take home */
    LEARN_DRAWING, /* text = lines as they stand; label = the same in words, for who cannot see it; id = figure or NULL */
    LEARN_TABLE,   /* text = rows ended by '\n', cells parted by '\t'; the first row is the head; label = caption */
} learn_kind;

typedef struct {
    learn_kind kind;
    char *text;
    char *label;
    const char *id;
} learn_block;

typedef struct {
    learn_block *blocks;
    size_t count, room;
} learn_book;

/* Every function here ends the process with one line on standard error if memory runs out. */
void learn_lesson(learn_book *b, const char *id, const char *title);
void learn_page(learn_book *b, const char *figure, const char *title, ...) __attribute__((format(printf, 3, 4)));
void learn_text(learn_book *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void learn_item(learn_book *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void learn_key(learn_book *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void learn_free(learn_book *b);

/* Text under construction, for drawings and tables: write to `out`, then hand it to one of the two below. */
typedef struct {
    FILE *out;
    char *text;
    size_t length;
} learn_draft;
void learn_draft_open(learn_draft *d);
/* The finished text, to be freed by the caller. */
char *learn_draft_close(learn_draft *d);
void learn_drawing(learn_book *b, const char *figure, learn_draft *d, const char *label, ...)
    __attribute__((format(printf, 4, 5)));
void learn_table(learn_book *b, learn_draft *d, const char *caption, ...) __attribute__((format(printf, 3, 4)));

/* malloc'd printf. */
char *learn_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* realloc that does not return NULL. */
void *learn_room(void *old, size_t bytes);
#endif
