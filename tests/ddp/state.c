/* SPDX-License-Identifier: Apache-2.0 */
/* States saved and loaded. */
#include "ddp/cases.h"
#include "ddp/steps.h"

#include <stdlib.h>
#include <string.h>

static int state(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp *d = make_reducer(c, p, NULL), *e;
    if (!d || one_step(c, d, p, 0) || !(e = make_reducer(c, p, NULL)))
        return 1;
    size_t bytes = 0;
    int bad = group_want(c, coset_ddp_save(d, NULL, &bytes), COSET_OK, "size of the state");
    char *buf = malloc(bytes);
    size_t less = bytes - 1;
    bad = bad || group_want(c, coset_ddp_save(d, buf, &less), COSET_ERR_ARGUMENT, "too little room") ||
          group_want(c, coset_ddp_save(d, buf, &bytes), COSET_OK, "save") ||
          group_want(c, coset_ddp_load(e, buf, bytes - 1), COSET_ERR_CORRUPT, "a cut state") ||
          group_want(c, coset_ddp_load(e, buf, 3), COSET_ERR_CORRUPT, "three bytes");
    for (size_t i = 0; i < bytes && !bad; i++) {
        buf[i] ^= 1;
        bad = group_want(c, coset_ddp_load(e, buf, bytes), COSET_ERR_CORRUPT, "a damaged state");
        buf[i] ^= 1;
    }
    bad = bad || group_want(c, coset_ddp_load(e, buf, bytes), COSET_OK, "load");
    write_grad(e, p, 0, coset_comm_rank(c), 1);
    bad = bad || group_want(c, coset_ddp_ready(e, p[0].id), COSET_OK, "ready") ||
          group_want(c, coset_ddp_load(e, buf, bytes), COSET_ERR_ARGUMENT, "load in a step") ||
          group_want(c, coset_ddp_save(e, buf, &bytes), COSET_ERR_ARGUMENT, "save in a step");
    for (size_t i = 1; i < PARAMS && !bad; i++) {
        write_grad(e, p, i, coset_comm_rank(c), 1);
        bad = group_want(c, coset_ddp_ready(e, p[i].id), COSET_OK, "ready");
    }
    bad = bad || group_want(c, coset_ddp_finish(e, NULL), COSET_OK, coset_ddp_why(e));
    /* the order is known now: the first step of e moves nothing */
    for (int step = 1; step < 3 && !bad; step++)
        bad = one_step(c, e, p, step);
    free(buf);
    coset_ddp_destroy(d);
    coset_ddp_destroy(e);
    return bad;
}

/* A state brings the very buckets back: for a run that goes on bit for bit. Here the bucket of the f64 is complete before
 * that of the f32 which was ready earlier. */
static int same_buckets(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p[3] = {{.id = 0, .count = 1024, .dtype = COSET_F32, .ndim = 1},
                              {.id = 1, .count = 2048, .dtype = COSET_F64, .ndim = 1},
                              {.id = 2, .count = 1024, .dtype = COSET_F32, .ndim = 1}};
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d[2];
    o.bucket_bytes = o.first_bytes = o.last_bytes = 8192;
    char buf[4096];
    size_t bytes = sizeof buf, buckets[2];
    for (int k = 0; k < 2; k++) {
        coset_ddp_report r = COSET_DDP_REPORT_INIT;
        if (group_want(c, coset_ddp_create(c, &o, p, 3, &d[k]), COSET_OK, "create") ||
            (k && group_want(c, coset_ddp_load(d[1], buf, bytes), COSET_OK, "load")))
            return 1;
        for (uint64_t id = 3; id-- > 0;)
            coset_ddp_ready(d[k], id);
        if (group_want(c, coset_ddp_finish(d[k], NULL), COSET_OK, "finish") ||
            group_want(c, coset_ddp_last_report(d[k], &r), COSET_OK, "report") ||
            (!k && group_want(c, coset_ddp_save(d[0], buf, &bytes), COSET_OK, "save")))
            return 1;
        buckets[k] = r.buckets;
    }
    coset_ddp_destroy(d[0]);
    coset_ddp_destroy(d[1]);
    return buckets[0] == buckets[1] ? 0 : group_fail(c, "%zu buckets before, %zu after", buckets[0], buckets[1]);
}

enum { ALIKE = 4 };

/* Buckets of equal size, so that their all-reduces fit together in any order. */
static coset_ddp *make_alike(coset_comm *c)
{
    coset_param p[ALIKE];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d = NULL;
    o.bucket_bytes = o.first_bytes = o.last_bytes = 1;
    for (size_t i = 0; i < ALIKE; i++)
        p[i] = (coset_param){.id = i, .count = 5000, .dtype = COSET_F32, .ndim = 2};
    return group_want(c, coset_ddp_create(c, &o, p, ALIKE, &d), COSET_OK, "create") ? NULL : d;
}

static coset_status step_in_registered_order(coset_ddp *d)
{
    for (size_t i = 0; i < ALIKE; i++)
        coset_ddp_ready(d, i);
    return coset_ddp_finish(d, NULL);
}

/* A state that has come to one rank only is found by all. */
static int lopsided(coset_comm *c, void *arg)
{
    (void)arg;
    coset_ddp *before = make_alike(c), *after = make_alike(c);
    char buf[4096];
    size_t bytes = sizeof buf;
    if (!before || !after)
        return 1;
    int bad = group_want(c, step_in_registered_order(before), COSET_OK, "a step") ||
              group_want(c, coset_ddp_save(before, buf, &bytes), COSET_OK, "save");
    if (coset_comm_rank(c) == 1)
        bad = bad || group_want(c, coset_ddp_load(after, buf, bytes), COSET_OK, "load");
    bad = bad || group_want(c, step_in_registered_order(after), COSET_ERR_MISMATCH, "a step with half a state");
    if (!bad && !strstr(coset_ddp_why(after), "state"))
        bad = group_fail(c, "the text is '%s'", coset_ddp_why(after));
    coset_ddp_destroy(before);
    coset_ddp_destroy(after);
    return bad;
}

int run_state(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, state, NULL) || group_run(&g, same_buckets, NULL) || group_run(&g, lopsided, NULL);
}
