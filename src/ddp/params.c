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

/* ---- agreement ---- */

/* What must be equal of one parameter, as bytes. */
typedef struct {
    uint64_t id, count;
    int32_t dtype, ndim, flags, pad;
} fingerprint;

static void take_fingerprint(const coset_param *p, fingerprint *f)
{
    *f = (fingerprint){p->id, p->count, (int32_t)p->dtype, p->ndim, p->flags, 0};
}

/* FNV-1a, 64 bits: against mistakes, not against enemies. */
static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    for (const unsigned char *b = data; n--; b++)
        h = (h ^ *b) * UINT64_C(0x100000001b3);
    return h;
}

/* How this rank's list differs from rank 0's (of `count` entries), in text; empty if it does not. */
static void explain(const cst_params *p, const fingerprint *theirs, size_t count, int rank, char *text, size_t size)
{
    char label[96];
    text[0] = 0;
    if (count != p->count) {
        snprintf(text, size, "rank 0 has %zu parameters, rank %d has %zu", count, rank, p->count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        fingerprint mine;
        take_fingerprint(&p->list[i], &mine);
        if (!memcmp(&mine, &theirs[i], sizeof mine))
            continue;
        const char *name = cst_param_label(&p->list[i], label, sizeof label);
        if (mine.id != theirs[i].id)
            snprintf(text, size, "parameter %zu is %s on rank %d and id %" PRIu64 " on rank 0", i, name, rank,
                     theirs[i].id);
        else if (mine.count != theirs[i].count)
            snprintf(text, size, "parameter %s has %" PRIu64 " elements on rank 0, %" PRIu64 " on rank %d", name,
                     theirs[i].count, mine.count, rank);
        else if (mine.dtype != theirs[i].dtype)
            snprintf(text, size, "parameter %s is %s on rank 0, %s on rank %d", name,
                     coset_dtype_name((coset_dtype)theirs[i].dtype), coset_dtype_name((coset_dtype)mine.dtype), rank);
        else
            snprintf(text, size, "parameter %s has other flags or dimensions on rank %d than on rank 0", name, rank);
        return;
    }
}

/* Hashes differ somewhere: fetch rank 0's list, compare, and let every rank see the first rank's finding. */
static coset_status find_difference(const cst_params *p, coset_comm *comm, coset_error *why)
{
    enum { TEXT = 200 };
    int size = coset_comm_size(comm), rank = coset_comm_rank(comm);
    uint64_t count = p->count;
    coset_status status = coset_broadcast(&count, &count, 1, COSET_U64, 0, comm);
    fingerprint *theirs =
        status == COSET_OK && count < SIZE_MAX / sizeof *theirs ? calloc(count + 1, sizeof *theirs) : NULL;
    char *texts = calloc((size_t)size, TEXT), mine[TEXT] = "";
    if (status == COSET_OK && (!theirs || !texts))
        status = COSET_ERR_MEMORY;
    if (status == COSET_OK) {
        for (size_t i = 0; rank == 0 && i < count; i++)
            take_fingerprint(&p->list[i], &theirs[i]);
        status = coset_broadcast(theirs, theirs, count * sizeof *theirs, COSET_U8, 0, comm);
    }
    if (status == COSET_OK) {
        explain(p, theirs, count, rank, mine, sizeof mine);
        status = coset_allgather(mine, texts, TEXT, COSET_U8, comm);
    }
    if (status == COSET_OK) {
        int culprit = 0;
        while (culprit < size && !texts[(size_t)culprit * TEXT])
            culprit++;
        status = culprit < size ? cst_fail(why, COSET_ERR_MISMATCH, culprit, "%s", texts + (size_t)culprit * TEXT)
                                : cst_fail(why, COSET_ERR_MISMATCH, -1, "ranks gave different reducer options");
    } else {
        cst_fail(why, status, -1, "while comparing parameters: %s", coset_strerror(status));
    }
    free(theirs);
    free(texts);
    return status;
}

coset_status cst_params_agree(const cst_params *p, uint64_t options_hash, coset_comm *comm, coset_error *why)
{
    uint64_t h = hash_bytes(UINT64_C(0xcbf29ce484222325), &options_hash, sizeof options_hash);
    for (size_t i = 0; i < p->count; i++) {
        fingerprint f;
        take_fingerprint(&p->list[i], &f);
        h = hash_bytes(h, &f, sizeof f);
    }
    uint64_t least_most[2] = {h, ~h}; /* MAX of ~h is ~ of the least */
    coset_status status = coset_allreduce(least_most, least_most, 2, COSET_U64, COSET_MAX, comm);
    if (status != COSET_OK)
        return cst_fail(why, status, -1, "while comparing parameters: %s", coset_strerror(status));
    return least_most[0] == ~least_most[1] ? COSET_OK : find_difference(p, comm, why);
}
