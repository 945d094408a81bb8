/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/field.h"

#include "../../tools/mean/local.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xoshiro256** (D. Blackman, S. Vigna), seeded by splitmix64. */
static uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static uint64_t next(field *f)
{
    uint64_t *s = f->random, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double field_uniform(field *f)
{
    return ((double)(next(f) >> 11) + 0.5) * 0x1p-53;
}

double field_gauss(field *f)
{
    if (f->has_spare) {
        f->has_spare = false;
        return f->spare;
    }
    double u, v, r;
    do {
        u = 2 * field_uniform(f) - 1;
        v = 2 * field_uniform(f) - 1;
        r = u * u + v * v;
    } while (r >= 1 || r == 0);
    double g = sqrt(-2 * log(r) / r);
    f->spare = v * g;
    f->has_spare = true;
    return u * g;
}

/* Student t with 3 degrees of freedom, unit variance. */
static double t3(field *f)
{
    double g = field_gauss(f), a = field_gauss(f), b = field_gauss(f), c = field_gauss(f);
    return g / sqrt(a * a + b * b + c * c);
}

static double draw(field *f, field_shape shape)
{
    if (shape == FIELD_COINS)
        return (__builtin_popcountll(next(f)) - 32) / 4.0;
    return shape == FIELD_T3 ? t3(f) : field_gauss(f);
}

field *field_make(int ranks, size_t dim, const coset_mean_options *options, uint64_t seed)
{
    field *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->ranks = ranks;
    f->dim = dim;
    f->x = calloc((size_t)ranks, sizeof *f->x);
    f->means = calloc((size_t)ranks, sizeof(coset_mean *));
    f->out = malloc((size_t)ranks * dim * sizeof(float) + 64);
    assert_true(f->x && f->means && f->out);
    for (int i = 0; i < 4; i++) {
        seed += 0x9E3779B97F4A7C15u;
        uint64_t z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
        f->random[i] = z ^ z >> 31;
    }
    for (int r = 0; r < ranks; r++) {
        coset_error why = COSET_ERROR_INIT;
        f->x[r] = malloc(dim * sizeof(float) + 64);
        assert_non_null(f->x[r]);
        if (coset_mean_create(r, ranks, options, &f->means[r], &why))
            fail_msg("%s", why.text);
    }
    return f;
}

void field_free(field *f)
{
    for (int r = 0; r < f->ranks; r++) {
        coset_mean_destroy(f->means[r]);
        free(f->x[r]);
    }
    free(f->x);
    free(f->means);
    free(f->out);
    free(f);
}

void field_fill_part(field *f, field_shape shape, double mean_rms, double spread, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        double common = mean_rms > 0 ? mean_rms * draw(f, shape) : 0;
        for (int r = 0; r < f->ranks; r++)
            f->x[r][i] = (float)(common + spread * draw(f, shape));
    }
}

void field_fill(field *f, field_shape shape, double mean_rms, double spread)
{
    field_fill_part(f, shape, mean_rms, spread, 0, f->dim);
}

static void measure(field *f, field_result *result)
{
    double spread = 0, error = 0;
    for (size_t i = 0; i < f->dim; i++) {
        double mean = 0, d2 = 0;
        for (int r = 0; r < f->ranks; r++)
            mean += (double)f->x[r][i] / f->ranks;
        for (int r = 0; r < f->ranks; r++)
            d2 += ((double)f->x[r][i] - mean) * ((double)f->x[r][i] - mean);
        spread += d2 / (f->ranks - 1);
        error += ((double)f->out[i] - mean) * ((double)f->out[i] - mean);
    }
    result->spread2 = spread / (double)f->dim;
    result->mse = error / (double)f->dim;
    result->excess = result->mse / (result->spread2 / f->ranks);
}

field_result field_average(field *f)
{
    field_result result = {0};
    coset_mean_report *reports = calloc((size_t)f->ranks, sizeof *reports);
    coset_span *spans = calloc((size_t)f->ranks, sizeof *spans);
    const coset_span **each = calloc((size_t)f->ranks, sizeof(coset_span *));
    assert_true(reports && spans && each);
    for (int r = 0; r < f->ranks; r++) {
        reports[r].struct_size = sizeof *reports;
        spans[r] = (coset_span){1, f->x[r], f->out + f->dim * (size_t)r, f->dim};
        each[r] = &spans[r];
    }
    coset_error why = COSET_ERROR_INIT;
    if (tool_mean_local(f->means, f->ranks, each, 1, COSET_F32, reports, &why))
        fail_msg("%s", why.text);
    measure(f, &result);
    result.report = reports[0];
    for (int r = 0; r < f->ranks; r++)
        result.bits += (double)reports[r].bits_sent / (double)f->dim / (f->ranks - 1);
    result.identical = true;
    for (int r = 1; r < f->ranks; r++)
        result.identical &= memcmp(f->out, f->out + f->dim * (size_t)r, f->dim * sizeof(float)) == 0;
    free(reports);
    free(spans);
    free(each);
    return result;
}
