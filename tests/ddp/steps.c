/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/steps.h"

#include "kernels/convert/convert.h"

#include <pthread.h>

void make_params(coset_param *p)
{
    static const size_t counts[PARAMS] = {1, 7, 4096, 5000, 0, 1023, 30000, 64, 2048, 10, 9999, 3};
    static const coset_dtype dtypes[PARAMS] = {COSET_F32, COSET_F32,  COSET_F32, COSET_F64, COSET_F32, COSET_F16,
                                               COSET_F32, COSET_BF16, COSET_F32, COSET_F64, COSET_F32, COSET_F32};
    static const char *const names[PARAMS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", NULL};
    for (size_t i = 0; i < PARAMS; i++)
        p[i] = (coset_param){
            .id = 100 + i * 3, .count = counts[i], .dtype = dtypes[i], .ndim = i % 2 ? 2 : 1, .name = names[i]};
}

/* Small integers: exact in every type. */
static int value(int rank, size_t param, size_t i, int step)
{
    return (int)((i * 5 + (size_t)rank * 3 + param + (size_t)step) % 17) - 8;
}

static double read_element(coset_dtype dtype, const void *x, size_t i)
{
    float f;
    switch (dtype) {
    case COSET_F64: return ((const double *)x)[i];
    case COSET_F32: return (double)((const float *)x)[i];
    default: cst_widen(dtype, &f, (const char *)x + 2 * i, 1); return (double)f;
    }
}

static void write_element(coset_dtype dtype, void *x, size_t i, int v)
{
    float f = (float)v;
    if (dtype == COSET_F64)
        ((double *)x)[i] = v;
    else if (dtype == COSET_F32)
        ((float *)x)[i] = f;
    else
        cst_narrow(dtype, (char *)x + 2 * i, &f, 1, 1);
}

void write_grad(coset_ddp *d, const coset_param *p, size_t param, int rank, int step)
{
    void *g = coset_ddp_grad(d, p[param].id);
    for (size_t i = 0; i < p[param].count; i++)
        write_element(p[param].dtype, g, i, value(rank, param, i, step));
}

int check_grad(coset_comm *c, coset_ddp *d, const coset_param *p, size_t param, int step, unsigned absent)
{
    int size = coset_comm_size(c);
    const void *g = coset_ddp_grad(d, p[param].id);
    for (size_t i = 0; i < p[param].count; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++)
            sum += absent >> r & 1 ? 0 : value(r, param, i, step);
        double got = read_element(p[param].dtype, g, i), want = (double)sum / size;
        if (got != want)
            return group_fail(c, "step %d, parameter %zu, element %zu: %g, not %g", step, param, i, got, want);
    }
    return 0;
}

coset_ddp *make_reducer(coset_comm *c, coset_param *p, const coset_ddp_options *o)
{
    coset_ddp *d = NULL;
    make_params(p);
    return group_want(c, coset_ddp_create(c, o, p, PARAMS, &d), COSET_OK, "create") ? NULL : d;
}

int ready_all(coset_comm *c, coset_ddp *d, const coset_param *p, int step)
{
    int bad = 0;
    for (size_t i = 0; i < PARAMS; i++) {
        write_grad(d, p, i, coset_comm_rank(c), step);
        bad |= group_want(c, coset_ddp_ready(d, p[i].id), COSET_OK, "ready");
    }
    return bad;
}

typedef struct {
    coset_ddp *d;
    const coset_param *p;
    int rank, step;
    size_t first;
    coset_status status;
} half;

static void *ready_half(void *arg)
{
    half *h = arg;
    for (size_t k = h->first; k < PARAMS; k += 2) {
        size_t param = (k * 5 + (size_t)h->rank * 7) % PARAMS; /* 5 is prime to 12: a permutation, other on each rank */
        write_grad(h->d, h->p, param, h->rank, h->step);
        h->status = coset_ddp_ready(h->d, h->p[param].id);
        if (h->status)
            return NULL;
    }
    return NULL;
}

int one_step(coset_comm *c, coset_ddp *d, const coset_param *p, int step)
{
    int rank = coset_comm_rank(c), moved = 0;
    half halves[2] = {{d, p, rank, step, 0, COSET_OK}, {d, p, rank, step, 1, COSET_OK}};
    pthread_t other;
    pthread_create(&other, NULL, ready_half, &halves[1]);
    ready_half(&halves[0]);
    pthread_join(other, NULL);
    if (halves[0].status || halves[1].status)
        return group_fail(c, "ready: %s", coset_ddp_why(d));
    if (group_want(c, coset_ddp_finish(d, &moved), COSET_OK, "finish") || (moved != (step == 0)))
        return group_fail(c, "step %d: finish: %s, moved %d", step, coset_ddp_why(d), moved);
    for (size_t i = 0; i < PARAMS; i++)
        if (check_grad(c, d, p, i, step, 0))
            return 1;
    return 0;
}

uint64_t hash_of(uint64_t h, const void *data, size_t n)
{
    for (const unsigned char *b = data; n--; b++)
        h = (h ^ *b) * UINT64_C(0x100000001b3);
    return h;
}
