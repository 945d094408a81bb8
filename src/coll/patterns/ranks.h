/* SPDX-License-Identifier: Apache-2.0 */
/* Small arithmetic on ranks that several patterns share. */
#ifndef CST_COLL_PATTERNS_RANKS_H
#define CST_COLL_PATTERNS_RANKS_H

/* a mod n in 0..n-1, for a >= -n. */
static inline int cst_mod(int a, int n)
{
    return (a + n) % n;
}
/* The largest power of two that is at most n (n >= 1). */
static inline int cst_pow2_floor(int n)
{
    int p = 1;
    while (p <= n / 2)
        p *= 2;
    return p;
}
/* floor(log2 n) and ceil(log2 n), n >= 1. */
static inline int cst_log2_floor(int n)
{
    int k = 0;
    while (n > 1) {
        n /= 2;
        k++;
    }
    return k;
}
static inline int cst_log2_ceil(int n)
{
    return n == 1 ? 0 : cst_log2_floor(n - 1) + 1;
}
#endif
