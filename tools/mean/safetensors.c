/* SPDX-License-Identifier: Apache-2.0 */
/* .safetensors: eight bytes of header length, a JSON object that says where each tensor lies, the tensors' bytes. */
#include "vectors.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_HEADER = 100 << 20 }; /* the specification's limit */

typedef struct {
    const char *name;
    coset_dtype dtype;
    size_t begin, count;
} entry;

static int refuse(char *error, const char *what, const char *name)
{
    snprintf(error, TOOL_ERROR_TEXT, "%s%s%.100s%s", what, name ? " (tensor \"" : "", name ? name : "",
             name ? "\")" : "");
    return -1;
}

/* A whole number that a double holds exactly. */
static bool whole(const cJSON *item, size_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 0x1p53 ||
        item->valuedouble != floor(item->valuedouble))
        return false;
    *value = (size_t)item->valuedouble;
    return true;
}

static bool dtype_named(const cJSON *item, coset_dtype *dtype)
{
    static const struct {
        const char *name;
        coset_dtype dtype;
    } known[] = {{"F32", COSET_F32}, {"F64", COSET_F64}, {"F16", COSET_F16}, {"BF16", COSET_BF16}};
    for (size_t i = 0; cJSON_IsString(item) && i < sizeof known / sizeof *known; i++)
        if (strcmp(item->valuestring, known[i].name) == 0) {
            *dtype = known[i].dtype;
            return true;
        }
    return false;
}

static int read_entry(const cJSON *tensor, size_t data_bytes, entry *e, char *error)
{
    const char *name = tensor->string;
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(tensor, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(tensor, "data_offsets");
    size_t end, n;
    *e = (entry){.name = name, .count = 1};
    if (!dtype_named(cJSON_GetObjectItemCaseSensitive(tensor, "dtype"), &e->dtype))
        return refuse(error, "elements that are not F32, F64, F16 or BF16", name);
    if (!cJSON_IsArray(shape) || !cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2)
        return refuse(error, "an entry without shape or data_offsets", name);
    for (const cJSON *d = shape->child; d; d = d->next)
        if (!whole(d, &n) || __builtin_mul_overflow(e->count, n, &e->count))
            return refuse(error, "a shape that makes no sense", name);
    if (!whole(offsets->child, &e->begin) || !whole(offsets->child->next, &end) || e->begin > end || end > data_bytes)
        return refuse(error, "data_offsets outside the file", name);
    size_t width = coset_dtype_size(e->dtype);
    if (e->count > SIZE_MAX / width || e->count * width != end - e->begin)
        return refuse(error, "data_offsets that do not fit the shape", name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* One dtype for the file: the common one, else the wider of f32 and f64 that holds all. */
static coset_dtype common_dtype(const entry *e, size_t n)
{
    coset_dtype dtype = n ? e[0].dtype : COSET_F32;
    for (size_t i = 1; i < n; i++)
        if (e[i].dtype != dtype)
            dtype = dtype == COSET_F64 || e[i].dtype == COSET_F64 ? COSET_F64 : COSET_F32;
    return dtype;
}

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count); /* empty ones stand before what begins there too */
}

/* The specification wants every byte to belong to one tensor. If some belonged to many, a small file would need any
 * amount of memory. Leaves the entries in the order of their places. */
static int check_places(entry *e, size_t n, size_t data_bytes, char *error)
{
    size_t at = 0;
    qsort(e, n, sizeof *e, by_place);
    for (size_t i = 0; i < n; at += e[i].count * coset_dtype_size(e[i].dtype), i++)
        if (e[i].begin != at)
            return refuse(error, e[i].begin < at ? "tensors that overlap" : "bytes that belong to no tensor",
                          e[i].name);
    return at == data_bytes ? 0 : refuse(error, "bytes after the last tensor", NULL);
}

static int copy_tensors(const entry *e, size_t n, const unsigned char *data, tool_vector *v, char *error)
{
    v->dtype = common_dtype(e, n);
    v->tensors = calloc(n ? n : 1, sizeof *v->tensors);
    size_t width = coset_dtype_size(v->dtype);
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(v->count, e[i].count, &v->count))
            return refuse(error, "too many elements", NULL);
    v->data = v->count > SIZE_MAX / width - 1 ? NULL : malloc(v->count * width + 1);
    if (!v->tensors || !v->data)
        return refuse(error, "out of memory", NULL);
    char *to = v->data;
    for (size_t i = 0; i < n; i++) {
        v->tensors[v->ntensors] = (tool_tensor){strdup(e[i].name), e[i].count};
        if (!v->tensors[v->ntensors++].name)
            return refuse(error, "out of memory", NULL);
        size_t from_width = coset_dtype_size(e[i].dtype);
        void *aligned = malloc(e[i].count * from_width + 1);
        if (!aligned)
            return refuse(error, "out of memory", NULL);
        memcpy(aligned, data + e[i].begin, e[i].count * from_width);
        tool_vector one = {.dtype = e[i].dtype, .count = e[i].count, .data = aligned};
        if (e[i].dtype != v->dtype && tool_vector_convert(&one, v->dtype)) {
            free(one.data);
            return refuse(error, "out of memory", NULL);
        }
        memcpy(to, one.data, e[i].count * width);
        to += e[i].count * width;
        free(one.data);
    }
    return 0;
}

static int read_entries(const cJSON *root, const unsigned char *data, size_t data_bytes, tool_vector *v, char *error)
{
    int n = cJSON_GetArraySize(root);
    entry *entries = calloc((size_t)n + 1, sizeof *entries);
    if (!entries)
        return refuse(error, "out of memory", NULL);
    size_t count = 0;
    int result = 0;
    for (const cJSON *t = root->child; t && !result; t = t->next)
        if (strcmp(t->string, "__metadata__") != 0)
            result = read_entry(t, data_bytes, &entries[count++], error);
    if (!result)
        result = check_places(entries, count, data_bytes, error);
    if (!result) {
        qsort(entries, count, sizeof *entries, by_name);
        for (size_t i = 1; i < count && !result; i++)
            if (strcmp(entries[i].name, entries[i - 1].name) == 0)
                result = refuse(error, "a name twice", entries[i].name);
    }
    if (!result)
        result = copy_tensors(entries, count, data, v, error);
    free(entries);
    return result;
}

int tool_safetensors_parse(const unsigned char *bytes, size_t size, tool_vector *v, char error[TOOL_ERROR_TEXT])
{
    uint64_t length = 0;
    if (size < 8)
        return refuse(error, "too short for a .safetensors file", NULL);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)bytes[i] << (8 * i);
    if (length > size - 8 || length > LONGEST_HEADER)
        return refuse(error, "the .safetensors header is longer than the file, or than 100 MB", NULL);
    cJSON *root = cJSON_ParseWithLength((const char *)bytes + 8, (size_t)length);
    int result = cJSON_IsObject(root) ? read_entries(root, bytes + 8 + length, size - 8 - (size_t)length, v, error)
                                      : refuse(error, "the .safetensors header is not a JSON object", NULL);
    cJSON_Delete(root);
    return result;
}
