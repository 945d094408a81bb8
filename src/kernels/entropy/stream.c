/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of a stream, and the choice of a model. */
#include <math.h>

#include "kernels/entropy/tables.h"
#include "kernels/pack/rows.h"

void cst_entropy_encoder_init(cst_entropy_encoder *e, uint8_t *buffer, size_t capacity)
{
    for (int w = 0; w < CST_ENTROPY_WAYS; w++)
        e->state[w] = CST_ENTROPY_LOW;
    e->low = buffer;
    e->next = buffer + capacity;
}

uint8_t *cst_entropy_encoder_finish(cst_entropy_encoder *e)
{
    if (e->next - e->low < CST_ENTROPY_STATES_BYTES)
        return NULL;
    e->next -= CST_ENTROPY_STATES_BYTES;
    for (int w = 0; w < CST_ENTROPY_WAYS; w++)
        cst_store_le32(e->next + 4 * w, e->state[w]);
    return e->next;
}

bool cst_entropy_decoder_init(cst_entropy_decoder *d, const uint8_t *bytes, size_t length)
{
    if (length < CST_ENTROPY_STATES_BYTES)
        return false;
    for (int w = 0; w < CST_ENTROPY_WAYS; w++) {
        d->state[w] = cst_load_le32(bytes + 4 * w);
        if (d->state[w] < CST_ENTROPY_LOW || d->state[w] >> 31)
            return false;
    }
    d->next = bytes + CST_ENTROPY_STATES_BYTES;
    d->end = bytes + length;
    return true;
}

bool cst_entropy_decoder_finish(const cst_entropy_decoder *d)
{
    uint32_t wrong = 0;
    for (int w = 0; w < CST_ENTROPY_WAYS; w++)
        wrong |= d->state[w] ^ CST_ENTROPY_LOW;
    return wrong == 0 && d->next == d->end;
}

static double table_ratio(int table)
{
    return 0.25 * exp2(table / 4.0);
}

cst_entropy_model cst_entropy_model_for(float ratio)
{
    const double half_way = exp2(1 / 8.0); /* tables are a factor 2^(1/4) apart */
    cst_entropy_model m = {0, 0};
    double scaled = ratio;
    while (scaled > table_ratio(CST_ENTROPY_TABLES - 1) * half_way && m.shift < CST_ENTROPY_SHIFT_MAX) {
        scaled /= 2;
        m.shift++;
    }
    while (m.table + 1 < CST_ENTROPY_TABLES && scaled > table_ratio(m.table) * half_way)
        m.table++;
    return m;
}
