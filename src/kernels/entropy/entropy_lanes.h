/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entropy code on vector lanes: 32 ways are WAY_VECTORS registers. The including file defines before, for its
 * instruction set,
 *
 *     vmask, mask_not_below(a, b), mask_equal(a, b), mask_bits(m), mask_select(m, a, b)     comparisons of lanes < 2^31
 *     look_up(table, symbol)      table[symbol] of 32 entries, held in WAY_VECTORS registers
 *     gather(base, index)         base[index]
 *     shift_right_each(a, n)      each lane by its own count
 *     min_unsigned(a, b)
 *     push_words(next, x, bits)   low 16 bits of the lanes in `bits`, in order, ending at next; returns where they start;
 *                                 may write up to 32 bytes below next
 *     spread_words(p, bits)       16-bit words from p on to the lanes in `bits`, in order; reads 2 VEC_LANES bytes
 */
#ifndef CST_KERNELS_ENTROPY_ENTROPY_LANES_H
#define CST_KERNELS_ENTROPY_ENTROPY_LANES_H
#include "kernels/entropy/entropy_scalar.h"
#include "kernels/pack/pack_lanes.h"

enum { WAY_VECTORS = CST_ENTROPY_WAYS / VEC_LANES, ROW_WORD_BYTES = 2 * CST_ENTROPY_WAYS };

/* --- encoding --- */

typedef struct {
    ivec reciprocal[WAY_VECTORS], step[WAY_VECTORS]; /* 32 entries each */
    ivec largest, escape;
} encoder_constants;

CST_LANE_INLINE encoder_constants encoder_prepare(const cst_entropy_encode_table *t)
{
    encoder_constants c = {.largest = i_set(t->largest), .escape = i_set(t->escape)};
    CST_UNROLL
    for (int j = 0; j < WAY_VECTORS; j++) {
        c.reciprocal[j] = i_load(t->reciprocal + VEC_LANES * j);
        c.step[j] = i_load(t->step + VEC_LANES * j);
    }
    return c;
}

/* One symbol into each of VEC_LANES states. */
CST_LANE_INLINE ivec encode_vector(ivec x, ivec symbol, const encoder_constants *c, uint8_t **next)
{
    const ivec step = look_up(c->step, symbol), reciprocal = look_up(c->reciprocal, symbol);
    const ivec frequency = i_and(step, i_set(0xfff));
    const vmask full = mask_not_below(i_shr(x, 31 - CST_ENTROPY_BITS), frequency);
    *next = push_words(*next, x, mask_bits(full));
    x = mask_select(full, i_shr(x, 16), x);
    ivec quotient = shift_right_each(i_mul_high(x, reciprocal), i_and(i_shr(step, 12), i_set(15)));
    ivec complement = i_sub(i_set(1 << CST_ENTROPY_BITS), frequency);
    return i_add(i_add(x, i_shr(step, 16)), i_mul(quotient, complement));
}

/* Rare, hence apart: the values of the row that have no symbol. */
static __attribute__((noinline)) uint8_t *push_escapes(uint8_t *next, const int32_t *values,
                                                       const ivec symbols[WAY_VECTORS], uint32_t escape)
{
    uint32_t symbol[CST_ENTROPY_WAYS];
    for (int j = 0; j < WAY_VECTORS; j++)
        i_store(symbol + VEC_LANES * j, symbols[j]);
    for (int w = CST_ENTROPY_WAYS - 1; w >= 0; w--)
        if (symbol[w] == escape) {
            next -= 4;
            cst_store_le32(next, (uint32_t)values[w]);
        }
    return next;
}

static void encode_values(cst_entropy_encoder *e, const cst_entropy_encode_table *table, const int32_t *values,
                          uint32_t n)
{
    const encoder_constants c = encoder_prepare(table);
    uint8_t *next = e->next;
    ivec x[WAY_VECTORS];
    CST_UNROLL
    for (int j = 0; j < WAY_VECTORS; j++)
        x[j] = i_load(e->state + VEC_LANES * j);
    for (uint32_t i = n; i > 0; i -= CST_ENTROPY_WAYS) {
        const int32_t *row = values + i - CST_ENTROPY_WAYS;
        ivec symbol[WAY_VECTORS];
        uint32_t escapes = 0;
        CST_UNROLL
        for (int j = 0; j < WAY_VECTORS; j++) {
            symbol[j] = min_unsigned(i_add(i_load(row + VEC_LANES * j), c.largest), c.escape);
            escapes |= mask_bits(mask_equal(symbol[j], c.escape));
        }
        if (__builtin_expect(escapes != 0, 0))
            next = push_escapes(next, row, symbol, (uint32_t)table->escape);
        CST_UNROLL
        for (int j = WAY_VECTORS - 1; j >= 0; j--)
            x[j] = encode_vector(x[j], symbol[j], &c, &next);
    }
    CST_UNROLL
    for (int j = 0; j < WAY_VECTORS; j++)
        i_store(e->state + VEC_LANES * j, x[j]);
    e->next = next;
}

/* Low parts into the stream, high parts to values (entropy_scalar.c: write_low_bits and split). */
static void split_points(const int32_t *points, uint32_t n, uint32_t shift, uint8_t *low_bits, int32_t *values)
{
    const ivec half = i_set(1 << (shift - 1)), mask = i_set((1 << shift) - 1);
    uint32_t last[CST_LANES];
    for (uint32_t part = 0; part < PARTS; part++) {
        lane_writer w = writer_start(low_bits, part);
        for (uint32_t i = VEC_LANES * part; i < n; i += CST_LANES) {
            const ivec centred = i_add(i_load(points + i), half);
            writer_put(&w, i_and(centred, mask), shift);
            i_store(values + i, i_sar_by(centred, shift));
        }
        writer_end(&w, part, last);
    }
    store_last_row(last, n / CST_LANES * shift, low_bits);
}

static bool encode_lanes(cst_entropy_encoder *e, cst_entropy_model m, const int32_t *points, uint32_t n)
{
    if ((size_t)(e->next - e->low) < cst_entropy_block_bound(n, m))
        return false;
    const cst_entropy_encode_table *table = &cst_entropy_encode_tables()[m.table];
    if (m.shift == 0) {
        encode_values(e, table, points, n);
        return true;
    }
    /* The low bits lie below the rows, whose length is not known yet. */
    int32_t values[CST_BLOCK];
    uint8_t low_bits[CST_BLOCK / 8 * CST_ENTROPY_SHIFT_MAX];
    split_points(points, n, m.shift, low_bits, values);
    encode_values(e, table, values, n);
    e->next -= n / 8 * m.shift;
    memcpy(e->next, low_bits, n / 8 * m.shift);
    return true;
}

/* --- decoding --- */

/* One symbol from each of VEC_LANES states; *value is symbol - largest. */
CST_LANE_INLINE ivec decode_vector(ivec x, const uint32_t *slots, const uint8_t **next, ivec *symbol)
{
    const ivec slot = gather(slots, i_and(x, i_set((1 << CST_ENTROPY_BITS) - 1)));
    x = i_add(i_mul(i_shr(x, CST_ENTROPY_BITS), i_and(slot, i_set(0xfff))), i_and(i_shr(slot, 12), i_set(0xfff)));
    *symbol = i_shr(slot, 24);
    const vmask kept = mask_not_below(x, i_set(CST_ENTROPY_LOW));
    const uint32_t low = ~mask_bits(kept) & ((1u << VEC_LANES) - 1);
    x = mask_select(kept, x, i_or(i_shl(x, 16), spread_words(*next, low)));
    *next += 2 * __builtin_popcount(low);
    return x;
}

static __attribute__((noinline)) const uint8_t *take_escapes(const uint8_t *next, const uint8_t *end, int32_t *row,
                                                             int32_t escape)
{
    for (int w = 0; w < CST_ENTROPY_WAYS; w++)
        if (row[w] == escape) {
            if (end - next < 4)
                return NULL;
            row[w] = (int32_t)cst_load_le32(next);
            next += 4;
        }
    return next;
}

/* Rows as long as all the words that one can need are there; returns how many coordinates were done, or UINT32_MAX. */
CST_LANE_INLINE uint32_t decode_rows(cst_entropy_decoder *d, const cst_entropy_decode_table *slots,
                                     const cst_entropy_encode_table *table, int32_t *values, uint32_t n)
{
    const ivec largest = i_set(table->largest), escape = i_set(table->escape);
    const uint8_t *next = d->next, *const end = d->end;
    ivec x[WAY_VECTORS];
    uint32_t i = 0;
    CST_UNROLL
    for (int j = 0; j < WAY_VECTORS; j++)
        x[j] = i_load(d->state + VEC_LANES * j);
    for (; i < n && end - next >= ROW_WORD_BYTES; i += CST_ENTROPY_WAYS) {
        uint32_t escapes = 0;
        CST_UNROLL
        for (int j = 0; j < WAY_VECTORS; j++) {
            ivec symbol;
            x[j] = decode_vector(x[j], slots->slot, &next, &symbol);
            escapes |= mask_bits(mask_equal(symbol, escape));
            i_store(values + i + VEC_LANES * j, i_sub(symbol, largest));
        }
        if (__builtin_expect(escapes != 0, 0)) {
            next = take_escapes(next, end, values + i, table->escape - table->largest);
            if (!next)
                return UINT32_MAX;
        }
    }
    CST_UNROLL
    for (int j = 0; j < WAY_VECTORS; j++)
        i_store(d->state + VEC_LANES * j, x[j]);
    d->next = next;
    return i;
}

/* High parts to points, given the low ones. */
static void join_points(const uint8_t *low_bits, uint32_t n, uint32_t shift, int32_t *values)
{
    const ivec half = i_set(1 << (shift - 1)), mask = i_set((1 << shift) - 1);
    for (uint32_t part = 0; part < PARTS; part++) {
        uint32_t last[CST_LANES];
        lane_reader r = reader_start(low_bits, part, n / CST_LANES * shift, last);
        for (uint32_t i = VEC_LANES * part; i < n; i += CST_LANES) {
            const ivec low = i_and(reader_get(&r, shift), mask);
            i_store(values + i, i_sub(i_or(i_shl_by(i_load(values + i), shift), low), half));
        }
    }
}

static bool decode_lanes(cst_entropy_decoder *d, cst_entropy_model m, int32_t *points, uint32_t n)
{
    const cst_entropy_encode_table *table = &cst_entropy_encode_tables()[m.table];
    const cst_entropy_decode_table *slots = &cst_entropy_decode_tables()[m.table];
    const uint8_t *low_bits = cst_entropy_take_low_bits(d, n, m.shift);
    if (!low_bits)
        return false;
    uint32_t done = decode_rows(d, slots, table, points, n);
    if (done > n)
        return false;
    for (; done < n; done += CST_ENTROPY_WAYS)
        if (!cst_entropy_decode_row(d, slots, table, points + done))
            return false;
    if (m.shift)
        join_points(low_bits, n, m.shift, points);
    return true;
}
#endif
