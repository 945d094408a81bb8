/* SPDX-License-Identifier: Apache-2.0 */
/* Compression where it pays. */
#include "ddp/cases.h"
#include "ddp/steps.h"

#include <math.h>
#include <string.h>

typedef struct {
    coset_mean_options mean;
    int plain; /* expected; -1: whatever the measured link says, the same on all ranks */
} link_case;

static int one_compressed_step(coset_comm *c, coset_ddp *d, coset_ddp_report *report)
{
    float *g = coset_ddp_grad(d, 1);
    for (size_t i = 0; i < 1 << 16; i++)
        g[i] = sinf((float)i * 0.37f + (float)coset_comm_rank(c));
    coset_ddp_ready(d, 1);
    return group_want(c, coset_ddp_finish(d, NULL), COSET_OK, coset_ddp_why(d)) ||
           group_want(c, coset_ddp_last_report(d, report), COSET_OK, "report");
}

static int link_decides(coset_comm *c, void *arg)
{
    const link_case *k = arg;
    const coset_param p = {.id = 1, .count = 1 << 16, .dtype = COSET_F32, .ndim = 2};
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp_report report = COSET_DDP_REPORT_INIT;
    coset_ddp *d;
    o.mean = &k->mean;
    if (group_want(c, coset_ddp_create(c, &o, &p, 1, &d), COSET_OK, "create"))
        return 1;
    int bad = one_compressed_step(c, d, &report), plain[8];
    coset_ddp_destroy(d);
    if (bad || group_want(c, coset_allgather(&report.plain, plain, 1, COSET_I32, c), COSET_OK, "allgather"))
        return 1;
    for (int r = 0; r < coset_comm_size(c); r++)
        if (plain[r] != (k->plain < 0 ? plain[0] : k->plain))
            return group_fail(c, "rank %d sends %s", r, plain[r] ? "exactly" : "codes");
    if ((report.bits_sent > 0) == report.plain)
        return group_fail(c, "plain %d, but %llu bits of codes", report.plain, (unsigned long long)report.bits_sent);
    if (k->mean.objective != COSET_OBJECTIVE_BITS && !(report.link_gbps > 0))
        return group_fail(c, "no speed of the link reported");
    return 0;
}

/* A state brings the choice with it: the link may be measured otherwise when a job goes on. */
static int choice_is_saved(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p = {.id = 1, .count = 1 << 16, .dtype = COSET_F32, .ndim = 2};
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.mean = &mean;
    for (int plain = 0; plain < 2; plain++) {
        coset_ddp *before, *after;
        coset_ddp_report report = COSET_DDP_REPORT_INIT;
        mean.link_gbps = plain ? 100 : 1e-3;
        if (group_want(c, coset_ddp_create(c, &o, &p, 1, &before), COSET_OK, "create") ||
            one_compressed_step(c, before, &report))
            return 1;
        mean.link_gbps = plain ? 1e-3 : 100;
        if (group_want(c, coset_ddp_create(c, &o, &p, 1, &after), COSET_OK, "create again"))
            return 1;
        char buf[1 << 16];
        size_t bytes = sizeof buf;
        int bad = group_want(c, coset_ddp_save(before, buf, &bytes), COSET_OK, "save") ||
                  group_want(c, coset_ddp_load(after, buf, bytes), COSET_OK, "load") ||
                  one_compressed_step(c, after, &report);
        coset_ddp_destroy(before);
        coset_ddp_destroy(after);
        if (bad || report.plain != plain)
            return group_fail(c, "plain %d before, %d after", plain, report.plain);
    }
    return 0;
}

static int run_link_on(group g)
{
    link_case cases[] = {{COSET_MEAN_OPTIONS_INIT, 0},
                         {COSET_MEAN_OPTIONS_INIT, 1},
                         {COSET_MEAN_OPTIONS_INIT, 0},
                         {COSET_MEAN_OPTIONS_INIT, 0},
                         {COSET_MEAN_OPTIONS_INIT, -1}};
    cases[0].mean.objective = COSET_OBJECTIVE_BITS;
    cases[1].mean.link_gbps = 100;
    cases[2].mean.link_gbps = 1e-3;
    cases[3].mean.link_gbps = 100; /* a baseline leaves no choice */
    cases[3].mean.codec = "eden";
    cases[3].mean.bits = 4;
    cases[3].mean.objective = COSET_OBJECTIVE_BITS;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (group_run(&g, link_decides, &cases[i]))
            return 1;
    }
    return group_run(&g, choice_is_saved, NULL);
}

int run_link(const char *transport)
{
    return run_link_on(GROUP(transport, 3));
}

/* Two ranks on each of two pretended hosts: codes go between the hosts only. */
int run_hosts(const char *transport)
{
    if (strcmp(transport, "tcp"))
        return 0;
    group g = GROUP(transport, 4);
    g.per_host = 2;
    return run_link_on(g);
}
