/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_ddp/measure.h"

#include "command.h"
#include "common/progress.h"
#include "common/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double budget_s = 4; /* for all iterations, with and without communication */
static const double least_backward_s = 1e-3;
static const double backward_to_comm = 3;
enum { MIN_ITERATIONS = 10, MAX_ITERATIONS = 200, WARM_UP = 3 };

/* What is taken down of one step, by this rank. */
typedef enum { STEP, ORACLE, BACKWARD, COMM, FINISH, CPU, SENT, BITS, COORDS, FIGURES } figure;

static int ddp_failed(const ddp_bench *b, const char *what)
{
    fprintf(stderr, "%s: rank %d: %s: %s\n", b->rank->command, b->rank->rank, what, coset_ddp_why(b->ddp));
    return TOOL_FAILED;
}

/* One backward pass; every layer is told to the reducer. Returns the processor seconds that telling took. */
static int backward(const ddp_bench *b, const load *l, double start, uint64_t step, double *cpu)
{
    *cpu = 0;
    for (size_t i = 0; i < b->layers; i++) {
        size_t layer = b->layers - 1 - i;
        uint64_t id = layer + 1;
        load_layer(l, start, i, step, coset_ddp_grad(b->ddp, id), b->counts[layer]);
        double before = tool_thread_cpu();
        if (coset_ddp_ready(b->ddp, id))
            return ddp_failed(b, "coset_ddp_ready");
        *cpu += tool_thread_cpu() - before;
    }
    return TOOL_OK;
}

/* A step with communication (oracle false) or without; its figures into `row`. */
static int one_step(const ddp_bench *b, const load *l, uint64_t step, bool oracle, double row[FIGURES])
{
    double cpu;
    coset_ddp_no_sync(b->ddp, oracle);
    if (coset_barrier(b->rank->comm))
        return tool_rank_failed(b->rank, "barrier");
    double start = tool_now();
    if (backward(b, l, start, step, &cpu))
        return TOOL_FAILED;
    double computed = tool_now(), cpu_before = tool_thread_cpu();
    if (coset_ddp_finish(b->ddp, NULL))
        return ddp_failed(b, "coset_ddp_finish");
    double end = tool_now();
    if (oracle) {
        row[ORACLE] = end - start;
        return TOOL_OK;
    }
    coset_ddp_report r = COSET_DDP_REPORT_INIT;
    coset_ddp_last_report(b->ddp, &r);
    row[STEP] = end - start;
    row[BACKWARD] = computed - start;
    row[COMM] = r.communication_s;
    row[FINISH] = end - computed;
    row[CPU] = r.cpu_s + cpu + tool_thread_cpu() - cpu_before;
    row[SENT] = (double)r.sent_bytes;
    row[BITS] = (double)r.bits_sent;
    row[COORDS] = (double)r.coords;
    return TOOL_OK;
}

/* Steps with no time between gradients: how long communication takes alone. The first ones warm up. */
static int communication_alone(const ddp_bench *b, load *l, double *seconds)
{
    double row[FIGURES];
    l->layer_s = 0;
    l->rounds = 0;
    *seconds = INFINITY;
    for (int i = 0; i < 2 * WARM_UP; i++) {
        if (one_step(b, l, (uint64_t)i, false, row) || tool_rank_max(b->rank, &row[COMM], 1))
            return TOOL_FAILED;
        if (i >= WARM_UP)
            *seconds = row[COMM] < *seconds ? row[COMM] : *seconds;
    }
    return TOOL_OK;
}

/* Sets the layers' length; the same on every rank. */
static int set_length(const ddp_bench *b, load *l, double *backward_s)
{
    double alone, round = load_round_seconds();
    if (communication_alone(b, l, &alone) || tool_rank_max(b->rank, &round, 1))
        return TOOL_FAILED;
    *backward_s = b->backward_s > 0 ? b->backward_s : fmax(backward_to_comm * alone, least_backward_s);
    l->layer_s = *backward_s / (double)b->layers;
    l->rounds = (uint64_t)ceil(l->layer_s / round);
    return TOOL_OK;
}

static int iterations_for(const ddp_bench *b, double backward_s)
{
    double wanted = budget_s / (2 * backward_s);
    if (b->iterations)
        return b->iterations;
    return wanted < MIN_ITERATIONS ? MIN_ITERATIONS : wanted > MAX_ITERATIONS ? MAX_ITERATIONS : (int)wanted;
}

static double median(double (*rows)[FIGURES], int n, figure f, double *scratch)
{
    for (int i = 0; i < n; i++)
        scratch[i] = rows[i][f];
    return tool_percentile(scratch, (size_t)n, 0.5);
}

static void summarise(double (*rows)[FIGURES], int n, double *scratch, ddp_figures *out)
{
    out->step_s = median(rows, n, STEP, scratch);
    out->oracle_s = median(rows, n, ORACLE, scratch);
    out->backward_s = median(rows, n, BACKWARD, scratch);
    out->comm_s = median(rows, n, COMM, scratch);
    out->finish_s = median(rows, n, FINISH, scratch);
    out->comm_cpu_s = median(rows, n, CPU, scratch);
    out->sent_bytes = median(rows, n, SENT, scratch);
    out->bits = median(rows, n, BITS, scratch);
    out->coords = median(rows, n, COORDS, scratch);
    out->iterations = n;
}

/* With and without communication in turn, so that whatever else the machine does hits both. */
static int alternate(const ddp_bench *b, const load *l, double (*rows)[FIGURES], int n)
{
    tool_progress bar = tool_progress_start("measuring");
    bar.shown = bar.shown && b->rank->rank == 0;
    int status = TOOL_OK;
    for (int i = 0; i < n && !status; i++) {
        status = one_step(b, l, (uint64_t)i, true, rows[i]);
        if (!status)
            status = one_step(b, l, (uint64_t)i, false, rows[i]);
        tool_progress_update(&bar, i + 1, n, "");
    }
    tool_progress_end(&bar);
    return status ? status : tool_rank_max(b->rank, rows[0], (size_t)n * FIGURES);
}

int ddp_measure(const ddp_bench *b, ddp_figures *out)
{
    load l;
    double wanted;
    if (load_create(&l, b->kind, (uint64_t)b->rank->rank + 1)) {
        fprintf(stderr, "%s: out of memory\n", b->rank->command);
        return TOOL_FAILED;
    }
    int status = set_length(b, &l, &wanted);
    int n = status ? 0 : iterations_for(b, wanted);
    double(*rows)[FIGURES] = calloc((size_t)n + 1, sizeof *rows), *scratch = calloc((size_t)n + 1, sizeof *scratch);
    if (!status && !(rows && scratch)) {
        fprintf(stderr, "%s: out of memory\n", b->rank->command);
        status = TOOL_FAILED;
    }
    if (!status)
        status = alternate(b, &l, rows, n);
    if (!status) {
        coset_ddp_report r = COSET_DDP_REPORT_INIT;
        coset_ddp_last_report(b->ddp, &r);
        summarise(rows, n, scratch, out);
        out->buckets = r.buckets;
    }
    free(rows);
    free(scratch);
    load_free(&l);
    return status;
}
