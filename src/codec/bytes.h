/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Little-endian bytes, read and written through cursors that know where the buffer ends.
 *
 * A reader that runs past its end gives zeros from then on and remembers it (`bad`); a writer drops what does not fit
 * and remembers it (`full`). So a parser reads a whole structure and asks once.
 */
#ifndef CST_CODEC_BYTES_H
#define CST_CODEC_BYTES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at, *end;
    bool bad;
} cst_reader;

typedef struct {
    uint8_t *at, *end;
    bool full;
} cst_writer;

static inline cst_reader cst_reader_of(const void *bytes, size_t n)
{
    return (cst_reader){(const uint8_t *)bytes, (const uint8_t *)bytes + n, false};
}
static inline cst_writer cst_writer_of(void *bytes, size_t n)
{
    return (cst_writer){(uint8_t *)bytes, (uint8_t *)bytes + n, false};
}
/* The next n bytes, or NULL (and bad) if there are not so many. */
static inline const uint8_t *cst_take(cst_reader *r, size_t n)
{
    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        return NULL;
    }
    r->at += n;
    return r->at - n;
}
static inline uint64_t cst_get(cst_reader *r, int bytes)
{
    const uint8_t *p = cst_take(r, (size_t)bytes);
    uint64_t v = 0;
    for (int i = 0; p && i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}
static inline uint8_t cst_get8(cst_reader *r)
{
    return (uint8_t)cst_get(r, 1);
}
static inline uint16_t cst_get16(cst_reader *r)
{
    return (uint16_t)cst_get(r, 2);
}
static inline uint32_t cst_get32(cst_reader *r)
{
    return (uint32_t)cst_get(r, 4);
}
static inline uint64_t cst_get64(cst_reader *r)
{
    return cst_get(r, 8);
}
static inline float cst_get_f32(cst_reader *r)
{
    uint32_t bits = cst_get32(r);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline double cst_get_f64(cst_reader *r)
{
    uint64_t bits = cst_get64(r);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Room for n bytes, or NULL (and full). */
static inline uint8_t *cst_room(cst_writer *w, size_t n)
{
    if (w->full || (size_t)(w->end - w->at) < n) {
        w->full = true;
        return NULL;
    }
    w->at += n;
    return w->at - n;
}
static inline void cst_put(cst_writer *w, uint64_t v, int bytes)
{
    uint8_t little[8];
    for (int i = 0; i < 8; i++)
        little[i] = (uint8_t)(v >> (8 * i));
    if (cst_room(w, (size_t)bytes))
        memcpy(w->at - bytes, little, (size_t)bytes);
}
static inline void cst_put_f32(cst_writer *w, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    cst_put(w, bits, 4);
}
static inline void cst_put_f64(cst_writer *w, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    cst_put(w, bits, 8);
}
static inline void cst_put_bytes(cst_writer *w, const void *bytes, size_t n)
{
    uint8_t *p = cst_room(w, n);
    if (p && n)
        memcpy(p, bytes, n);
}
#endif
