/* SPDX-License-Identifier: Apache-2.0 */
#include "train/digits.h"

#include <stdlib.h>
#include <string.h>

enum { DARKEST = 16 };

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* One number of at most `high`, then the character `end`; returns what follows it, or NULL. */
static const char *number(const char *text, int high, char end, int *value)
{
    char *after;
    if (*text < '0' || *text > '9')
        return NULL;
    long v = strtol(text, &after, 10);
    *value = (int)v;
    return v <= high && *after == end ? after + 1 : NULL;
}

static const char *parse_line(const char *text, float *pixels, unsigned char *label)
{
    int value = 0;
    for (int i = 0; text && i < DIGITS_PIXELS; i++) {
        text = number(text, DARKEST, ',', &value);
        pixels[i] = (float)value / DARKEST;
    }
    if (text)
        text = number(text, DIGITS_CLASSES - 1, '\n', &value);
    *label = (unsigned char)value;
    return text;
}

int digits_parse(const char *text, digits *out, size_t *line)
{
    size_t count = count_lines(text);
    digits d = {count, calloc(count ? count : 1, sizeof *d.pixels), calloc(count ? count : 1, 1)};
    *line = 0;
    if (d.pixels && d.label)
        for (size_t i = 0; i < count && text; i++) {
            *line = i + 1;
            text = parse_line(text, d.pixels[i], &d.label[i]);
        }
    if (!d.pixels || !d.label || !text || *text || !count) {
        digits_free(&d);
        return -1;
    }
    *out = d;
    return 0;
}

void digits_free(digits *d)
{
    free(d->pixels);
    free(d->label);
    *d = (digits){0, NULL, NULL};
}
