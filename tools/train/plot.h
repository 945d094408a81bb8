/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of training runs as SVG, by gnuplot. */
#ifndef COSET_TOOLS_TRAIN_PLOT_H
#define COSET_TOOLS_TRAIN_PLOT_H
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *label;
    size_t steps;
    const double *loss, *sent; /* of each step: mean loss, bytes that a rank sent */
} plot_curve;

/* Whether there is a gnuplot. */
bool plot_possible(void);
/* Loss over steps and, below it, over bytes sent, if there are any. Returns 0, or -1 after a line on standard error. */
int plot_write(const char *command, const char *path, const plot_curve *curves, size_t count);
#endif
