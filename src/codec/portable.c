/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/portable.h"

#include <stdint.h>
#include <string.h>

enum { NONE = -2000, BIAS = 1023 };

static uint64_t bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double power_of_two(int e) /* -1022 .. 1023 */
{
    uint64_t u = (uint64_t)(e + BIAS) << 52;
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* x = result * 2^*e with 1 <= result < 2, for finite x > 0. */
static double split(double x, int *e)
{
    int shift = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p+60;
        shift = -60;
    }
    uint64_t u = bits_of(x);
    *e = (int)(u >> 52) - BIAS + shift;
    u = (u & 0xFFFFFFFFFFFFFu) | (uint64_t)BIAS << 52;
    memcpy(&x, &u, sizeof x);
    return x;
}

double cst_log2(double x)
{
    if (!(x > 0))
        return NONE;
    int e;
    double m = split(x, &e);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    /* log2(m) = 2 atanh(s) / ln 2, |s| < 0.172: the series is cut where its terms pass below 1e-15. */
    static const double odd[] = {1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
    double s = (m - 1) / (m + 1), t = s * s, sum = 0;
    for (int k = 0; k < 9; k++)
        sum = sum * t + odd[k];
    return e + s * sum * 2.8853900817779268; /* 2 / ln 2 */
}

double cst_exp2(double x)
{
    if (!(x > -1100))
        return 0;
    if (x > BIAS)
        return power_of_two(BIAS);
    int e = (int)x;
    double f = x - e;
    if (f > 0.5) {
        f -= 1;
        e++;
    } else if (f < -0.5) {
        f += 1;
        e--;
    }
    static const double factorial[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
        1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0,         1.0};
    double y = f * 0.69314718055994531, sum = 0; /* ln 2; |y| < 0.347 */
    for (int k = 0; k < 14; k++)
        sum = sum * y + factorial[k];
    return cst_scale2(sum, e);
}

double cst_scale2(double x, int e)
{
    e = e > 4 * BIAS ? 4 * BIAS : e < -4 * BIAS ? -4 * BIAS : e; /* beyond: the same 0 or infinity */
    for (; e > BIAS; e -= BIAS)
        x *= power_of_two(BIAS);
    for (; e < 1 - BIAS; e += BIAS - 1)
        x *= power_of_two(1 - BIAS);
    return x * power_of_two(e);
}

int cst_exponent(double x)
{
    uint64_t u = bits_of(x) & 0x7FFFFFFFFFFFFFFFu;
    if (u == 0)
        return NONE;
    memcpy(&x, &u, sizeof x);
    int e;
    split(x, &e);
    return e;
}
