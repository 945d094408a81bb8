/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of buckets and the counting of readiness, without any communication. */
#include "unit.h"

#include "ddp/buckets.h"
#include "ddp/step.h"

#include <stdlib.h>

#define KIB ((size_t)1 << 10)

/* n parameters of f32 with 256 elements: 1 KiB each. */
static coset_param *equal_params(size_t n)
{
    coset_param *p = calloc(n, sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = (coset_param){.id = i, .count = 256, .dtype = COSET_F32, .ndim = 2};
    return p;
}

static void identity(size_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
}

static void test_caps(void **state)
{
    (void)state;
    enum { N = 20 };
    size_t order[N];
    coset_param *p = equal_params(N);
    cst_bucket_caps caps = {.bucket_bytes = 8 * KIB, .first_bytes = 2 * KIB, .last_bytes = 3 * KIB};
    cst_buckets b;
    identity(order, N);
    assert_int_equal(cst_buckets_make(&b, p, N, order, 0, &caps), COSET_OK);
    /* first, full, half of the 10 that are left, 2 since the 3 that are then left fit the last cap */
    const size_t want[] = {2, 8, 5, 2, 3};
    assert_int_equal(b.nbuckets, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(b.bucket[i].count, want[i]);
    assert_int_equal(b.bytes, N * KIB);
    cst_buckets_free(&b);
    free(p);
}

static void test_list_of_caps(void **state)
{
    (void)state;
    enum { N = 10 };
    size_t order[N], list[] = {KIB, 2 * KIB, 4 * KIB};
    coset_param *p = equal_params(N);
    cst_bucket_caps caps = {.list = list, .nlist = 3};
    cst_buckets b;
    identity(order, N);
    assert_int_equal(cst_buckets_make(&b, p, N, order, 0, &caps), COSET_OK);
    const size_t want[] = {1, 2, 4, 3};
    assert_int_equal(b.nbuckets, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(b.bucket[i].count, want[i]);
    cst_buckets_free(&b);
    free(p);
}

/* With defaults, a bucket after the first is no larger than all that follow it together, up to one parameter. */
static void test_the_tail_shrinks(void **state)
{
    (void)state;
    enum { N = 200 };
    size_t order[N];
    coset_param *p = equal_params(N);
    identity(order, N);
    for (size_t n = 1; n <= N; n++) {
        cst_bucket_caps caps = {.bucket_bytes = 1000 * KIB, .first_bytes = KIB, .last_bytes = KIB};
        cst_buckets b;
        assert_int_equal(cst_buckets_make(&b, p, n, order, 0, &caps), COSET_OK);
        size_t rest = b.bytes;
        for (size_t i = 0; i + 1 < b.nbuckets; i++) {
            rest -= b.bucket[i].bytes;
            assert_true(b.bucket[i].bytes <= rest);
        }
        assert_int_equal(rest, KIB);
        cst_buckets_free(&b);
    }
    free(p);
}

/* Every parameter in exactly one bucket of its own kind, no two gradients overlapping, all aligned. */
static void test_layout_is_a_partition(void **state)
{
    (void)state;
    enum { N = 97 };
    size_t order[N];
    coset_param p[N];
    static const coset_dtype dtypes[] = {COSET_F32, COSET_F64, COSET_F16, COSET_BF16};
    for (size_t i = 0; i < N; i++) {
        p[i] = (coset_param){.id = i,
                             .count = i * i * 37 % 5000,
                             .dtype = dtypes[i % 4],
                             .ndim = (int)(i % 3),
                             .flags = (int)(i % 7 == 0)};
        order[i] = (i * 31) % N;
    }
    for (size_t cap = 1; cap < 1 << 20; cap = cap * 7 + 1) {
        cst_bucket_caps caps = {.bucket_bytes = cap, .first_bytes = cap / 2 + 1, .last_bytes = cap / 3 + 1};
        cst_buckets b;
        assert_int_equal(cst_buckets_make(&b, p, N, order, 1, &caps), COSET_OK);
        size_t end = 0, members = 0;
        for (size_t k = 0; k < b.nbuckets; k++) {
            assert_int_equal(b.bucket[k].offset, end);
            assert_int_equal(b.bucket[k].first, members);
            for (size_t i = 0; i < b.bucket[k].count; i++) {
                size_t param = b.member[b.bucket[k].first + i];
                assert_int_equal(b.bucket_of[param], k);
                assert_int_equal(b.offset[param], end);
                assert_int_equal(b.offset[param] % CST_GRAD_ALIGN, 0);
                assert_int_equal(p[param].dtype, b.bucket[k].dtype);
                assert_int_equal(cst_param_compressible(&p[param]), b.bucket[k].compressed);
                end += (p[param].count * coset_dtype_size(p[param].dtype) + 63) / 64 * 64;
            }
            members += b.bucket[k].count;
            assert_int_equal(b.bucket[k].offset + b.bucket[k].bytes, end);
        }
        assert_int_equal(members, N);
        assert_int_equal(end, b.bytes);
        cst_buckets_free(&b);
    }
}

/* Whatever the order of readiness, `complete` is the longest prefix of buckets that have all their members. */
static void test_readiness(void **state)
{
    (void)state;
    enum { N = 24 };
    size_t order[N];
    coset_param *p = equal_params(N);
    cst_bucket_caps caps = {.bucket_bytes = 4 * KIB, .first_bytes = KIB, .last_bytes = 2 * KIB};
    cst_buckets b;
    cst_step_state s;
    identity(order, N);
    assert_int_equal(cst_buckets_make(&b, p, N, order, 0, &caps), COSET_OK);
    assert_int_equal(cst_step_init(&s, N), COSET_OK);
    for (unsigned seed = 1; seed < 50; seed++) {
        srand(seed);
        cst_step_begin(&s, &b);
        for (size_t i = 0; i < N; i++) {
            size_t param = (size_t)rand() % N;
            while (s.ready[param])
                param = (param + 1) % N;
            assert_int_equal(cst_step_ready(&s, &b, param), 1);
            assert_int_equal(cst_step_ready(&s, &b, param), 0);
            size_t prefix = 0;
            for (; prefix < b.nbuckets; prefix++) {
                size_t have = 0;
                for (size_t k = 0; k < b.bucket[prefix].count; k++)
                    have += s.ready[b.member[b.bucket[prefix].first + k]];
                if (have < b.bucket[prefix].count)
                    break;
            }
            assert_int_equal(s.complete, prefix);
        }
        assert_int_equal(s.complete, b.nbuckets);
    }
    cst_step_free(&s);
    cst_buckets_free(&b);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_list_of_caps),
        cmocka_unit_test(test_the_tail_shrinks),
        cmocka_unit_test(test_layout_is_a_partition),
        cmocka_unit_test(test_readiness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
