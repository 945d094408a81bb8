/* SPDX-License-Identifier: Apache-2.0 */
/* A book laid out for terminals and pipes. */
#ifndef COSET_LEARN_TEXT_H
#define COSET_LEARN_TEXT_H
#include "learn/book.h"

#include <stdbool.h>
#include <stdio.h>

/* How to write: lines of at most `width` columns (drawings and tables keep their own), with colours or without. */
typedef struct {
    int width;
    bool colour;
} learn_style;

typedef struct {
    char **page; /* each ends with a newline */
    size_t count;
} learn_pages;
void learn_layout(const learn_book *b, learn_style style, learn_pages *pages);
void learn_pages_free(learn_pages *pages);

/* One paragraph: the first line begins with `first`, the others with as many spaces. */
void learn_wrap(FILE *out, learn_style style, const char *first, const char *text);

typedef enum { LEARN_PLAIN, LEARN_BOLD, LEARN_GOOD, LEARN_BAD, LEARN_DIM } learn_look;
/* Switches the look, if the style has colours. */
void learn_look_on(FILE *out, learn_style style, learn_look look);
#endif
