/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/measure.h"

#include "mean/same.h"

#include <float.h>
#include <math.h>

bool cst_keep_vectors(const cst_owner *o, cst_gathered *g)
{
    coset_error none;
    cst_request *asks = o->asks + (size_t)(g - o->gathered) * (size_t)o->listen.shared->options.rules.ranks;
    return g->kept || (cst_gather(&o->listen, g->block, o->first, true, g, asks, &none) == COSET_OK && g->complete);
}

/* s^2 and R^2 from the energies of the decoded vectors, less what quantisation added to them. */
static void measure(cst_block_now *b, double spread, double mean_energy, double factor, int ranks)
{
    double n = ranks, count = b->layout->count, padding = (double)b->layout->n / count, errors = 0;
    b->largest_step = b->largest_base = 0;
    for (int u = 0; u < ranks; u++) {
        errors += b->g->error[u];
        b->largest_step = fmax(b->largest_step, b->g->step[u]);
        b->largest_base = fmax(b->largest_base, b->g->base[u]);
    }
    b->mean_error = errors / (n * n);
    b->average_error = errors / (n - 1);
    double s2 = spread / (factor * count * (n - 1)) - errors * padding / n;
    b->s2 = fmax(s2, 1e-3 * b->average_error);
    b->r2 = fmax(mean_energy / (factor * count) - b->s2 / n - errors * padding / (n * n), 0);
    b->measured = true;
}

static void measure_floats(const cst_owner *o, cst_block_now *b)
{
    int ranks = o->listen.shared->options.rules.ranks;
    b->mean_energy = b->g->sum_energy / ranks / ranks;
    measure(b, b->g->spread, b->mean_energy, cst_rotation_energy(b->layout->n), ranks);
}

/* Vectors in doubles: the mean goes into the own entry's place only after the spread is known. */
static void mean_of_doubles(const cst_gathered *g, uint32_t n, int ranks, double *mean)
{
    for (uint32_t i = 0; i < n; i++) {
        double own = g->w[i], sum = 0; /* as differences from rank 0's: nothing overflows, little is lost */
        for (int u = 1; u < ranks; u++)
            sum += (g->w[(size_t)u * n + i] - own) / ranks;
        mean[i] = own + sum;
        if (isfinite(mean[i]))
            continue;
        mean[i] = 0; /* NaN and Inf as a sum has them, and differences of the largest numbers */
        for (int u = 0; u < ranks; u++)
            mean[i] += g->w[(size_t)u * n + i] / ranks;
    }
}

/* Values are 2^scale times what the block's unit makes them. */
static void measure_doubles(const cst_owner *o, cst_block_now *b, const double *mean, uint32_t n, double factor,
                            int scale)
{
    int ranks = o->listen.shared->options.rules.ranks;
    double spread = 0, energy = 0;
    for (int u = 0; u < ranks; u++)
        for (uint32_t i = 0; i < n; i++) {
            double d = cst_scale2(b->g->w[(size_t)u * n + i] - mean[i], -scale);
            spread += d * d;
        }
    for (uint32_t i = 0; i < n; i++) {
        double x = cst_scale2(mean[i], -scale);
        energy += x * x;
    }
    measure(b, spread, energy, factor, ranks);
}

/* ---- blocks that all ranks have alike (mean/same.h) ---- */

static void measure_same(const cst_owner *o, cst_block_now *b)
{
    const cst_vector *v = o->listen.vector;
    b->r2 = cst_in_unit(v->own[b->g->block].energy, v->own[b->g->block].exponent, b->g->unit);
    b->measured = true;
}

/* Exact blocks without spread that differ all the same, if only in the sign of zeros, get the least that there is: none would
 * say that they are alike. */
static void mark_different(cst_block_now *b, int ranks)
{
    size_t row = b->layout->count;
    for (int u = 1; b->s2 == 0 && u < ranks; u++)
        if (memcmp(b->g->w, b->g->w + row * (size_t)u, row * sizeof *b->g->w) != 0)
            b->s2 = DBL_MIN;
}

/* A spread below what the codes can tell: perhaps there is none. */
static void look_for_same(const cst_owner *o, cst_block_now *b)
{
    const double noise = 0.1;
    b->alike = b->s2 < noise * b->average_error && b->r2 > b->average_error &&
               cst_gather_own_points(&o->listen, o->first, b->g);
}

uint16_t cst_alike_index(const cst_owner *o, const cst_block_now *b)
{
    const double little = 0x1p-60; /* of the energy */
    const cst_tensor *t = o->listen.shared->tensors[b->layout->span];
    uint16_t tracked = t->known ? t->stat[b->layout->index].s2 : 0;
    return cst_energy_value(tracked, b->g->unit) < little * b->r2 ? tracked : 0;
}

static bool all_finite(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

void cst_measure(const cst_owner *o, cst_block_now *b, double *mean)
{
    int ranks = o->listen.shared->options.rules.ranks;
    uint32_t n = b->layout->n, count = b->layout->count;
    if (b->g->same) {
        measure_same(o, b);
    } else if (b->g->exact) {
        mean_of_doubles(b->g, count, ranks, mean);
        if (!all_finite(b->g->w, (size_t)count * (size_t)ranks))
            return;
        measure_doubles(o, b, mean, count, 1, b->g->unit); /* elements, as they are */
        mark_different(b, ranks);
    } else if (b->g->wide) {
        mean_of_doubles(b->g, n, ranks, mean);
        measure_doubles(o, b, mean, n, cst_rotation_energy(n), 0);
    } else {
        measure_floats(o, b);
    }
    if (!b->g->exact)
        look_for_same(o, b);
}
