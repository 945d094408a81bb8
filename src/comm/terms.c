/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/terms.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define TERMS_MAGIC UINT64_C(0x746573636f6c6c6f) /* also tells byte orders apart */

void cst_terms_make(cst_terms *h, const cst_settings *s, coset_status status)
{
    memset(h, 0, sizeof *h);
    h->status = status;
    h->magic = TERMS_MAGIC;
    h->wire_version = COSET_WIRE_VERSION;
    h->struct_bytes = sizeof *h;
    if (getrandom(&h->job, sizeof h->job, 0) != sizeof h->job)
        h->job = cst_now_ns() ^ ((uint64_t)getpid() << 40);
    strncpy(h->library, coset_version(), sizeof h->library - 1);
    memcpy(h->transport, s->transport, sizeof h->transport);
    h->algorithm = s->algorithm;
    h->progress = s->progress;
    h->rank_order = s->rank_order;
    h->late_ms = s->late_ms;
    h->dead_ms = s->dead_ms;
    h->checksum = s->checksum;
    h->cores = cst_cores_of_host();
    cst_host_identity(h->identity);
    cst_host_name(h->host);
}

/* progress may differ: it is nobody else's business. */
static coset_status compare(const cst_terms *a, int ra, const cst_terms *b, int rb, coset_error *why)
{
    if (b->magic != a->magic || b->struct_bytes != a->struct_bytes || b->wire_version != a->wire_version)
        return cst_fail(why, COSET_ERR_MISMATCH, rb,
                        "rank %d speaks wire version %u of coset, rank %d version %u: use one version", ra,
                        a->wire_version, rb, b->wire_version);
    if (strncmp(a->library, b->library, sizeof a->library))
        return cst_fail(why, COSET_ERR_MISMATCH, rb, "rank %d runs coset %.15s, rank %d coset %.15s", ra, a->library,
                        rb, b->library);
    if (strncmp(a->transport, b->transport, sizeof a->transport))
        return cst_fail(why, COSET_ERR_MISMATCH, rb, "rank %d asks for transport '%.31s', rank %d for '%.31s'", ra,
                        a->transport, rb, b->transport);
    const struct {
        const char *name;
        int32_t x, y;
    } options[] = {{"algorithm", a->algorithm, b->algorithm},
                   {"rank_order", a->rank_order, b->rank_order},
                   {"late_ms", a->late_ms, b->late_ms},
                   {"dead_ms", a->dead_ms, b->dead_ms},
                   {"checksum", a->checksum, b->checksum}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].x != options[i].y)
            return cst_fail(why, COSET_ERR_MISMATCH, rb, "option %s is %d on rank %d and %d on rank %d",
                            options[i].name, options[i].x, ra, options[i].y, rb);
    return COSET_OK;
}

coset_status cst_terms_check(const cst_terms *all, int size, coset_error *why)
{
    coset_status status = COSET_OK;
    for (int r = 1; r < size && status == COSET_OK; r++)
        status = compare(&all[0], 0, &all[r], r, why);
    for (int r = 0; r < size && status == COSET_OK; r++)
        if (all[r].status != COSET_OK)
            status =
                cst_fail(why, COSET_ERR_MEMORY, r, "rank %d has no memory for a communicator of %d ranks", r, size);
    return status;
}

static bool blames_another(const cst_verdict *all, int size, int r)
{
    int other = all[r].blamed;
    return other >= 0 && other < size && other != r && all[other].status != COSET_OK;
}

/* The first rank that has failed for a reason of its own; else (two that blame each other) the first that has failed; -1
 * if none has. */
static int first_cause(const cst_verdict *all, int size)
{
    int failed = -1;
    for (int r = size - 1; r >= 0; r--)
        failed = all[r].status != COSET_OK ? r : failed;
    for (int r = 0; r < size; r++)
        if (all[r].status != COSET_OK && !blames_another(all, size, r))
            return r;
    return failed;
}

coset_status cst_verdict_agree(const coset_oob *oob, coset_status mine, int timeout_ms, cst_verdict *all,
                               coset_error *why)
{
    cst_verdict v = {.status = mine, .blamed = mine != COSET_OK ? why->peer : -1};
    if (mine != COSET_OK)
        snprintf(v.text, sizeof v.text, "%.183s", why->text);
    coset_status status = oob->allgather(oob->ctx, &v, all, sizeof v, timeout_ms);
    if (status != COSET_OK && mine != COSET_OK)
        return mine; /* the others may have gone already */
    if (status != COSET_OK)
        return cst_fail(why, status, -1, "while ranks told each other how creation went: %s", coset_strerror(status));
    int cause = first_cause(all, oob->size);
    if (cause < 0)
        return COSET_OK;
    all[cause].text[sizeof all[cause].text - 1] = 0;
    status = (coset_status)all[cause].status;
    if (cause == oob->rank)
        return status;
    status = status == COSET_ERR_ARGUMENT ? COSET_ERR_MISMATCH : status;
    return cst_fail(why, status, cause, "rank %d: %s", cause, all[cause].text);
}
