/* SPDX-License-Identifier: Apache-2.0 */
/* One stream of one rank: bytes come in any pieces, whole lines go out, each with "[rank] " in front and in one
 * write. */
#ifndef COSET_RUN_OUTPUT_H
#define COSET_RUN_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>

/* A longer line is broken into several. */
#define OUTPUT_LINE 65536

/* Asked again and again while our own output takes nothing: whether to go on waiting. */
typedef struct {
    bool (*ask)(void *ctx);
    void *ctx;
} output_patience;

typedef struct {
    int from, to; /* from: non-blocking, owned; -1 once it has ended */
    size_t prefix, length;
    char *line; /* prefix, then what has come of the line */
    output_patience patience;
} output_stream;

/* Takes over `from`. False without memory. */
bool output_open(output_stream *s, int from, int to, int rank, output_patience patience);
/* Moves what is there. False if nobody reads `to` any more, or patience has ended. */
bool output_move(output_stream *s);
/* Moves what is there, ends a line without an end, and closes. */
bool output_close(output_stream *s);
#endif
