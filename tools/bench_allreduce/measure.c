/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_allreduce/measure.h"

#include "bench_allreduce/floor.h"
#include "command.h"
#include "common/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double budget_s = 0.25; /* per loop: enough for a stable median, and a whole sweep stays under a minute */
enum { MIN_ITERATIONS = 5, MAX_ITERATIONS = 5000, WARM_UP_BYTES = 64 << 20, MAX_WARM_UP = 20 };

/* One step of a loop; `before` and `after` (may be NULL) run outside the time of `timed`. The sample is that time, or
 * what `value` gives. */
typedef struct {
    void (*before)(const measurement *m);
    coset_status (*timed)(const measurement *m);
    void (*after)(const measurement *m);
    double (*value)(const measurement *m);
} step;

static size_t bytes_of(const measurement *m)
{
    return m->count * coset_dtype_size(m->dtype);
}

static coset_status operation(const measurement *m)
{
    if (m->codec)
        return compressed_run(m->codec, m->send, m->recv);
    return coset_allreduce(m->send, m->recv, m->count, m->dtype, m->op, m->rank->comm);
}

static int operation_failed(const measurement *m)
{
    return m->codec ? compressed_failed(m->codec) : tool_rank_failed(m->rank, "all-reduce");
}

static void write_input(const measurement *m)
{
    if (m->codec)
        compressed_write(m->codec, m->send);
    else
        pattern_write(m->input, m->send, m->count);
}

static void read_result(const measurement *m)
{
    pattern_read(m->recv, bytes_of(m));
}

static coset_status cycle(const measurement *m)
{
    write_input(m);
    coset_status status = operation(m);
    read_result(m);
    return status;
}

/* samples[i] = the time of iteration i, maximum over ranks. */
static int run_loop(const measurement *m, const step *s, double *samples, int iterations)
{
    for (int i = 0; i < iterations; i++) {
        if (s->before)
            s->before(m);
        if (coset_barrier(m->rank->comm))
            return tool_rank_failed(m->rank, "barrier");
        double start = tool_now();
        if (s->timed(m))
            return operation_failed(m);
        samples[i] = s->value ? s->value(m) : tool_now() - start;
        if (s->after)
            s->after(m);
    }
    return tool_rank_max(m->rank, samples, (size_t)iterations);
}

/* Warms up and agrees on a number of iterations. */
static int choose_iterations(const measurement *m, const step *s, int *iterations)
{
    size_t bytes = bytes_of(m);
    int rounds = bytes ? (int)(WARM_UP_BYTES / bytes) : MAX_WARM_UP;
    rounds = rounds < 2 ? 2 : rounds > MAX_WARM_UP ? MAX_WARM_UP : rounds;
    double samples[MAX_WARM_UP];
    if (run_loop(m, s, samples, rounds))
        return TOOL_FAILED;
    if (m->iterations) {
        *iterations = m->iterations;
        return TOOL_OK;
    }
    double each = tool_percentile(samples, (size_t)rounds, 0.5);
    double wanted = each > 0 ? budget_s / each : MAX_ITERATIONS;
    *iterations = wanted < MIN_ITERATIONS ? MIN_ITERATIONS : wanted > MAX_ITERATIONS ? MAX_ITERATIONS : (int)wanted;
    return TOOL_OK;
}

/* The median of a loop of its own. */
static int median_of(const measurement *m, const step *s, double *samples, int iterations, double *median)
{
    int status = run_loop(m, s, samples, iterations);
    if (!status)
        *median = tool_percentile(samples, (size_t)iterations, 0.5);
    return status;
}

/* What has to run before each operation. An estimate in place would leave the ranks equal, with nothing to encode. */
static void (*fresh_input(const measurement *m))(const measurement *)
{
    return m->rewrite || (m->codec && m->send == m->recv) ? write_input : NULL;
}

static int measure_times(const measurement *m, double *samples, int iterations, figures *out)
{
    const step plain = {.before = fresh_input(m), .timed = operation, .after = m->rewrite ? read_result : NULL};
    const step whole = {.timed = cycle};
    if (run_loop(m, &plain, samples, iterations))
        return TOOL_FAILED;
    out->mean_s = 0;
    for (int i = 0; i < iterations; i++)
        out->mean_s += samples[i] / iterations;
    out->p50_s = tool_percentile(samples, (size_t)iterations, 0.5);
    out->p99_s = tool_percentile(samples, (size_t)iterations, 0.99);
    return m->rewrite ? median_of(m, &whole, samples, iterations, &out->cycle_p50_s) : TOOL_OK;
}

static coset_status floor_normal(const measurement *m)
{
    floor_pass(m->rank->shared, m->rank->rank, m->rank->size, bytes_of(m), m->floor_stride, m->send == m->recv,
               FLOOR_STORE_NORMAL);
    return COSET_OK;
}

static coset_status floor_stream_others(const measurement *m)
{
    floor_pass(m->rank->shared, m->rank->rank, m->rank->size, bytes_of(m), m->floor_stride, false, FLOOR_STREAM_OTHERS);
    return COSET_OK;
}

static coset_status floor_stream_all(const measurement *m)
{
    floor_pass(m->rank->shared, m->rank->rank, m->rank->size, bytes_of(m), m->floor_stride, false, FLOOR_STREAM_ALL);
    return COSET_OK;
}

/* Out of place the lowest of the three ways to store: a floor is what nothing beats. */
static int measure_floor(const measurement *m, double *samples, int iterations, figures *out)
{
    coset_status (*const ways[])(const measurement *) = {floor_normal, floor_stream_others, floor_stream_all};
    int count = m->send == m->recv ? 1 : 3;
    for (int i = 0; m->floor_stride && i < count; i++) {
        const step s = {.timed = ways[i]};
        double median;
        if (run_loop(m, &s, samples, 1) || median_of(m, &s, samples, iterations, &median))
            return TOOL_FAILED;
        if (!(out->floor_p50_s <= median))
            out->floor_p50_s = median;
    }
    return TOOL_OK;
}

/* Bytes and processor time, from operations back to back with no barrier between. */
static int measure_costs(const measurement *m, int iterations, figures *out)
{
    coset_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    if (coset_barrier(m->rank->comm) || coset_comm_stats(m->rank->comm, &before))
        return tool_rank_failed(m->rank, "counters");
    double cpu = tool_rank_cpu(m->rank);
    for (int i = 0; i < iterations; i++) {
        if (m->codec && m->send == m->recv)
            write_input(m);
        if (operation(m))
            return operation_failed(m);
    }
    cpu = tool_rank_cpu(m->rank) - cpu;
    if (coset_comm_stats(m->rank->comm, &after))
        return tool_rank_failed(m->rank, "counters");
    double bytes[2] = {(double)(after.wire_sent_bytes - before.wire_sent_bytes) / iterations,
                       (double)(after.wire_received_bytes - before.wire_received_bytes) / iterations};
    out->cpu_s = cpu / iterations;
    if (tool_rank_max(m->rank, bytes, 2) || tool_rank_sum(m->rank, &out->cpu_s, 1))
        return TOOL_FAILED;
    out->wire_sent = bytes[0];
    out->wire_received = bytes[1];
    return TOOL_OK;
}

static int verify(const measurement *m, figures *out)
{
    write_input(m);
    if (m->send != m->recv)
        memset(m->recv, 0xff, bytes_of(m));
    if (operation(m))
        return operation_failed(m);
    pattern expected = pattern_of_result(m->dtype, m->op, m->rank->size);
    out->wrong = (double)pattern_wrong(&expected, m->recv, m->count);
    return tool_rank_sum(m->rank, &out->wrong, 1);
}

static double codec_time(const measurement *m)
{
    return m->codec->report.codec_s;
}

/* What the codec alone takes, and how good its last estimate is. */
static int measure_codec(const measurement *m, double *samples, int iterations, figures *out)
{
    const step s = {.before = write_input, .timed = operation, .value = codec_time};
    if (median_of(m, &s, samples, iterations, &out->codec_p50_s) || compressed_judge(m->codec, m->recv, &out->quality))
        return TOOL_FAILED;
    out->wrong = out->quality.different;
    return TOOL_OK;
}

/* Known values in, the result compared bit by bit; then zeros: repeated sums of them stay zeros, so that no denormal or
 * infinity slows a later pass. */
static int prepare(const measurement *m, figures *out)
{
    if (m->codec) {
        write_input(m);
        return TOOL_OK;
    }
    if (verify(m, out))
        return TOOL_FAILED;
    memset(m->send, 0, bytes_of(m));
    memset(m->recv, 0, bytes_of(m));
    return TOOL_OK;
}

int measure(const measurement *m, figures *out)
{
    const step plain = {.before = fresh_input(m), .timed = operation};
    *out = (figures){.cycle_p50_s = NAN, .floor_p50_s = NAN, .codec_p50_s = NAN};
    int iterations;
    if (prepare(m, out) || choose_iterations(m, &plain, &iterations))
        return TOOL_FAILED;
    double *samples = malloc((size_t)iterations * sizeof *samples);
    if (!samples) {
        fprintf(stderr, "%s: out of memory\n", m->rank->command);
        return TOOL_FAILED;
    }
    int status = measure_times(m, samples, iterations, out);
    if (!status)
        status = measure_costs(m, iterations, out);
    if (!status)
        status = m->codec ? measure_codec(m, samples, iterations, out) : measure_floor(m, samples, iterations, out);
    free(samples);
    return status;
}
