/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_allreduce/floor.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { LANES = 16, LINE = LANES * sizeof(float) };
typedef float line __attribute__((vector_size(64)));

typedef struct {
    float *in[FLOOR_MAX_RANKS], *out[FLOOR_MAX_RANKS];
    int rank, ranks;
    size_t from, to; /* this rank's slice, in floats, multiples of LANES */
    floor_mode mode;
} pass;

/* Everything below is inlined into one function per instruction set, with the rank count a constant where it is common. */
#define INLINED static inline __attribute__((always_inline))

INLINED void store(float *to, const line *value, bool stream)
{
#ifdef __x86_64__
    if (stream) {
        const float *v = (const float *)value;
        for (int i = 0; i < LANES; i += 4)
            _mm_stream_ps(to + i, _mm_loadu_ps(v + i));
        return;
    }
#else
    (void)stream;
#endif
    memcpy(to, value, sizeof *value);
}

INLINED void sum_slice(const pass *p, int ranks, floor_mode mode)
{
    for (size_t i = p->from; i < p->to; i += LANES) {
        line sum, next;
        memcpy(&sum, p->in[0] + i, sizeof sum);
        for (int r = 1; r < ranks; r++) {
            memcpy(&next, p->in[r] + i, sizeof next);
            sum += next;
        }
        for (int r = 0; r < ranks; r++)
            store(p->out[r] + i, &sum, mode == FLOOR_STREAM_ALL || (mode == FLOOR_STREAM_OTHERS && r != p->rank));
    }
}

INLINED void sum_ranks(const pass *p, floor_mode mode)
{
    switch (p->ranks) {
    case 2: sum_slice(p, 2, mode); break;
    case 4: sum_slice(p, 4, mode); break;
    default: sum_slice(p, p->ranks, mode); break;
    }
}

INLINED void run(const pass *p)
{
    switch (p->mode) {
    case FLOOR_STREAM_ALL: sum_ranks(p, FLOOR_STREAM_ALL); break;
    case FLOOR_STREAM_OTHERS: sum_ranks(p, FLOOR_STREAM_OTHERS); break;
    default: sum_ranks(p, FLOOR_STORE_NORMAL); break;
    }
}

static void run_baseline(const pass *p)
{
    run(p);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void run_avx2(const pass *p)
{
    run(p);
}

__attribute__((target("avx512f"))) static void run_avx512(const pass *p)
{
    run(p);
}
#endif

static void run_best(const pass *p)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        run_avx512(p);
    else if (__builtin_cpu_supports("avx2"))
        run_avx2(p);
    else
        run_baseline(p);
    if (p->mode != FLOOR_STORE_NORMAL)
        _mm_sfence();
#else
    run_baseline(p);
#endif
}

static size_t stride(size_t max_bytes)
{
    return (max_bytes + 4095) & ~(size_t)4095;
}

size_t floor_region_bytes(int ranks, size_t bytes, bool in_place)
{
    return (size_t)ranks * stride(bytes) * (in_place ? 1 : 2);
}

void floor_pass(void *region, int rank, int ranks, size_t bytes, size_t max_bytes, bool in_place, floor_mode mode)
{
    size_t lines = bytes / LINE, step = stride(max_bytes);
    pass p = {.rank = rank, .ranks = ranks, .mode = mode};
    p.from = lines * (size_t)rank / (size_t)ranks * LANES;
    p.to = lines * ((size_t)rank + 1) / (size_t)ranks * LANES;
    for (int r = 0; r < ranks; r++) {
        p.in[r] = (float *)((char *)region + (size_t)r * step);
        p.out[r] = in_place ? p.in[r] : (float *)((char *)region + (size_t)(ranks + r) * step);
    }
    run_best(&p);
}
