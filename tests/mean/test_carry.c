/* SPDX-License-Identifier: Apache-2.0 */
/* coset_mean_allreduce over the threads transport, and tcp: the same bits on all ranks, tensors of many sizes in one call, in place
 * and not, every float type; the report; a rank that differs. */
#include "unit.h"

#include <coset_mean.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, TENSORS = 5, STEPS = 3 };
static const size_t counts[TENSORS] = {600000, 1, 0, 300000, 131};

typedef struct {
    coset_comm *comm;
    const coset_unique_id *id; /* NULL: comm is there; else it is made over tcp */
    int rank;
    coset_dtype dtype;
    coset_mean_options options;
    float *out; /* [tensor]: all tensors one after another */
    coset_mean_report report;
    double sent, received; /* bits reported, all steps */
    coset_stats stats;
    coset_status status;
    coset_error error;
} rank_work;

static size_t total(void)
{
    size_t n = 0;
    for (int i = 0; i < TENSORS; i++)
        n += counts[i];
    return n;
}

static float input(int rank, int step, size_t i)
{
    double common = 3 * sin(0.37 * (double)i + step), own = cos(12.9898 * (double)(i + 1) * (rank + 1) + step);
    return (float)(common + own);
}

static void *run_rank(void *arg)
{
    rank_work *w = arg;
    coset_mean *mean = NULL;
    coset_error why = COSET_ERROR_INIT;
    coset_comm_options tcp = COSET_COMM_OPTIONS_INIT;
    tcp.transport = "tcp";
    if (w->id && coset_comm_create_id(w->id, w->rank, RANKS, &tcp, &w->comm, &why))
        fail_msg("rank %d: %s", w->rank, why.text);
    w->status = coset_mean_create(w->rank, RANKS, &w->options, &mean, &why);
    size_t n = total(), width = coset_dtype_size(w->dtype);
    uint8_t *x = malloc(n * width), *y = malloc(n * width);
    for (int step = 0; !w->status && step < STEPS; step++) {
        coset_span spans[TENSORS];
        size_t at = 0;
        for (int t = 0; t < TENSORS; t++) {
            bool in_place = t % 2;
            spans[t] = (coset_span){(uint64_t)t + 7, x + at * width, (in_place ? x : y) + at * width, counts[t]};
            for (size_t i = at; i < at + counts[t]; i++) {
                if (w->dtype == COSET_F64)
                    ((double *)(void *)x)[i] = input(w->rank, step, i);
                else
                    ((float *)(void *)x)[i] = input(w->rank, step, i);
            }
            at += counts[t];
        }
        w->report = (coset_mean_report)COSET_MEAN_REPORT_INIT;
        w->status = coset_mean_allreduce(mean, spans, TENSORS, w->dtype, w->comm, &w->report);
        w->sent += (double)w->report.bits_sent;
        w->received += (double)w->report.bits_received;
        at = 0;
        for (int t = 0; t < TENSORS; at += counts[t++])
            for (size_t i = 0; i < counts[t]; i++)
                w->out[at + i] = w->dtype == COSET_F64 ? (float)((const double *)spans[t].recv)[i]
                                                       : ((const float *)spans[t].recv)[i];
    }
    w->stats.struct_size = sizeof w->stats;
    coset_comm_stats(w->comm, &w->stats);
    w->error = (coset_error)COSET_ERROR_INIT;
    coset_last_error(w->comm, &w->error);
    coset_mean_destroy(mean);
    free(x);
    free(y);
    return NULL;
}

static void run_all(rank_work w[RANKS], coset_dtype dtype, const coset_unique_id *id)
{
    coset_comm *comms[RANKS] = {NULL};
    pthread_t threads[RANKS];
    if (!id)
        assert_int_equal(coset_comm_create_threads(RANKS, NULL, comms, NULL), COSET_OK);
    for (int r = 0; r < RANKS; r++) {
        w[r].comm = comms[r];
        w[r].id = id;
        w[r].rank = r;
        w[r].dtype = dtype;
        w[r].out = calloc(total(), sizeof(float));
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &w[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < RANKS; r++)
        coset_comm_destroy(w[r].comm);
}

static void free_all(rank_work w[RANKS])
{
    for (int r = 0; r < RANKS; r++)
        free(w[r].out);
}

static void check_mean(coset_dtype dtype)
{
    rank_work w[RANKS] = {{0}};
    for (int r = 0; r < RANKS; r++)
        w[r].options = (coset_mean_options)COSET_MEAN_OPTIONS_INIT;
    run_all(w, dtype, NULL);
    double error = 0, spread = 0;
    for (size_t i = 0; i < total(); i++) {
        double mean = 0;
        for (int r = 0; r < RANKS; r++)
            mean += (double)input(r, STEPS - 1, i) / RANKS;
        for (int r = 0; r < RANKS; r++)
            spread += pow(input(r, STEPS - 1, i) - mean, 2) / (RANKS - 1);
        error += pow(w[0].out[i] - mean, 2);
    }
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(w[r].status, COSET_OK);
        assert_memory_equal(w[r].out, w[0].out, total() * sizeof(float));
        assert_int_equal(w[r].report.coords, total());
        assert_true(w[r].report.bits_sent > 0 && w[r].report.transfers >= 2);
    }
    /* 900000 coordinates: the excess of 0.048 is estimated to 0.2 % (one deviation) */
    double excess = error / (spread / RANKS);
    assert_true(excess > 0.03 && excess < 0.052);
    free_all(w);
}

static void mean_of_f32(void **state)
{
    (void)state;
    check_mean(COSET_F32);
}

static void mean_of_f64(void **state)
{
    (void)state;
    check_mean(COSET_F64);
}

/* Bytes that the transport counted beside what the reports say, within 1 %. (Where ranks read each other's memory, what
 * is read counts as sent by its owner, and nothing as received; over sockets both directions count, with headers.) */
static void check_bytes(const coset_unique_id *id)
{
    rank_work w[RANKS] = {{0}};
    for (int r = 0; r < RANKS; r++)
        w[r].options = (coset_mean_options)COSET_MEAN_OPTIONS_INIT;
    run_all(w, COSET_F32, id);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(w[r].status, COSET_OK);
        if (id) {
            w[r].stats.sent_bytes = w[r].stats.wire_sent_bytes;
            w[r].stats.received_bytes = w[r].stats.wire_received_bytes;
        }
        printf("rank %d: %llu bytes sent, %llu received; reported %.0f, %.0f\n", r,
               (unsigned long long)w[r].stats.sent_bytes, (unsigned long long)w[r].stats.received_bytes, w[r].sent / 8,
               w[r].received / 8);
        assert_true(fabs((double)w[r].stats.sent_bytes / (w[r].sent / 8) - 1) < 0.01);
        if (id || w[r].stats.received_bytes)
            assert_true(fabs((double)w[r].stats.received_bytes / (w[r].received / 8) - 1) < 0.01);
    }
    free_all(w);
}

static void bytes_on_the_wire_are_those_reported(void **state)
{
    (void)state;
    check_bytes(NULL);
}

static void over_sockets_too(void **state)
{
    (void)state;
    coset_unique_id id;
    assert_int_equal(coset_unique_id_create(&id), COSET_OK);
    check_bytes(&id);
}

/* ---- operations of others, which end while segments are coded ---- */

enum { OTHERS = 64, LONG = 1 << 21 };

typedef struct {
    const coset_unique_id *id;
    int rank, called, flushed;
    coset_status status;
} bystander;

static void multiply_a_denormal(void *ctx, coset_status status)
{
    bystander *b = ctx;
    volatile float tiny = 1e-40f;
    tiny *= 0.5f;
    b->called += status == COSET_OK;
    b->flushed += tiny == 0;
}

static void *run_bystander(void *arg)
{
    bystander *b = arg;
    coset_comm *comm = NULL;
    coset_mean *mean = NULL;
    coset_request *requests[OTHERS];
    coset_comm_options tcp = COSET_COMM_OPTIONS_INIT;
    tcp.transport = "tcp";
    b->status = coset_comm_create_id(b->id, b->rank, 2, &tcp, &comm, NULL);
    if (!b->status)
        b->status = coset_mean_create(b->rank, 2, NULL, &mean, NULL);
    float *x = calloc(LONG, sizeof *x), one[OTHERS], sum[OTHERS];
    for (size_t i = 0; i < LONG; i++)
        x[i] = input(b->rank, 0, i);
    coset_span span = {1, x, x, LONG};
    for (int i = 0; !b->status && i < OTHERS; i++) {
        one[i] = 1;
        b->status = coset_iallreduce(&one[i], &sum[i], 1, COSET_F32, COSET_SUM, comm, &requests[i]);
        if (!b->status)
            b->status = coset_request_on_complete(requests[i], multiply_a_denormal, b);
    }
    if (!b->status)
        b->status = coset_mean_allreduce(mean, &span, 1, COSET_F32, comm, NULL);
    for (int i = 0; !b->status && i < OTHERS; i++)
        b->status = coset_wait(&requests[i], -1);
    coset_mean_destroy(mean);
    coset_comm_destroy(comm);
    free(x);
    return NULL;
}

static void callbacks_keep_denormals(void **state)
{
    (void)state;
    coset_unique_id id;
    bystander b[2];
    pthread_t threads[2];
    assert_int_equal(coset_unique_id_create(&id), COSET_OK);
    for (int r = 0; r < 2; r++) {
        b[r] = (bystander){&id, r, 0, 0, COSET_OK};
        assert_int_equal(pthread_create(&threads[r], NULL, run_bystander, &b[r]), 0);
    }
    for (int r = 0; r < 2; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(b[r].status, COSET_OK);
        assert_int_equal(b[r].called, OTHERS);
        assert_int_equal(b[r].flushed, 0);
    }
}

static void another_budget_on_one_rank_is_a_mismatch_for_all(void **state)
{
    (void)state;
    rank_work w[RANKS] = {{0}};
    for (int r = 0; r < RANKS; r++)
        w[r].options = (coset_mean_options)COSET_MEAN_OPTIONS_INIT;
    w[1].options.error_budget = 0.06;
    run_all(w, COSET_F32, NULL);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(w[r].status, COSET_ERR_MISMATCH);
        assert_non_null(strstr(w[r].error.text, "compressed mean"));
    }
    free_all(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_f32),
        cmocka_unit_test(mean_of_f64),
        cmocka_unit_test(bytes_on_the_wire_are_those_reported),
        cmocka_unit_test(over_sockets_too),
        cmocka_unit_test(callbacks_keep_denormals),
        cmocka_unit_test(another_budget_on_one_rank_is_a_mismatch_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
