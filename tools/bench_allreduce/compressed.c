/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_allreduce/compressed.h"

#include "command.h"
#include "common/codec.h"
#include "common/draw.h"
#include "common/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSOR_ID = 1, SEED = 1 };

static int no_memory(const tool_rank *rank)
{
    fprintf(stderr, "%s: rank %d: out of memory\n", rank->command, rank->rank);
    return TOOL_FAILED;
}

static double element(coset_dtype dtype, const void *v, size_t i)
{
    return dtype == COSET_F64 ? ((const double *)v)[i] : (double)((const float *)v)[i];
}

static int draw_input(compressed *c, const compressed_options *o)
{
    c->input = malloc(c->count * coset_dtype_size(c->dtype) + 1);
    float *drawn = c->dtype == COSET_F32 ? c->input : malloc(c->count * sizeof *drawn + 1);
    if (!c->input || !drawn) {
        free(drawn == c->input ? NULL : drawn);
        return no_memory(c->rank);
    }
    tool_draw(drawn, c->count, o->distribution, o->mean, SEED, c->rank->rank);
    if (drawn != c->input) {
        for (size_t i = 0; i < c->count; i++)
            ((double *)c->input)[i] = (double)drawn[i];
        free(drawn);
    }
    return TOOL_OK;
}

static coset_mean_options mean_options(const compressed_options *o)
{
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    options.codec = o->codec;
    options.protocol = o->protocol;
    options.objective = o->link > 0 ? COSET_OBJECTIVE_TIME : COSET_OBJECTIVE_BITS;
    options.link_gbps = o->link;
    options.bits = o->bits;
    options.error_budget = o->budget;
    options.seed = SEED;
    return options;
}

void compressed_check(const char *command, const compressed_options *o, int ranks)
{
    const coset_mean_options options = mean_options(o);
    tool_check_codec(command, &options, ranks);
}

int compressed_create(compressed *c, const compressed_options *o, tool_rank *rank, coset_dtype dtype, size_t count)
{
    *c = (compressed){.rank = rank, .dtype = dtype, .count = count, .report = COSET_MEAN_REPORT_INIT};
    coset_error why = COSET_ERROR_INIT;
    const coset_mean_options options = mean_options(o);
    if (coset_mean_create(rank->rank, rank->size, &options, &c->mean, &why)) {
        fprintf(stderr, "%s: rank %d: %s\n", rank->command, rank->rank, why.text);
        return TOOL_FAILED;
    }
    int status = draw_input(c, o);
    if (status)
        compressed_free(c);
    return status;
}

void compressed_free(compressed *c)
{
    coset_mean_destroy(c->mean);
    free(c->input);
    c->mean = NULL;
    c->input = NULL;
}

void compressed_write(const compressed *c, void *send)
{
    memcpy(send, c->input, c->count * coset_dtype_size(c->dtype));
}

coset_status compressed_run(compressed *c, const void *send, void *recv)
{
    const coset_span span = {TENSOR_ID, send, recv, c->count};
    return coset_mean_allreduce(c->mean, &span, 1, c->dtype, c->rank->comm, &c->report);
}

int compressed_failed(const compressed *c)
{
    coset_error why = COSET_ERROR_INIT;
    if (!coset_mean_last_error(c->mean, &why))
        return tool_rank_failed(c->rank, "compressed mean");
    fprintf(stderr, "%s: rank %d: compressed mean: %s\n", c->rank->command, c->rank->rank, why.text);
    return TOOL_FAILED;
}

/* errors[0] = sum of squared errors of the estimate, errors[1] = this rank's sum of squared distances from the mean. */
static int measure_errors(const compressed *c, const void *recv, double errors[2])
{
    double *mean = malloc(c->count * sizeof *mean + 1);
    if (!mean)
        return no_memory(c->rank);
    for (size_t i = 0; i < c->count; i++)
        mean[i] = element(c->dtype, c->input, i);
    int status = TOOL_OK;
    if (coset_allreduce(mean, mean, c->count, COSET_F64, COSET_AVG, c->rank->comm))
        status = tool_rank_failed(c->rank, "computing the exact mean");

    for (size_t i = 0; i < c->count && !status; i++) {
        double error = element(c->dtype, recv, i) - mean[i], spread = element(c->dtype, c->input, i) - mean[i];
        errors[0] += error * error;
        errors[1] += spread * spread;
    }
    free(mean);
    return status;
}

static int count_differences(const compressed *c, const void *recv, double *different)
{
    size_t size = coset_dtype_size(c->dtype);
    char *first = malloc(c->count * size + 1);
    if (!first)
        return no_memory(c->rank);
    int status = TOOL_OK;
    if (coset_broadcast(recv, first, c->count, c->dtype, 0, c->rank->comm))
        status = tool_rank_failed(c->rank, "comparing results");
    *different = 0;
    for (size_t i = 0; i < c->count && !status; i++)
        *different += memcmp(first + i * size, (const char *)recv + i * size, size) != 0;
    free(first);
    return status;
}

int compressed_judge(const compressed *c, const void *recv, compressed_quality *out)
{
    int n = c->rank->size;
    double errors[2] = {0, 0}, sums[2] = {0, 0};
    if (measure_errors(c, recv, errors) || count_differences(c, recv, &sums[0]))
        return TOOL_FAILED;
    sums[1] = (double)c->report.repaired;
    double spread = errors[1];
    out->bits_per_coord = c->count ? (double)c->report.bits_sent / (double)c->count : 0;
    if (tool_rank_sum(c->rank, &spread, 1) || tool_rank_sum(c->rank, sums, 2) ||
        tool_rank_max(c->rank, &out->bits_per_coord, 1))
        return TOOL_FAILED;
    out->different = sums[0];
    out->repaired = sums[1];
    /* squared error / (unbiased variance between ranks / n) */
    out->excess = n > 1 && spread > 0 ? errors[0] / (spread / (n - 1) / n) : NAN;
    return TOOL_OK;
}
