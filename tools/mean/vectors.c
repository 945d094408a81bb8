/* SPDX-License-Identifier: Apache-2.0 */
#include "vectors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The whole file in memory (the caller frees it), or NULL. */
static unsigned char *read_file(const char *path, size_t *size, char *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        snprintf(error, TOOL_ERROR_TEXT, "cannot read %s: %s", path, fd < 0 ? strerror(errno) : "not a regular file");
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *size = (size_t)st.st_size;
    unsigned char *bytes = malloc(*size ? *size : 1);
    size_t have = 0;
    while (bytes && have < *size) {
        ssize_t got = read(fd, bytes + have, *size - have);
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    close(fd);
    if (bytes && have == *size)
        return bytes;
    snprintf(error, TOOL_ERROR_TEXT, "cannot read %s: %s", path, bytes ? "it ends early" : "out of memory");
    free(bytes);
    return NULL;
}

int tool_vector_read(const char *path, tool_vector *v, char error[TOOL_ERROR_TEXT])
{
    *v = (tool_vector){0};
    bool npy = ends_with(path, ".npy"), safe = ends_with(path, ".safetensors");
    if (!npy && !safe) {
        snprintf(error, TOOL_ERROR_TEXT, "%s: the name must end in .npy or .safetensors", path);
        return -1;
    }
    size_t size;
    unsigned char *bytes = read_file(path, &size, error);
    if (!bytes)
        return -1;
    char what[TOOL_ERROR_TEXT] = "";
    int result = npy ? tool_npy_parse(bytes, size, v, what) : tool_safetensors_parse(bytes, size, v, what);
    free(bytes);
    if (result) {
        snprintf(error, TOOL_ERROR_TEXT, "%.150s: %.200s", path, what);
        tool_vector_free(v);
    }
    return result;
}

void tool_vector_free(tool_vector *v)
{
    for (size_t i = 0; i < v->ntensors; i++)
        free(v->tensors[i].name);
    free(v->tensors);
    free(v->data);
    *v = (tool_vector){0};
}

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double x = e == 0 ? ldexp(m, -24) : e == 31 ? (m ? (double)NAN : (double)INFINITY) : ldexp(1024 + m, e - 25);
    return h >> 15 ? -x : x;
}

double tool_vector_at(coset_dtype dtype, const void *data, size_t i)
{
    if (dtype == COSET_F64)
        return ((const double *)data)[i];
    if (dtype == COSET_F32)
        return ((const float *)data)[i];
    uint16_t h = ((const uint16_t *)data)[i];
    if (dtype == COSET_F16)
        return half_value(h);
    uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

size_t tool_vector_not_finite(const tool_vector *v)
{
    size_t i = 0;
    while (i < v->count && isfinite(tool_vector_at(v->dtype, v->data, i)))
        i++;
    return i;
}

int tool_vector_convert(tool_vector *v, coset_dtype dtype)
{
    if (v->dtype == dtype)
        return 0;
    size_t width = dtype == COSET_F64 ? 8 : 4;
    char *data = malloc(v->count * width + 1);
    if (!data)
        return -1;
    for (size_t i = 0; i < v->count; i++) {
        double x = tool_vector_at(v->dtype, v->data, i);
        float narrow = (float)x;
        memcpy(data + i * width, dtype == COSET_F64 ? (const void *)&x : (const void *)&narrow, width);
    }
    free(v->data);
    v->data = data;
    v->dtype = dtype;
    return 0;
}

bool tool_vectors_alike(const tool_vector *a, const tool_vector *b)
{
    if (a->ntensors != b->ntensors || a->columns != b->columns)
        return false;
    for (size_t i = 0; i < a->ntensors; i++)
        if (a->tensors[i].count != b->tensors[i].count || strcmp(a->tensors[i].name, b->tensors[i].name) != 0)
            return false;
    return true;
}
