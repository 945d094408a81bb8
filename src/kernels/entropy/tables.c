/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/entropy/tables.h"

#include <pthread.h>

static const struct {
    uint8_t largest;
    uint16_t frequency[CST_ENTROPY_SYMBOLS];
} sources[CST_ENTROPY_TABLES] = {
#include "kernels/entropy/tables.inc"
};

enum { TOTAL = 1 << CST_ENTROPY_BITS };

static cst_entropy_encode_table encode_tables[CST_ENTROPY_TABLES];
static cst_entropy_decode_table decode_tables[CST_ENTROPY_TABLES];

static void set_division(cst_entropy_encode_table *e, int symbol)
{
    uint32_t f = e->frequency[symbol], start = e->start[symbol], shift = 0;
    if (f == 1) {
        e->reciprocal[symbol] = UINT32_MAX;
        e->step[symbol] = f | (start + TOTAL - 1) << 16;
        return;
    }
    while (f > 1u << shift)
        shift++;
    e->reciprocal[symbol] = (uint32_t)(((1ull << (shift + 31)) + f - 1) / f);
    e->step[symbol] = f | (shift - 1) << 12 | start << 16;
}

static void build_table(int t)
{
    cst_entropy_encode_table *e = &encode_tables[t];
    uint32_t start = 0;
    e->largest = sources[t].largest;
    e->escape = 2 * e->largest + 1;
    for (int s = 0; s <= e->escape; s++) {
        uint32_t f = sources[t].frequency[s];
        e->frequency[s] = (uint16_t)f;
        e->start[s] = (uint16_t)start;
        set_division(e, s);
        for (uint32_t i = 0; i < f; i++)
            decode_tables[t].slot[start + i] = f | i << 12 | (uint32_t)s << 24;
        start += f;
    }
}

static void build(void)
{
    for (int t = 0; t < CST_ENTROPY_TABLES; t++)
        build_table(t);
}

static pthread_once_t built = PTHREAD_ONCE_INIT;

const cst_entropy_encode_table *cst_entropy_encode_tables(void)
{
    pthread_once(&built, build);
    return encode_tables;
}

const cst_entropy_decode_table *cst_entropy_decode_tables(void)
{
    pthread_once(&built, build);
    return decode_tables;
}
