/* SPDX-License-Identifier: Apache-2.0 */
/* The UCI handwritten digits: 1,797 images of 8x8 pixels (examples/data/README.md has source and licence). */
#ifndef COSET_TOOLS_TRAIN_DIGITS_H
#define COSET_TOOLS_TRAIN_DIGITS_H
#include <stddef.h>

enum { DIGITS_PIXELS = 64, DIGITS_CLASSES = 10 };

typedef struct {
    size_t count;
    float (*pixels)[DIGITS_PIXELS]; /* 0..1 */
    unsigned char *label;           /* 0..9 */
} digits;

/* The text of the data file. */
extern const char tool_digits_csv[];

/* Parses `text`. Returns 0, or -1 with *line = the number of the line that is wrong (0: out of memory). */
int digits_parse(const char *text, digits *out, size_t *line);
void digits_free(digits *d);
#endif
