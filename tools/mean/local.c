/* SPDX-License-Identifier: Apache-2.0 */
#include "local.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    coset_round **rounds;
    coset_xfer *x;
    int size;
    tool_mean_times *times;
    bool encoded; /* the first codes are under way: an all-to-all, a sum or messages (sketches count as codes) */
} engine;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static coset_status fail(coset_error *why, coset_status status, const char *text)
{
    if (why) {
        why->status = status;
        snprintf(why->text, sizeof why->text, "%s", text);
    }
    return status;
}

static bool same_request(const engine *e)
{
    for (int r = 1; r < e->size; r++)
        if (e->x[r].kind != e->x[0].kind || e->x[r].bytes != e->x[0].bytes || e->x[r].unit != e->x[0].unit)
            return false;
    return true;
}

static uint8_t *at(void *base, size_t bytes, int i)
{
    return (uint8_t *)base + bytes * (size_t)i;
}

static void alltoall(const engine *e)
{
    for (int to = 0; to < e->size; to++)
        for (int from = 0; from < e->size; from++)
            memcpy(at(e->x[to].recv, e->x[to].bytes, from),
                   (const uint8_t *)e->x[from].send + e->x[from].bytes * (size_t)to, e->x[to].bytes);
}

static void allgather(const engine *e)
{
    for (int to = 0; to < e->size; to++)
        for (int from = 0; from < e->size; from++)
            memcpy(at(e->x[to].recv, e->x[to].bytes, from), e->x[from].send, e->x[from].bytes);
}

static void add_wrapping(uint8_t *to, const uint8_t *x, size_t bytes, coset_dtype unit)
{
    size_t width = coset_dtype_size(unit);
    for (size_t i = 0; i + width <= bytes; i += width) {
        uint64_t a = 0, b = 0;
        memcpy(&a, to + i, width);
        memcpy(&b, x + i, width);
        a += b;
        memcpy(to + i, &a, width);
    }
}

static void sum_wrap(const engine *e)
{
    memcpy(e->x[0].recv, e->x[0].send, e->x[0].bytes);
    for (int from = 1; from < e->size; from++)
        add_wrapping(e->x[0].recv, e->x[from].send, e->x[0].bytes, e->x[0].unit);
    for (int to = 1; to < e->size; to++)
        memcpy(e->x[to].recv, e->x[0].recv, e->x[0].bytes);
}

/* False if a message has no receiver that expects it. */
static bool route(const engine *e)
{
    size_t sent = 0, expected = 0;
    for (int from = 0; from < e->size; from++)
        for (size_t i = 0; i < e->x[from].nroutes; i++) {
            const coset_route *m = &e->x[from].routes[i];
            if (m->recv) {
                expected++;
                continue;
            }
            for (size_t k = 0; k < e->x[m->peer].nroutes; k++) {
                const coset_route *r = &e->x[m->peer].routes[k];
                if (!r->recv || r->peer != from || r->bytes != m->bytes)
                    continue;
                memcpy(r->recv, m->send, m->bytes);
                sent++;
            }
        }
    return sent == expected;
}

static coset_status carry(const engine *e, coset_error *why)
{
    if (!same_request(e))
        return fail(why, COSET_ERR_MISMATCH, "ranks ask for different transfers");
    switch (e->x[0].kind) {
    case COSET_XFER_ALLTOALL: alltoall(e); break;
    case COSET_XFER_ALLGATHER: allgather(e); break;
    case COSET_XFER_SUM_WRAP: sum_wrap(e); break;
    case COSET_XFER_ROUTE:
        if (!route(e))
            return fail(why, COSET_ERR_MISMATCH, "a message was sent that nobody expects");
        break;
    default: break;
    }
    return COSET_OK;
}

static coset_status run(engine *e, coset_mean *const *means, coset_error *why)
{
    do {
        double start = now();
        for (int r = 0; r < e->size; r++) {
            e->x[r] = (coset_xfer)COSET_XFER_INIT;
            coset_status status = coset_mean_next(e->rounds[r], &e->x[r]);
            if (status) {
                coset_error error = COSET_ERROR_INIT;
                coset_mean_last_error(means[r], &error);
                error.rank = r;
                if (why)
                    *why = error;
                return status;
            }
        }
        *(e->encoded ? &e->times->decoding : &e->times->encoding) += now() - start;
        e->encoded |= e->x[0].kind != COSET_XFER_ALLGATHER;
        coset_status status = carry(e, why);
        if (status)
            return status;
    } while (e->x[0].kind != COSET_XFER_DONE);
    return COSET_OK;
}

coset_status tool_mean_local_timed(coset_mean *const *means, int size, const coset_span *const *spans, size_t nspans,
                                   coset_dtype dtype, coset_mean_report *reports, tool_mean_times *times,
                                   coset_error *why)
{
    engine e = {calloc((size_t)size, sizeof(coset_round *)), calloc((size_t)size, sizeof(coset_xfer)), size, times,
                false};
    coset_status status = e.rounds && e.x ? COSET_OK : fail(why, COSET_ERR_MEMORY, "no memory");
    double start = now();
    for (int r = 0; !status && r < size; r++) {
        status = coset_mean_begin(means[r], spans[r], nspans, dtype, &e.rounds[r]);
        if (status && why)
            coset_mean_last_error(means[r], why);
    }
    times->encoding += now() - start;
    if (!status)
        status = run(&e, means, why);
    for (int r = 0; e.rounds && r < size; r++)
        if (e.rounds[r])
            coset_mean_end(e.rounds[r], status || !reports ? NULL : &reports[r]);
    free(e.rounds);
    free(e.x);
    return status;
}

coset_status tool_mean_local(coset_mean *const *means, int size, const coset_span *const *spans, size_t nspans,
                             coset_dtype dtype, coset_mean_report *reports, coset_error *why)
{
    tool_mean_times unused = {0};
    return tool_mean_local_timed(means, size, spans, nspans, dtype, reports, &unused, why);
}
