/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/params.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t id;
    size_t index;
} id_index;

static int by_id(const void *a, const void *b)
{
    const id_index *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static coset_status sort_ids(cst_params *p, coset_error *why)
{
    id_index *pairs = calloc(p->count, sizeof *pairs);
    if (!pairs)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %zu parameters", p->count);
    for (size_t i = 0; i < p->count; i++)
        pairs[i] = (id_index){p->list[i].id, i};
    qsort(pairs, p->count, sizeof *pairs, by_id);
    coset_status status = COSET_OK;
    for (size_t i = 0; i < p->count; i++) {
        p->by_id[i] = pairs[i].index;
        if (i && pairs[i].id == pairs[i - 1].id && status == COSET_OK)
            status = cst_fail(why, COSET_ERR_ARGUMENT, -1, "two parameters have the id %" PRIu64, pairs[i].id);
    }
    free(pairs);
    return status;
}

static coset_status check(const coset_param *params, size_t nparams, coset_error *why)
{
    if (!params || !nparams)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "no parameters");
    size_t total = 0;
    for (size_t i = 0; i < nparams; i++) {
        char label[96];
        size_t bytes;
        if (!cst_dtype_valid((int)params[i].dtype) || !cst_dtype_is_float(params[i].dtype))
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "parameter %s: gradients are f32, f64, f16 or bf16",
                            cst_param_label(&params[i], label, sizeof label));
        if (!cst_size_mul(params[i].count, coset_dtype_size(params[i].dtype), &bytes) ||
            !cst_size_add(total, bytes, &total) || total > SIZE_MAX / 2)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "parameter %s is larger than memory can hold",
                            cst_param_label(&params[i], label, sizeof label));
    }
    return COSET_OK;
}

static size_t name_bytes(const coset_param *params, size_t nparams)
{
    size_t bytes = 1;
    for (size_t i = 0; i < nparams; i++)
        bytes += params[i].name ? strlen(params[i].name) + 1 : 0;
    return bytes;
}

coset_status cst_params_copy(cst_params *p, const coset_param *params, size_t nparams, coset_error *why)
{
    *p = (cst_params){0};
    coset_status status = check(params, nparams, why);
    if (status != COSET_OK)
        return status;
    *p = (cst_params){.list = calloc(nparams, sizeof *p->list),
                      .count = nparams,
                      .by_id = calloc(nparams, sizeof *p->by_id),
                      .names = calloc(name_bytes(params, nparams), 1)};
    if (!p->list || !p->by_id || !p->names)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %zu parameters", nparams);
    char *name = p->names;
    for (size_t i = 0; i < nparams; i++) {
        p->list[i] = params[i];
        if (!params[i].name)
            continue;
        p->list[i].name = strcpy(name, params[i].name);
        name += strlen(name) + 1;
    }
    return sort_ids(p, why);
}

void cst_params_free(cst_params *p)
{
    free(p->list);
    free(p->by_id);
    free(p->names);
    *p = (cst_params){0};
}

size_t cst_params_find(const cst_params *p, uint64_t id)
{
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->list[p->by_id[middle]].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->count && p->list[p->by_id[low]].id == id ? p->by_id[low] : CST_NO_PARAM;
}

const char *cst_param_label(const coset_param *param, char *text, size_t size)
{
    if (param->name)
        snprintf(text, size, "%.64s (id %" PRIu64 ")", param->name, param->id);
    else
        snprintf(text, size, "id %" PRIu64, param->id);
    return text;
}
