/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error: drawn on a terminal, silent in a pipe or file. */
#ifndef COSET_TOOLS_PROGRESS_H
#define COSET_TOOLS_PROGRESS_H
#include <stdbool.h>

typedef struct {
    const char *label;
    bool shown;
    double started, drawn; /* seconds; redrawn at most ten times a second */
} tool_progress;

/* `label` must live as long as the bar. */
tool_progress tool_progress_start(const char *label);
/* done of total units; note (may be NULL) is a few words after the bar. */
void tool_progress_update(tool_progress *bar, double done, double total, const char *note);
/* Removes the bar until the next update, so that a line may be printed. */
void tool_progress_clear(tool_progress *bar);
/* Removes the bar for good. */
void tool_progress_end(tool_progress *bar);
#endif
