/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/past.h"

#include "codec/portable.h"
#include "mean/vector.h"

#include <stdlib.h>

/* How much of a change of the distance the spread follows: fitted to models of local SGD, whose common movement changes too. */
static const double follows = 0.8;

/* Runs of neighbours, one per stretch of 256 coordinates and more, so that reading them is cheap; they shift, so that they
 * do not always meet the same columns of a matrix. 2048 coordinates know an energy to 3 % (Gaussian), to 10 % with heavy
 * tails. */
enum { RUN = 16, STRETCH = 256, MOST_RUNS = 128 };

static size_t runs_of(size_t count)
{
    size_t runs = count / STRETCH;
    return runs < MOST_RUNS ? runs : MOST_RUNS;
}

static void read_run(const void *x, size_t count, coset_dtype dtype, size_t run, double *out)
{
    size_t runs = runs_of(count), at = count / runs * run + RUN * (7 * run % (STRETCH / RUN));
    cst_exact_read(dtype, (const uint8_t *)x + at * coset_dtype_size(dtype), RUN, out);
}

void cst_past_forget(cst_past *past)
{
    free(past->last);
    *past = (cst_past){0};
}

void cst_past_look(cst_past *past, const void *x, size_t count, coset_dtype dtype)
{
    past->now = past->gain = 0;
    if (!past->last)
        return;
    double distance = 0, energy = 0;
    for (size_t run = 0; run < runs_of(count); run++) {
        double v[RUN];
        read_run(x, count, dtype, run, v);
        for (size_t i = 0; i < RUN; i++) {
            double d = v[i] - (double)past->last[run * RUN + i];
            distance += d * d;
            energy += v[i] * v[i];
        }
    }
    /* Only where the last mean tells more than none would. NaN tells nothing. */
    if (distance < 0.5 * energy)
        past->now = distance;
    if (past->now > 0 && past->before > 0)
        past->gain = cst_exp2(follows * cst_log2(past->now / past->before));
}

void cst_past_keep(cst_past *past, const void *mean, size_t count, coset_dtype dtype)
{
    size_t runs = runs_of(count);
    if (!past->last)
        past->last = runs ? malloc(runs * RUN * sizeof *past->last) : NULL;
    if (!past->last)
        return;
    for (size_t run = 0; run < runs; run++) {
        double v[RUN];
        read_run(mean, count, dtype, run, v);
        for (size_t i = 0; i < RUN; i++)
            past->last[run * RUN + i] = (float)v[i];
    }
    past->before = past->now;
}

size_t cst_past_bytes(const cst_past *past, size_t count)
{
    return past->last ? 8 + runs_of(count) * RUN * sizeof *past->last : 0;
}

void cst_past_write(const cst_past *past, size_t count, cst_writer *w)
{
    cst_put_f64(w, past->before);
    for (size_t i = 0; i < runs_of(count) * RUN; i++)
        cst_put_f32(w, past->last[i]);
}

coset_status cst_past_read(cst_past *past, size_t count, cst_reader *r)
{
    size_t values = runs_of(count) * RUN;
    double before = cst_get_f64(r);
    if (!values || !(before >= 0) || (size_t)(r->end - r->at) < 4 * values)
        return COSET_ERR_CORRUPT;
    past->last = malloc(values * sizeof *past->last);
    if (!past->last)
        return COSET_ERR_MEMORY;
    for (size_t i = 0; i < values; i++)
        past->last[i] = cst_get_f32(r);
    past->before = before;
    return COSET_OK;
}
