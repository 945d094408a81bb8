/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/entropy/entropy_scalar.h"

#include <string.h>

#include "kernels/block.h"
#include "kernels/pack/rows.h"
#include "kernels/scalar.h"

static void put_word(cst_entropy_encoder *e, uint32_t word)
{
    e->next -= 2;
    e->next[0] = (uint8_t)word;
    e->next[1] = (uint8_t)(word >> 8);
}

static bool take_word(cst_entropy_decoder *d, uint32_t *word)
{
    if (d->end - d->next < 2)
        return false;
    *word = (uint32_t)d->next[0] | (uint32_t)d->next[1] << 8;
    d->next += 2;
    return true;
}

static uint32_t symbol_of(const cst_entropy_encode_table *table, int32_t value)
{
    uint32_t s = (uint32_t)value + (uint32_t)table->largest;
    return s < (uint32_t)table->escape ? s : (uint32_t)table->escape;
}

/* Everything in the reverse of the order in which it is read: escapes of the row, then its ways. */
void cst_entropy_encode_row(cst_entropy_encoder *e, const cst_entropy_encode_table *table, const int32_t *values)
{
    for (int w = CST_ENTROPY_WAYS - 1; w >= 0; w--)
        if (symbol_of(table, values[w]) == (uint32_t)table->escape) {
            put_word(e, (uint32_t)values[w] >> 16);
            put_word(e, (uint32_t)values[w]);
        }
    for (int w = CST_ENTROPY_WAYS - 1; w >= 0; w--) {
        uint32_t s = symbol_of(table, values[w]), f = table->frequency[s], x = e->state[w];
        if (x >> (31 - CST_ENTROPY_BITS) >= f) {
            put_word(e, x);
            x >>= 16;
        }
        e->state[w] = (x / f << CST_ENTROPY_BITS) + x % f + table->start[s];
    }
}

bool cst_entropy_decode_row(cst_entropy_decoder *d, const cst_entropy_decode_table *slots,
                            const cst_entropy_encode_table *table, int32_t *values)
{
    for (int w = 0; w < CST_ENTROPY_WAYS; w++) {
        uint32_t x = d->state[w], slot = slots->slot[x & ((1u << CST_ENTROPY_BITS) - 1)], word;
        x = (slot & 0xfff) * (x >> CST_ENTROPY_BITS) + (slot >> 12 & 0xfff);
        if (x < CST_ENTROPY_LOW) {
            if (!take_word(d, &word))
                return false;
            x = x << 16 | word;
        }
        d->state[w] = x;
        values[w] = (int32_t)(slot >> 24) - table->largest;
    }
    for (int w = 0; w < CST_ENTROPY_WAYS; w++)
        if (values[w] + table->largest == table->escape) {
            uint32_t low, high;
            if (!take_word(d, &low) || !take_word(d, &high))
                return false;
            values[w] = (int32_t)(low | high << 16);
        }
    return true;
}

/* Half of 2^shift: values are centred by rounding, not by truncation. */
static int32_t half_of(uint32_t shift)
{
    return shift ? 1 << (shift - 1) : 0;
}

void cst_entropy_split(const int32_t *points, uint32_t n, uint32_t shift, int32_t *values)
{
    for (uint32_t i = 0; i < n; i++)
        values[i] = cst_wrap_add(points[i], half_of(shift)) >> shift;
}

void cst_entropy_write_low_bits(cst_entropy_encoder *e, const int32_t *points, uint32_t n, uint32_t shift)
{
    if (shift == 0)
        return;
    e->next -= n / 8 * shift;
    uint8_t *out = e->next;
    uint64_t pending[CST_LANES] = {0};
    uint32_t used = 0, row[CST_LANES];
    for (uint32_t v = 0; v < n; v += CST_LANES) {
        for (uint32_t l = 0; l < CST_LANES; l++) {
            uint32_t low = (uint32_t)cst_wrap_add(points[v + l], half_of(shift)) & ((1u << shift) - 1);
            pending[l] |= (uint64_t)low << used;
        }
        used += shift;
        if (used < 32)
            continue;
        for (uint32_t l = 0; l < CST_LANES; l++, out += 4) {
            cst_store_le32(out, (uint32_t)pending[l]);
            pending[l] >>= 32;
        }
        used -= 32;
    }
    for (uint32_t l = 0; l < CST_LANES; l++)
        row[l] = (uint32_t)pending[l];
    cst_store_planes(row, used, out);
}

const uint8_t *cst_entropy_take_low_bits(cst_entropy_decoder *d, uint32_t n, uint32_t shift)
{
    size_t bytes = (size_t)n / 8 * shift;
    if ((size_t)(d->end - d->next) < bytes)
        return NULL;
    const uint8_t *start = d->next;
    d->next += bytes;
    return start;
}

void cst_entropy_join(const uint8_t *in, uint32_t n, uint32_t shift, int32_t *values)
{
    if (shift == 0)
        return;
    uint64_t pending[CST_LANES] = {0};
    uint32_t have = 0, left = n / CST_LANES * shift, row[CST_LANES];
    for (uint32_t v = 0; v < n; v += CST_LANES) {
        if (have < shift) {
            uint32_t bits = left < 32 ? left : 32;
            if (bits == 32)
                for (uint32_t l = 0; l < CST_LANES; l++)
                    row[l] = cst_load_le32(in + 4 * l);
            else
                cst_load_planes(in, bits, row);
            for (uint32_t l = 0; l < CST_LANES; l++)
                pending[l] |= (uint64_t)row[l] << have;
            in += CST_ROW_BYTES;
            have += bits;
            left -= bits;
        }
        for (uint32_t l = 0; l < CST_LANES; l++) {
            uint32_t low = (uint32_t)pending[l] & ((1u << shift) - 1);
            values[v + l] = cst_wrap_sub((int32_t)(((uint32_t)values[v + l] << shift) + low), half_of(shift));
            pending[l] >>= shift;
        }
        have -= shift;
    }
}

static bool encode(cst_entropy_encoder *e, cst_entropy_model m, const int32_t *points, uint32_t n)
{
    if ((size_t)(e->next - e->low) < cst_entropy_block_bound(n, m))
        return false;
    const cst_entropy_encode_table *table = &cst_entropy_encode_tables()[m.table];
    int32_t values[CST_BLOCK];
    cst_entropy_split(points, n, m.shift, values);
    for (uint32_t i = n; i > 0; i -= CST_ENTROPY_WAYS)
        cst_entropy_encode_row(e, table, values + i - CST_ENTROPY_WAYS);
    cst_entropy_write_low_bits(e, points, n, m.shift);
    return true;
}

static bool decode(cst_entropy_decoder *d, cst_entropy_model m, int32_t *points, uint32_t n)
{
    const cst_entropy_encode_table *table = &cst_entropy_encode_tables()[m.table];
    const cst_entropy_decode_table *slots = &cst_entropy_decode_tables()[m.table];
    const uint8_t *low_bits = cst_entropy_take_low_bits(d, n, m.shift);
    if (!low_bits)
        return false;
    for (uint32_t i = 0; i < n; i += CST_ENTROPY_WAYS)
        if (!cst_entropy_decode_row(d, slots, table, points + i))
            return false;
    cst_entropy_join(low_bits, n, m.shift, points);
    return true;
}

const cst_entropy_kernels cst_entropy_scalar = {.encode = encode, .decode = decode};
