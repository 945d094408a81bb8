/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/flat.h"

#include "kernels/convert/convert.h"

#include <stdlib.h>

float *cst_flat_read(const coset_round *round)
{
    float *x = malloc(round->layout.coords * sizeof *x + 1), *to = x;
    for (size_t i = 0; x && i < round->nspans; i++) {
        const coset_span *s = &round->spans[i];
        if (!s->count)
            continue;
        if (round->dtype == COSET_F32)
            memcpy(to, s->send, s->count * sizeof *to);
        else if (round->dtype == COSET_F64)
            for (size_t k = 0; k < s->count; k++)
                to[k] = (float)((const double *)s->send)[k];
        else
            cst_widen(round->dtype, to, s->send, s->count);
        to += s->count;
    }
    return x;
}

void cst_flat_write(const coset_round *round, const float *x)
{
    for (size_t i = 0; i < round->nspans; i++) {
        const coset_span *s = &round->spans[i];
        if (!s->count)
            continue;
        if (round->dtype == COSET_F32)
            memcpy(s->recv, x, s->count * sizeof *x);
        else if (round->dtype == COSET_F64)
            for (size_t k = 0; k < s->count; k++)
                ((double *)s->recv)[k] = x[k];
        else
            cst_narrow(round->dtype, s->recv, x, s->count, 1);
        x += s->count;
    }
}
