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

/* Integral of the normal distribution function of standard deviation sigma up to v. */
static double integral_of_normal(double v, double sigma)
{
    const double pi = 3.14159265358979323846;
    return v * 0.5 * erfc(-v / (sigma * sqrt(2.0))) + sigma * exp(-v * v / (2 * sigma * sigma)) / sqrt(2 * pi);
}

double cst_entropy_cost(cst_entropy_model m, double ratio)
{
    const cst_entropy_encode_table *e = &cst_entropy_encode_tables()[m.table];
    const double escape_value_bits = 32, width = ldexp(1.0, m.shift);
    const double first = m.shift ? -width / 2 : 0; /* integers first .. first + width - 1 are coded as 0 */
    double bits = m.shift, coded = 0;
    for (int s = 0; s < e->escape; s++) {
        double low = first + width * (s - e->largest), high = low + width;
        double p = (integral_of_normal(high, ratio) - integral_of_normal(high - 1, ratio)) -
                   (integral_of_normal(low, ratio) - integral_of_normal(low - 1, ratio));
        p = p > 0 ? p : 0;
        bits += p * (CST_ENTROPY_BITS - log2(e->frequency[s]));
        coded += p;
    }
    double escapes = coded < 1 ? 1 - coded : 0;
    return bits + escapes * (escape_value_bits + CST_ENTROPY_BITS - log2(e->frequency[e->escape]));
}
