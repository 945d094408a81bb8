/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/inspect.h"

#include "base/dtype.h"
#include "cpu/cpu.h"
#include "cpu/fpmode.h"
#include "kernels/convert/convert.h"
#include "kernels/norm/norm.h"

#include <math.h>

/* Elements widened at a time: 4 KiB, well inside the first-level cache. */
#define PIECE ((size_t)1024)

static const cst_norm_kernels *kernels(void)
{
    return cst_norm_kernels_for((int)cst_cpu_level());
}

/* The lanes and the tree of norm.h, for f64. */
static double energy_f64(const double *x, size_t n, double scale, size_t *nonfinite)
{
    double lane[16] = {0};
    for (size_t i = 0; i < n; i++) {
        double scaled = x[i] * scale;
        lane[i % 16] += scaled * scaled;
        *nonfinite += !isfinite(x[i]);
    }
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static double energy_half(coset_dtype dtype, const void *x, size_t n, size_t *nonfinite)
{
    float wide[PIECE];
    double energy = 0;
    for (size_t at = 0; at < n; at += PIECE) {
        size_t count = n - at < PIECE ? n - at : PIECE;
        cst_widen(dtype, wide, (const char *)x + 2 * at, count);
        cst_norm_stats s = kernels()->stats(wide, count);
        energy += s.energy;
        *nonfinite += s.nonfinite;
    }
    return energy;
}

double cst_energy(coset_dtype dtype, const void *x, size_t n, size_t *nonfinite)
{
    *nonfinite = 0;
    if (dtype == COSET_F64)
        return energy_f64(x, n, 1, nonfinite);
    if (cst_dtype_is_half(dtype))
        return energy_half(dtype, x, n, nonfinite);
    cst_norm_stats s = kernels()->stats(x, n);
    *nonfinite = s.nonfinite;
    return s.energy;
}

double cst_energy_scaled(const double *x, size_t n, double scale)
{
    size_t nonfinite = 0;
    return energy_f64(x, n, scale, &nonfinite);
}

int cst_has_nonfinite(coset_dtype dtype, const void *x, size_t n)
{
    size_t nonfinite;
    cst_fpmode saved = cst_fpmode_enter();
    cst_energy(dtype, x, n, &nonfinite);
    cst_fpmode_leave(saved);
    return nonfinite > 0;
}

static void scale_half(coset_dtype dtype, void *x, size_t n, float factor)
{
    float wide[PIECE];
    for (size_t at = 0; at < n; at += PIECE) {
        size_t count = n - at < PIECE ? n - at : PIECE;
        void *place = (char *)x + 2 * at;
        cst_widen(dtype, wide, place, count);
        for (size_t i = 0; i < count; i++)
            wide[i] *= factor;
        cst_narrow(dtype, place, wide, count, 1);
    }
}

void cst_scale(coset_dtype dtype, void *x, size_t n, double factor)
{
    float f = (float)factor;
    if (dtype == COSET_F64)
        for (size_t i = 0; i < n; i++)
            ((double *)x)[i] *= factor;
    else if (cst_dtype_is_half(dtype))
        scale_half(dtype, x, n, f);
    else
        for (size_t i = 0; i < n; i++)
            ((float *)x)[i] *= f;
}
