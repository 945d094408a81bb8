/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/job.h"

#include "base/dtype.h"
#include "kernels/convert/convert.h"
#include "kernels/reduce/reduce.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0x5C };
static const coset_entry entry = {{1, 2, 3}};

/* ---- Values. ---- */

static void put(coset_dtype dtype, char *at, double value)
{
    float f = (float)value;
    int64_t i = (int64_t)value;
    switch (dtype) {
    case COSET_F32: memcpy(at, &f, sizeof f); break;
    case COSET_F64: memcpy(at, &value, sizeof value); break;
    case COSET_F16:
    case COSET_BF16: cst_narrow(dtype, at, &f, 1, 1); break;
    default: /* integers: the low bytes, on the little-endian machines that the library is for */
        memcpy(at, &i, coset_dtype_size(dtype));
    }
}

/* Small integers, and for products powers of two, so that no order of operations rounds; or rough ones. */
static double value(job *j)
{
    uint64_t r = next_random(&j->values) >> 20;
    if (j->spec.rough)
        return ((double)(r % 2000003) - 1000001) / 3e3 * (r % 7 == 0 ? 1e5 : 1);
    if (j->spec.op == COSET_PROD)
        return r % 3 == 0 ? 2 : r % 3 == 1 ? 1 : -1;
    return (double)(r % 17) - 8;
}

/* ---- Buffers. ---- */

static char *guarded(char **memory, size_t bytes)
{
    *memory = malloc(bytes + 2 * GUARD);
    assert_non_null(*memory);
    memset(*memory, GUARD_BYTE, bytes + 2 * GUARD);
    return *memory + GUARD;
}
static void check_guards(const char *memory, size_t bytes)
{
    for (size_t i = 0; memory && i < GUARD; i++) {
        assert_int_equal(memory[i], GUARD_BYTE);
        assert_int_equal(memory[GUARD + bytes + i], GUARD_BYTE);
    }
}

static cst_call call_of(const job *j, int rank)
{
    const job_spec *p = &j->spec;
    cst_call call = {.kind = p->kind, .dtype = p->dtype, .op = p->op, .root = p->root, .count = p->count};
    if (p->kind == CST_SEND && rank == p->root)
        call.kind = CST_RECV;
    if (p->kind == CST_SEND)
        call.root = rank == p->root ? (p->root + 1) % p->n : p->root;
    return call;
}

static void make_buffers(job *j, int rank)
{
    const job_spec *p = &j->spec;
    cst_call call = call_of(j, rank);
    size_t size = coset_dtype_size(p->dtype), own = p->count * (size_t)rank * size;
    j->send_bytes[rank] = cst_call_send_bytes(&call, rank, p->n);
    j->recv_bytes[rank] = cst_call_recv_bytes(&call, rank, p->n);
    size_t longer = j->send_bytes[rank] > j->recv_bytes[rank] ? j->send_bytes[rank] : j->recv_bytes[rank];
    if (p->in_place) {
        char *both = guarded(&j->memory[rank][0], longer);
        j->send_bytes[rank] = longer;
        j->send[rank] = both + (p->kind == CST_ALLGATHER ? own : 0);
        j->recv[rank] = both + (p->kind == CST_REDUCE_SCATTER ? own : 0);
    } else {
        if (j->send_bytes[rank])
            j->send[rank] = guarded(&j->memory[rank][0], j->send_bytes[rank]);
        if (j->recv_bytes[rank])
            j->recv[rank] = guarded(&j->memory[rank][1], j->recv_bytes[rank]);
    }
    size_t elements = cst_call_send_bytes(&call, rank, p->n) / size;
    j->input[rank] = malloc(elements * size + 1);
    assert_non_null(j->input[rank]);
    for (size_t e = 0; e < elements; e++)
        put(p->dtype, j->input[rank] + e * size, value(j));
    if (elements)
        memcpy(j->send[rank], j->input[rank], elements * size);
}

void job_open(job *j, const job_spec *spec)
{
    memset(j, 0, sizeof *j);
    j->spec = *spec;
    world_open(&j->w, spec->n, spec->seed);
    j->values = random_state(spec->values ? spec->values : spec->seed);
    j->w.max_message = spec->max_message;
    if (spec->lazy)
        j->w.lazy = spec->lazy;
    for (int rank = 0; rank < spec->n; rank++) {
        make_buffers(j, rank);
        cst_plan plan = {.call = call_of(j, rank),
                         .rank = rank,
                         .size = spec->n,
                         .segment_bytes = spec->segment_bytes,
                         .max_message = spec->max_message};
        plan.call.send = j->send[rank];
        plan.call.recv = j->recv[rank];
        j->schedule[rank] = cst_schedule_create();
        assert_non_null(j->schedule[rank]);
        bool idle = spec->kind == CST_SEND && rank != spec->root && rank != (spec->root + 1) % spec->n;
        if (idle)
            cst_schedule_reset(j->schedule[rank], &plan);
        else
            assert_int_equal(cst_build(j->schedule[rank], &plan, spec->algo, NULL), COSET_OK);
        assert_int_equal(cst_schedule_start(j->schedule[rank], &j->w.end[rank].base, 7, &entry), COSET_OK);
        j->status[rank] = COSET_IN_PROGRESS;
    }
}

bool job_run(job *j, long steps_at_most)
{
    int left = j->spec.n;
    for (int rank = 0; rank < j->spec.n; rank++)
        left -= j->status[rank] != COSET_IN_PROGRESS;
    for (long i = 0; left > 0 && i < steps_at_most; i++) {
        int rank = (int)(world_random(&j->w) >> 33) % j->spec.n;
        if (j->status[rank] != COSET_IN_PROGRESS)
            continue;
        j->status[rank] = cst_schedule_step(j->schedule[rank]);
        left -= j->status[rank] != COSET_IN_PROGRESS;
    }
    return left == 0;
}

void job_close(job *j)
{
    for (int rank = 0; rank < j->spec.n; rank++) {
        cst_schedule_destroy(j->schedule[rank]);
        assert_int_equal(world_pending(&j->w, rank), 0);
        free(j->memory[rank][0]);
        free(j->memory[rank][1]);
        free(j->input[rank]);
    }
    world_close(&j->w);
}

/* ---- What the result has to be. ---- */

void job_reduce(const job *j, const int *order, size_t begin, size_t end, char *result)
{
    const void *src[WORLD_MAX];
    size_t at = begin * coset_dtype_size(j->spec.dtype);
    void *dst[1] = {result + at};
    for (int k = 0; k < j->spec.n; k++)
        src[k] = j->input[order[k]] + at;
    if (end > begin && j->spec.n > 1)
        cst_reduce(j->spec.dtype, j->spec.op, dst, 1, src, j->spec.n, end - begin,
                   j->spec.op == COSET_AVG ? (unsigned)j->spec.n : 1, 0);
    else if (end > begin)
        memcpy(dst[0], src[0], (end - begin) * coset_dtype_size(j->spec.dtype));
}

/* The whole vector of results: of a reduction, or the inputs one after another. */
static char *all_results(const job *j)
{
    const job_spec *p = &j->spec;
    size_t size = coset_dtype_size(p->dtype), elements = p->count * (size_t)(p->kind == CST_REDUCE_SCATTER ? p->n : 1);
    size_t bytes = p->count * size;
    char *all = malloc(bytes * (size_t)p->n + 1);
    assert_non_null(all);
    int order[WORLD_MAX];
    for (int rank = 0; rank < p->n; rank++)
        order[rank] = rank;
    if (p->kind == CST_ALLREDUCE || p->kind == CST_REDUCE || p->kind == CST_REDUCE_SCATTER)
        job_reduce(j, order, 0, elements, all);
    else if (p->kind == CST_ALLGATHER)
        for (int rank = 0; rank < p->n; rank++)
            memcpy(all + (size_t)rank * bytes, j->input[rank], bytes);
    else if (p->kind == CST_BROADCAST)
        memcpy(all, j->input[p->root], bytes);
    else if (p->kind == CST_SEND)
        memcpy(all, j->input[(p->root + 1) % p->n], bytes);
    return all;
}

/* For the reader of a failure: which of the thousands of jobs it was. */
static void name_job(const job *j, int rank)
{
    const job_spec *p = &j->spec;
    print_error("%s %s %s %s, %d ranks, root %d, count %zu, %s, segments of %zu, at most %zu, seed %llu: rank %d\n",
                cst_kind_name(p->kind), cst_algo_name(p->algo), coset_dtype_name(p->dtype), coset_op_name(p->op), p->n,
                p->root, p->count, p->in_place ? "in place" : "out of place", p->segment_bytes, p->max_message,
                (unsigned long long)p->seed, rank);
}
static void same_bytes(const job *j, int rank, const void *is, const void *should, size_t bytes)
{
    if (bytes && memcmp(is, should, bytes) != 0)
        name_job(j, rank);
    assert_memory_equal(is, should, bytes);
}

static void check_result(const job *j, int rank, const char *all)
{
    const job_spec *p = &j->spec;
    size_t bytes = p->count * coset_dtype_size(p->dtype);
    cst_call call = call_of(j, rank);
    size_t recv_bytes = cst_call_recv_bytes(&call, rank, p->n);
    if (recv_bytes == 0)
        return;
    if (p->kind == CST_ALLTOALL)
        for (int peer = 0; peer < p->n; peer++)
            same_bytes(j, rank, j->recv[rank] + (size_t)peer * bytes, j->input[peer] + (size_t)rank * bytes, bytes);
    else
        same_bytes(j, rank, j->recv[rank], all + (p->kind == CST_REDUCE_SCATTER ? bytes * (size_t)rank : 0),
                   recv_bytes);
}

/* The send buffer is as it was, but for what is also the receive buffer. */
static void check_send_buffer(const job *j, int rank)
{
    const job_spec *p = &j->spec;
    cst_call call = call_of(j, rank);
    size_t sent = cst_call_send_bytes(&call, rank, p->n), own = p->count * coset_dtype_size(p->dtype);
    if (p->in_place && p->kind == CST_REDUCE_SCATTER) {
        size_t before = own * (size_t)rank;
        assert_memory_equal(j->send[rank], j->input[rank], before);
        assert_memory_equal(j->send[rank] + before + own, j->input[rank] + before + own, sent - before - own);
    } else if (sent > 0 && (!p->in_place || cst_call_recv_bytes(&call, rank, p->n) == 0)) {
        assert_memory_equal(j->send[rank], j->input[rank], sent);
    }
}

void job_check(const job *j)
{
    char *all = all_results(j);
    for (int rank = 0; rank < j->spec.n; rank++) {
        assert_int_equal(j->status[rank], COSET_OK);
        check_result(j, rank, all);
        check_send_buffer(j, rank);
        check_guards(j->memory[rank][0], j->send_bytes[rank]);
        check_guards(j->memory[rank][1], j->recv_bytes[rank]);
    }
    free(all);
}

void job_do(const job_spec *spec)
{
    job j;
    job_open(&j, spec);
    assert_true(job_run(&j, 50000000));
    job_check(&j);
    job_close(&j);
}
