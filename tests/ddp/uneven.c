/* SPDX-License-Identifier: Apache-2.0 */
/* Passes without communication, ranks with fewer batches. */
#include "ddp/cases.h"
#include "ddp/steps.h"

#include "ddp/reducer.h"

/* Rank r has 3 + r batches, then joins. */
static int uneven(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c), size = coset_comm_size(c), bad = 0;
    coset_param p[PARAMS];
    coset_ddp *d = make_reducer(c, p, NULL);
    uint64_t shadowed = 99;
    if (!d)
        return 1;
    coset_ddp_no_sync(d, 1); /* two silent batches first */
    for (int k = 0; k < 2; k++) {
        bad = bad || group_want(c, coset_ddp_ready(d, p[0].id), COSET_OK, "silent ready") ||
              group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "silent finish");
    }
    coset_ddp_no_sync(d, 0);
    for (int step = 0; step < 3 + rank && !bad; step++) {
        unsigned absent = 0;
        for (int r = 0; r < size; r++)
            absent |= (unsigned)(step >= 3 + r) << r;
        bad = bad || ready_all(c, d, p, step) || group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
        for (size_t i = 0; i < PARAMS && !bad; i++)
            bad = check_grad(c, d, p, i, step, absent);
    }
    bad = bad || group_want(c, coset_ddp_join(d, &shadowed), COSET_OK, "join");
    if (!bad && shadowed != (uint64_t)(size - 1 - rank))
        bad = group_fail(c, "joined %llu steps, not %d", (unsigned long long)shadowed, size - 1 - rank);
    coset_ddp_destroy(d);
    return bad;
}

/* A gradient of an earlier pass counts, also if the pass that communicates adds nothing to it: on rank 1 of parameter 1,
 * on no rank of parameter 2. */
static int accumulated(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p[3] = {{.id = 0, .count = 1, .dtype = COSET_F32, .ndim = 1},
                              {.id = 1, .count = 1, .dtype = COSET_F32, .ndim = 1},
                              {.id = 2, .count = 1, .dtype = COSET_F32, .ndim = 1}};
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d;
    o.allow_unused = 1;
    if (group_want(c, coset_ddp_create(c, &o, p, 3, &d), COSET_OK, "create"))
        return 1;
    int bad = 0;
    for (int step = 0; step < 3 && !bad; step++) { /* the first one rebuilds; the last one has but one pass */
        for (uint64_t id = 0; id < 3; id++)
            *(float *)coset_ddp_grad(d, id) = 0;
        for (int last = step == 2; last < 2; last++) {
            bad |= group_want(c, coset_ddp_no_sync(d, !last), COSET_OK, "no_sync");
            for (uint64_t id = 0; id < (last ? 2 - (uint64_t)coset_comm_rank(c) : 3); id++) {
                *(float *)coset_ddp_grad(d, id) += 2;
                bad |= group_want(c, coset_ddp_ready(d, id), COSET_OK, "ready");
            }
            bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
        }
        const float want[2][3] = {{4, 3, 2}, {2, 1, 0}};
        for (uint64_t id = 0; id < 3 && !bad; id++) {
            float got = *(float *)coset_ddp_grad(d, id);
            if (got != want[step == 2][id])
                bad = group_fail(c, "step %d, parameter %d: %g", step, (int)id, (double)got);
        }
    }
    coset_ddp_destroy(d);
    return bad;
}

/* Rank 0 has no batch at all: what it has not seen says nothing about the order. */
static int without_batches(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.bucket_bytes = o.first_bytes = o.last_bytes = 1;
    coset_ddp *d = make_reducer(c, p, &o);
    int bad = !d, rank = coset_comm_rank(c);
    coset_ddp_report r = COSET_DDP_REPORT_INIT;
    for (int step = 0; step < 2 * rank && !bad; step++) {
        for (size_t i = PARAMS; i-- > 0;) {
            write_grad(d, p, i, rank, step);
            bad |= group_want(c, coset_ddp_ready(d, p[i].id), COSET_OK, "ready");
        }
        bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
        for (size_t i = 0; i < PARAMS && !bad; i++)
            bad = check_grad(c, d, p, i, step, 1);
    }
    uint64_t steps = 0;
    bad = bad || group_want(c, coset_ddp_join(d, &steps), COSET_OK, "join") ||
          group_want(c, coset_ddp_last_report(d, &r), COSET_OK, "report");
    if (!bad && (r.steps != 2 || steps != (rank ? 0 : 2)))
        bad = group_fail(c, "%d steps reported, %d joined", (int)r.steps, (int)steps);
    if (!bad && (d->layout.bucket_of[PARAMS - 1] || d->layout.bucket_of[0] != d->layout.nbuckets - 1))
        bad = group_fail(c, "buckets are in the order of forward");
    coset_ddp_destroy(d);
    return bad;
}

int run_uneven(const char *transport)
{
    group g = GROUP(transport, 4), two = GROUP(transport, 2);
    return group_run(&g, uneven, NULL) || group_run(&two, without_batches, NULL) || group_run(&two, accumulated, NULL);
}
