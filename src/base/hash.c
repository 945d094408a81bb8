/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <endian.h>
#include <string.h>

/* the five primes of the specification */
#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

static uint64_t rotate(uint64_t v, int n)
{
    return v << n | v >> (64 - n);
}

static uint64_t word64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static uint64_t word32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t step(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * P2, 31) * P1;
}

static void block(uint64_t lane[4], const uint8_t *p)
{
    for (int i = 0; i < 4; i++)
        lane[i] = step(lane[i], word64(p + 8 * i));
}

void cst_hash_begin(cst_hash *h, uint64_t seed)
{
    *h = (cst_hash){.lane = {seed + P1 + P2, seed + P2, seed, seed - P1}, .seed = seed};
}

void cst_hash_add(cst_hash *h, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    size_t kept = h->total % 32;
    if (bytes == 0)
        return;
    h->total += bytes;
    if (kept) {
        size_t n = 32 - kept < bytes ? 32 - kept : bytes;
        memcpy(h->rest + kept, p, n);
        if (kept + n < 32)
            return;
        block(h->lane, h->rest);
        p += n;
        bytes -= n;
    }
    uint64_t lane[4];
    memcpy(lane, h->lane, sizeof lane); /* in registers through the loop */
    for (; bytes >= 32; p += 32, bytes -= 32)
        block(lane, p);
    memcpy(h->lane, lane, sizeof lane);
    memcpy(h->rest, p, bytes);
}

static uint64_t join(const cst_hash *h)
{
    if (h->total < 32)
        return h->seed + P5;
    uint64_t v = rotate(h->lane[0], 1) + rotate(h->lane[1], 7) + rotate(h->lane[2], 12) + rotate(h->lane[3], 18);
    for (int i = 0; i < 4; i++)
        v = (v ^ step(0, h->lane[i])) * P1 + P4;
    return v;
}

uint64_t cst_hash_end(const cst_hash *h)
{
    uint64_t v = join(h) + h->total;
    const uint8_t *p = h->rest, *end = p + h->total % 32;
    for (; p + 8 <= end; p += 8)
        v = rotate(v ^ step(0, word64(p)), 27) * P1 + P4;
    if (p + 4 <= end) {
        v = rotate(v ^ word32(p) * P1, 23) * P2 + P3;
        p += 4;
    }
    for (; p < end; p++)
        v = rotate(v ^ *p * P5, 11) * P1;
    v = (v ^ v >> 33) * P2;
    v = (v ^ v >> 29) * P3;
    return v ^ v >> 32;
}

uint64_t cst_hash64(uint64_t seed, const void *data, size_t bytes)
{
    cst_hash h;
    cst_hash_begin(&h, seed);
    cst_hash_add(&h, data, bytes);
    return cst_hash_end(&h);
}
