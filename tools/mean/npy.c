/* SPDX-License-Identifier: Apache-2.0 */
/* numpy's .npy: magic, version, length of a header that is a Python dictionary, the elements. */
#include "vectors.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

typedef struct {
    const char *at, *end;
} text;

static void skip_spaces(text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n'))
        t->at++;
}

static bool take(text *t, char c)
{
    skip_spaces(t);
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

/* A quoted string without escapes; false if there is none or it does not fit. */
static bool take_string(text *t, char *out, size_t room)
{
    skip_spaces(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return false;
    char quote = *t->at++;
    size_t n = 0;
    while (t->at < t->end && *t->at != quote && n + 1 < room)
        out[n++] = *t->at++;
    out[n] = 0;
    return take(t, quote);
}

/* (a, b, c,): the product; false if it is no tuple of numbers or overflows. */
static bool take_shape(text *t, size_t *count, int *dimensions)
{
    *count = 1;
    *dimensions = 0;
    if (!take(t, '('))
        return false;
    while (!take(t, ')')) {
        skip_spaces(t);
        size_t n = 0, digits = 0;
        for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++, digits++)
            if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (size_t)(*t->at - '0'), &n))
                return false;
        if (!digits || __builtin_mul_overflow(*count, n, count))
            return false;
        ++*dimensions;
        take(t, 'L'); /* Python 2 wrote its long integers so */
        if (!take(t, ',')) {
            if (!take(t, ')'))
                return false;
            return true;
        }
    }
    return true;
}

typedef struct {
    char descr[16];
    size_t count;
    int dimensions;
    bool has_descr, has_shape, has_order, fortran;
} npy_header;

static bool take_word(text *t, const char *word)
{
    skip_spaces(t);
    size_t n = strlen(word);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

static bool parse_header(text *t, npy_header *h)
{
    *h = (npy_header){0};
    if (!take(t, '{'))
        return false;
    while (!take(t, '}')) {
        char key[32];
        if (!take_string(t, key, sizeof key) || !take(t, ':'))
            return false;
        bool good = false;
        if (strcmp(key, "descr") == 0)
            good = h->has_descr = take_string(t, h->descr, sizeof h->descr);
        else if (strcmp(key, "shape") == 0)
            good = h->has_shape = take_shape(t, &h->count, &h->dimensions);
        else if (strcmp(key, "fortran_order") == 0) /* either order will do, if it is that of all files */
            good = h->has_order = take_word(t, "False") || (h->fortran = take_word(t, "True"));
        if (!good)
            return false;
        if (!take(t, ','))
            return take(t, '}') && h->has_descr && h->has_shape && h->has_order;
    }
    return h->has_descr && h->has_shape && h->has_order;
}

static bool dtype_of(const char *descr, coset_dtype *dtype)
{
    static const struct {
        const char *descr;
        coset_dtype dtype;
    } known[] = {{"<f4", COSET_F32}, {"<f8", COSET_F64}, {"<f2", COSET_F16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(descr, known[i].descr) == 0) {
            *dtype = known[i].dtype;
            return true;
        }
    return false;
}

static int refuse(char *error, const char *why)
{
    snprintf(error, TOOL_ERROR_TEXT, "%s", why);
    return -1;
}

int tool_npy_parse(const unsigned char *bytes, size_t size, tool_vector *v, char error[TOOL_ERROR_TEXT])
{
    if (size < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        return refuse(error, "not a .npy file");
    unsigned version = bytes[6];
    size_t wide = version >= 2 ? 4 : 2, length = 0;
    if (version < 1 || version > 3 || size < 8 + wide)
        return refuse(error, "a .npy version that is not 1, 2 or 3");
    for (size_t i = 0; i < wide; i++)
        length |= (size_t)bytes[8 + i] << (8 * i);
    if (length > size - 8 - wide)
        return refuse(error, "the .npy header is longer than the file");
    text t = {(const char *)bytes + 8 + wide, (const char *)bytes + 8 + wide + length};
    npy_header h;
    if (!parse_header(&t, &h))
        return refuse(error, "the .npy header cannot be understood");
    if (!dtype_of(h.descr, &v->dtype)) {
        snprintf(error, TOOL_ERROR_TEXT,
                 "elements of type '%s': little-endian f2, f4 or f8 are needed; convert the array first", h.descr);
        return -1;
    }
    size_t width = coset_dtype_size(v->dtype), data = size - 8 - wide - length;
    if (h.count > data / width)
        return refuse(error, "the file is shorter than its shape says");
    if (h.count * width < data) {
        snprintf(error, TOOL_ERROR_TEXT, "%zu bytes follow the %zu elements that its shape says",
                 data - h.count * width, h.count);
        return -1;
    }
    v->count = h.count;
    v->columns = h.fortran && h.dimensions > 1;
    v->data = malloc(h.count * width + 1);
    v->tensors = calloc(1, sizeof *v->tensors);
    if (!v->data || !v->tensors)
        return refuse(error, "out of memory");
    v->ntensors = 1;
    v->tensors[0] = (tool_tensor){strdup(""), h.count};
    memcpy(v->data, bytes + 8 + wide + length, h.count * width);
    return v->tensors[0].name ? 0 : refuse(error, "out of memory");
}

int tool_npy_write(const char *path, coset_dtype dtype, const void *data, size_t count, char error[TOOL_ERROR_TEXT])
{
    char header[118], dictionary[110];
    snprintf(dictionary, sizeof dictionary, "{'descr': '<f%d', 'fortran_order': False, 'shape': (%zu,), }",
             dtype == COSET_F64 ? 8 : 4, count);
    snprintf(header, sizeof header, "%-117s", dictionary); /* 10 + 118 = 128: the elements begin at a multiple of 64 */
    header[117] = '\n';
    FILE *f = fopen(path, "we");
    const unsigned char start[4] = {1, 0, sizeof header, 0};
    size_t width = coset_dtype_size(dtype);
    bool good = f && fwrite(magic, sizeof magic, 1, f) == 1 && fwrite(start, sizeof start, 1, f) == 1 &&
                fwrite(header, sizeof header, 1, f) == 1 && fwrite(data, width, count, f) == count;
    if (f && fclose(f))
        good = false;
    if (!good)
        snprintf(error, TOOL_ERROR_TEXT, "cannot write %s: %s", path, strerror(errno));
    return good ? 0 : -1;
}
