/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of aligned columns, printed row by row so that a long measurement shows each row as soon as it is there. */
#ifndef COSET_TOOLS_TABLE_H
#define COSET_TOOLS_TABLE_H
#include <stdio.h>

typedef struct {
    const char *title;
    int width; /* at least; positive: flush right, negative: flush left */
} tool_column;

typedef struct {
    FILE *out;
    const tool_column *columns; /* ends with a NULL title */
    int at;
} tool_table;

/* Prints the titles. `columns` must live as long as the table. */
tool_table tool_table_start(FILE *out, const tool_column *columns);
/* The next cell, printf-like; the line ends by itself after the last column. */
void tool_cell(tool_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next cell: a number with `digits` significant digits and no exponent; "-" for NaN. */
void tool_cell_number(tool_table *table, double value, int digits);
/* "4 B", "64 KiB", "25 MiB": exact sizes stay exact. `out` has at least 32 bytes; returns it. */
const char *tool_size_text(char out[32], double bytes);
#endif
