/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/same.h"

#include "base/error.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 200 };

/* What must be equal of one parameter, as bytes. */
typedef struct {
    uint64_t id, count;
    int32_t dtype, ndim, flags, pad;
} fingerprint;

/* What rank 0 tells about the whole. */
typedef struct {
    uint64_t count, option[CST_SAME_OPTIONS];
} summary;

static fingerprint fingerprint_of(const coset_param *p)
{
    return (fingerprint){p->id, p->count, (int32_t)p->dtype, p->ndim, p->flags, 0};
}

static uint64_t hash_of(const cst_params *p, const summary *mine)
{
    cst_hash h;
    cst_hash_begin(&h, 0);
    cst_hash_add(&h, mine, sizeof *mine);
    for (size_t i = 0; i < p->count; i++) {
        fingerprint f = fingerprint_of(&p->list[i]);
        cst_hash_add(&h, &f, sizeof f);
    }
    return cst_hash_end(&h);
}

/* How parameter `index` differs from rank 0's; false if it does not. */
static bool explain_param(const cst_params *p, size_t index, const fingerprint *theirs, int rank, char text[TEXT])
{
    char label[96];
    fingerprint mine = fingerprint_of(&p->list[index]);
    const char *name = cst_param_label(&p->list[index], label, sizeof label);
    if (mine.id != theirs->id)
        snprintf(text, TEXT, "parameter %zu is %s on rank %d and id %" PRIu64 " on rank 0", index, name, rank,
                 theirs->id);
    else if (mine.count != theirs->count)
        snprintf(text, TEXT, "parameter %s has %" PRIu64 " elements on rank 0, %" PRIu64 " on rank %d", name,
                 theirs->count, mine.count, rank);
    else if (mine.dtype != theirs->dtype)
        snprintf(text, TEXT, "parameter %s is %s on rank 0, %s on rank %d", name,
                 coset_dtype_name((coset_dtype)theirs->dtype), coset_dtype_name((coset_dtype)mine.dtype), rank);
    else if (memcmp(&mine, theirs, sizeof mine))
        snprintf(text, TEXT, "parameter %s has other flags or dimensions on rank %d than on rank 0", name, rank);
    else
        return false;
    return true;
}

static void explain_option(int option, uint64_t mine, uint64_t theirs, int rank, char text[TEXT])
{
    static const char *const names[CST_SAME_OPTIONS] = {"bucket_bytes", "first_bytes", "last_bytes", "caps",
                                                        "allow_unused", "keep_order",  "mean"};
    if (option == CST_SAME_CAPS)
        snprintf(text, TEXT, "option caps differs between ranks 0 and %d", rank);
    else if (option == CST_SAME_MEAN)
        snprintf(text, TEXT, "option mean is %s on rank 0 and %s on rank %d", theirs ? "given" : "NULL",
                 mine ? "given" : "NULL", rank);
    else
        snprintf(text, TEXT, "option %s is %" PRIu64 " on rank 0, %" PRIu64 " on rank %d", names[option], theirs, mine,
                 rank);
}

/* How this rank differs from rank 0 (`count` entries); empty if it does not. */
static void explain(const cst_params *p, const summary *mine, const summary *zero, const fingerprint *theirs, int rank,
                    char text[TEXT])
{
    if (mine->count != zero->count) {
        snprintf(text, TEXT, "rank 0 has %" PRIu64 " parameters, rank %d has %" PRIu64, zero->count, rank, mine->count);
        return;
    }
    for (size_t i = 0; i < p->count; i++)
        if (explain_param(p, i, &theirs[i], rank, text))
            return;
    for (int o = 0; o < CST_SAME_OPTIONS; o++)
        if (mine->option[o] != zero->option[o]) {
            explain_option(o, mine->option[o], zero->option[o], rank, text);
            return;
        }
}

/* Collective: every rank's text, and the first that is not empty becomes everybody's error. */
static coset_status spread(const char mine[TEXT], coset_comm *comm, coset_error *why)
{
    int size = coset_comm_size(comm), first = 0;
    char *texts = calloc((size_t)size, TEXT);
    coset_status status = texts ? coset_allgather(mine, texts, TEXT, COSET_U8, comm) : COSET_ERR_MEMORY;
    if (status == COSET_OK) {
        while (first < size && !texts[(size_t)first * TEXT])
            first++;
        status = first < size ? cst_fail(why, COSET_ERR_MISMATCH, first, "%s", texts + (size_t)first * TEXT)
                              : cst_fail(why, COSET_ERR_MISMATCH, -1, "ranks gave different parameters or options");
    }
    free(texts);
    return status;
}

/* Collective: rank 0's list against everybody's. */
static coset_status find_difference(const cst_params *p, const summary *mine, const char *wrong, coset_comm *comm,
                                    coset_error *why)
{
    int rank = coset_comm_rank(comm);
    summary zero = *mine;
    char text[TEXT] = "";
    coset_status status = coset_broadcast(&zero, &zero, sizeof zero, COSET_U8, 0, comm);
    if (status != COSET_OK)
        return status;
    fingerprint *theirs = zero.count < SIZE_MAX / sizeof *theirs ? calloc(zero.count + 1, sizeof *theirs) : NULL;
    if (!theirs)
        return COSET_ERR_MEMORY;
    for (size_t i = 0; rank == 0 && i < zero.count; i++)
        theirs[i] = fingerprint_of(&p->list[i]);
    status = coset_broadcast(theirs, theirs, zero.count * sizeof *theirs, COSET_U8, 0, comm);
    if (wrong)
        snprintf(text, TEXT, "rank %d: %s", rank, wrong);
    else if (status == COSET_OK)
        explain(p, mine, &zero, theirs, rank, text);
    free(theirs);
    return status == COSET_OK ? spread(text, comm, why) : status;
}

coset_status cst_ddp_same(const cst_params *p, const uint64_t options[CST_SAME_OPTIONS], const char *wrong,
                          coset_comm *comm, coset_error *why)
{
    summary mine = {.count = p->count};
    memcpy(mine.option, options, sizeof mine.option);
    uint64_t h = wrong ? coset_comm_rank(comm) + UINT64_C(1) : hash_of(p, &mine);
    uint64_t most_least[2] = {h, ~h}; /* MAX of ~h is ~ of the least */
    coset_status status = coset_allreduce(most_least, most_least, 2, COSET_U64, COSET_MAX, comm);
    if (status == COSET_OK && most_least[0] != ~most_least[1])
        status = find_difference(p, &mine, wrong, comm, wrong ? NULL : why);
    if (status != COSET_OK && status != COSET_ERR_MISMATCH && !wrong)
        cst_fail(why, status, -1, "while comparing parameters: %s", coset_strerror(status));
    return status;
}
