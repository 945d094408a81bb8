/* SPDX-License-Identifier: Apache-2.0 */
/* Clipping, NaN. */
#include "ddp/cases.h"
#include "ddp/steps.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

static int clip(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c), skip = 9, bad = 0;
    double norm = 0;
    coset_param p[2] = {{.id = 1, .count = 3, .dtype = COSET_F32, .ndim = 1, .name = "w"},
                        {.id = 2, .count = 1, .dtype = COSET_F64, .ndim = 1}};
    coset_ddp *d;
    if (group_want(c, coset_ddp_create(c, NULL, p, 2, &d), COSET_OK, "create"))
        return 1;
    for (int step = 0; step < 2 && !bad; step++) {
        float *w = coset_ddp_grad(d, 1);
        double *v = coset_ddp_grad(d, 2);
        w[0] = 2;
        w[1] = step == 1 && rank == 2 ? NAN : 4;
        w[2] = 5;
        v[0] = 6; /* 4 + 16 + 25 + 36 = 81 */
        bad = group_want(c, coset_ddp_ready(d, 1), COSET_OK, "ready") ||
              group_want(c, coset_ddp_ready(d, 2), COSET_OK, "ready") ||
              group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish") ||
              group_want(c, coset_ddp_clip(d, 3, &norm, &skip), COSET_OK, "clip");
        w = coset_ddp_grad(d, 1);
        v = coset_ddp_grad(d, 2);
        if (!bad && step == 0 && (norm != 9 || skip || w[0] != 2 * (float)(3.0 / 9) || v[0] != 6 * (3.0 / 9)))
            bad = group_fail(c, "norm %g, skip %d, %g %g", norm, skip, (double)w[0], v[0]);
        if (!bad && step == 1 &&
            (!skip || !isnan(norm) || v[0] != 6 || !strstr(coset_ddp_why(d), "w (id 1)") ||
             !strstr(coset_ddp_why(d), "rank 2")))
            bad = group_fail(c, "NaN on rank 2: skip %d, norm %g, v %g, %s", skip, norm, v[0], coset_ddp_why(d));
    }
    bad = bad || group_want(c, coset_ddp_clip(d, 0, NULL, NULL), COSET_ERR_ARGUMENT, "max_norm 0");
    coset_ddp_destroy(d);
    return bad;
}

/* Gradients whose squares are beyond f64 are finite all the same. */
static int clip_huge(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p = {.id = 1, .count = 2, .dtype = COSET_F64, .ndim = 1};
    coset_ddp *d;
    double norm = 0;
    int skip = 9, bad = group_want(c, coset_ddp_create(c, NULL, &p, 1, &d), COSET_OK, "create");
    if (bad)
        return bad;
    double *g = coset_ddp_grad(d, 1);
    g[0] = 0x3p600;
    g[1] = 0x4p600;
    bad = group_want(c, coset_ddp_ready(d, 1), COSET_OK, "ready") ||
          group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish") ||
          group_want(c, coset_ddp_clip(d, 0x5p-1, &norm, &skip), COSET_OK, "clip");
    g = coset_ddp_grad(d, 1);
    if (!bad && (norm != 0x5p600 || skip || g[0] != 1.5 || g[1] != 2))
        bad = group_fail(c, "norm %g, skip %d, %g %g", norm, skip, g[0], g[1]);
    coset_ddp_destroy(d);
    return bad;
}

/* Callers whose threads round otherwise get the same bits. */
static int clip_in_any_mode(coset_comm *c, void *arg)
{
    (void)arg;
    enum { N = 1000 };
    static const coset_dtype dtypes[] = {COSET_F32, COSET_F64, COSET_BF16};
    static const double most[] = {2.3, 2.2, 2.1};
    coset_param p[3];
    coset_ddp *d;
    for (size_t k = 0; k < 3; k++)
        p[k] = (coset_param){.id = k, .count = N, .dtype = dtypes[k], .ndim = 1};
    if (group_want(c, coset_ddp_create(c, NULL, p, 3, &d), COSET_OK, "create"))
        return 1;
    int bad = 0;
    for (size_t k = 0; k < 3; k++) {
        write_grad(d, p, k, 0, 0);
        bad |= group_want(c, coset_ddp_ready(d, k), COSET_OK, "ready");
    }
    bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
    double norm;
    fesetround(coset_comm_rank(c) ? FE_UPWARD : FE_TONEAREST);
    for (int i = 0; i < 3; i++)
        bad |= group_want(c, coset_ddp_clip(d, most[i], &norm, NULL), COSET_OK, "clip");
    fesetround(FE_TONEAREST);
    uint64_t hash = hash_of(0, &norm, sizeof norm), all[2];
    for (size_t k = 0; k < 3; k++)
        hash = hash_of(hash, coset_ddp_grad(d, k), N * coset_dtype_size(dtypes[k]));
    bad = bad || group_want(c, coset_allgather(&hash, all, 1, COSET_U64, c), COSET_OK, "allgather");
    if (!bad && all[0] != all[1])
        bad = group_fail(c, "a caller that rounds upward gets other bits");
    coset_ddp_destroy(d);
    return bad;
}

int run_clip(const char *transport)
{
    group g = GROUP(transport, 4), two = GROUP(transport, 2);
    return group_run(&two, clip_in_any_mode, NULL) || group_run(&g, clip, NULL) || group_run(&g, clip_huge, NULL);
}
