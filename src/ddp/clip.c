/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clipping by the norm of all gradients (Pascanu, Mikolov and Bengio, 2013), after the last bucket and before the
 * optimizer. Every rank holds the same bits, so each takes the norm by itself and no rank needs to be asked. The sum goes
 * over parameters in the order of registration: it depends on no bucket.
 */
#include "cpu/fpmode.h"
#include "ddp/inspect.h"
#include "ddp/reducer.h"

#include <math.h>
#include <stdio.h>

static coset_status name_culprit(coset_ddp *d, size_t param)
{
    char label[96];
    cst_param_label(&d->params.list[param], label, sizeof label);
    if (d->culprit[param] >= 0)
        return cst_ddp_fail(d, COSET_OK, "gradient of parameter %s is not finite; rank %d brought it in first", label,
                            d->culprit[param]);
    return cst_ddp_fail(d, COSET_OK,
                        "gradient of parameter %s is not finite: finite gradients of the ranks add up beyond %s", label,
                        coset_dtype_name(d->params.list[param].dtype));
}

/* Where finite f64 gradients have squares beyond f64: a power of two, so that scaling rounds nothing. All other types are
 * too small to show beside them. */
static const double huge_scale = 0x1p-600;

static double huge_energy(const coset_ddp *d)
{
    double energy = 0;
    for (size_t i = 0; i < d->params.count; i++)
        if (d->params.list[i].dtype == COSET_F64)
            energy += cst_energy_scaled((const double *)(d->memory + d->layout.offset[i]), d->params.list[i].count,
                                        huge_scale);
    return energy;
}

static coset_status clip(coset_ddp *d, double max_norm, double *total_norm, int *skip)
{
    double energy = 0;
    size_t bad = CST_NO_PARAM;
    for (size_t i = 0; i < d->params.count; i++) {
        size_t nonfinite;
        const coset_param *p = &d->params.list[i];
        energy += cst_energy(p->dtype, d->memory + d->layout.offset[i], p->count, &nonfinite);
        if (nonfinite && bad == CST_NO_PARAM)
            bad = i;
    }
    double scale = bad == CST_NO_PARAM && isinf(energy) ? huge_scale : 1;
    if (scale < 1)
        energy = huge_energy(d);
    double norm = bad == CST_NO_PARAM ? sqrt(energy) / scale : (double)NAN;
    if (total_norm)
        *total_norm = norm;
    if (skip)
        *skip = bad != CST_NO_PARAM;
    if (bad != CST_NO_PARAM)
        return name_culprit(d, bad);
    if (norm > max_norm)
        for (size_t i = 0; i < d->params.count; i++)
            cst_scale(d->params.list[i].dtype, d->memory + d->layout.offset[i], d->params.list[i].count,
                      max_norm * scale / sqrt(energy));
    return COSET_OK;
}

coset_status coset_ddp_clip(coset_ddp *d, double max_norm, double *total_norm, int *skip)
{
    if (!d)
        return COSET_ERR_ARGUMENT;
    if (!(max_norm > 0))
        return cst_ddp_fail(d, COSET_ERR_ARGUMENT, "coset_ddp_clip: max_norm is %g; it must be above zero", max_norm);
    cst_fpmode saved = cst_fpmode_enter(); /* whatever the caller's thread does with denormals: the same bits */
    coset_status status = clip(d, max_norm, total_norm, skip);
    cst_fpmode_leave(saved);
    return status;
}
