/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `coset bench kernels` measures. To add kernels: a file rows_NAME.c with an array of rows that ends with a NULL
 * name, declared here and given a line in `groups` of bench_kernels.c.
 */
#ifndef COSET_TOOLS_BENCH_KERNELS_ROW_H
#define COSET_TOOLS_BENCH_KERNELS_ROW_H
#include <stddef.h>

enum { KERNEL_MAX_BUFFERS = 10 };

typedef struct kernel_row kernel_row;
struct kernel_row {
    const char *name; /* "reduce f32 sum 2>1": what a user can filter by */
    int buffers;      /* how many, of `bytes` each (and 64 KiB of slack behind), 64-byte aligned */
    double moved;     /* bytes read and written by one run, in units of `bytes` */
    size_t unit;      /* `bytes` is a multiple of it: the kernel's block */
    /* One run over `bytes` of the vector. */
    void (*run)(const kernel_row *row, char *const buffer[], size_t bytes);
    /* Before the measurement; NULL: the buffers hold f32 in [-1, 1). */
    void (*prepare)(const kernel_row *row, char *const buffer[], size_t bytes);
    const void *arg; /* for run and prepare */
    int number[6];   /* for run and prepare */
};

extern const kernel_row kernel_rows_reduce[], kernel_rows_codec[];

/* Median seconds of one run over `bytes`, in about `budget` seconds of measuring. The best of several medians: other
 * tenants of a machine only make it slower. */
double kernel_measure(const kernel_row *row, char *const buffer[], size_t bytes, double budget);
#endif
