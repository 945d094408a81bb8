/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors in files, one file per rank: .npy (the format of numpy, versions 1 to 3) and .safetensors, by their public
 * specifications. Files are untrusted: every length is checked against the file's before it is used.
 */
#ifndef COSET_TOOLS_MEAN_VECTORS_H
#define COSET_TOOLS_MEAN_VECTORS_H
#include <coset.h>
#include <stdbool.h>

enum { TOOL_ERROR_TEXT = 400 };

typedef struct {
    char *name; /* "" in .npy */
    size_t count;
} tool_tensor;

/* The contents of one file: its tensors one after another. */
typedef struct {
    coset_dtype dtype; /* of all of them: F32, F64, F16, BF16; the wider one where a file mixes them */
    tool_tensor *tensors;
    size_t ntensors, count;
    void *data;   /* `count` elements of dtype */
    bool columns; /* .npy of several dimensions: column after column (Fortran's order) */
} tool_vector;

/* Reads a file by its extension. Returns 0, or -1 with one line in `error`. */
int tool_vector_read(const char *path, tool_vector *v, char error[TOOL_ERROR_TEXT]);
void tool_vector_free(tool_vector *v);
/* Converts to f32 or f64 (exactly, but for f64 to f32). Returns 0, or -1: no memory. */
int tool_vector_convert(tool_vector *v, coset_dtype dtype);
/* Same tensors, names and counts, in the same order of elements? */
bool tool_vectors_alike(const tool_vector *a, const tool_vector *b);
/* The first element that is NaN or infinite; v->count if there is none. */
size_t tool_vector_not_finite(const tool_vector *v);
/* Element i as a number. */
double tool_vector_at(coset_dtype dtype, const void *data, size_t i);
/* Writes a one-dimensional .npy of f32 or f64. Returns 0, or -1 with a line in `error`. */
int tool_npy_write(const char *path, coset_dtype dtype, const void *data, size_t count, char error[TOOL_ERROR_TEXT]);

/* One format each; `bytes` is the whole file. On success v->data is allocated; dtype may be any of the four. */
int tool_npy_parse(const unsigned char *bytes, size_t size, tool_vector *v, char error[TOOL_ERROR_TEXT]);
int tool_safetensors_parse(const unsigned char *bytes, size_t size, tool_vector *v, char error[TOOL_ERROR_TEXT]);
#endif
