/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/segments.h"

#include "base/alloc.h"
#include "base/error.h"
#include "transport/shm/pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void cst_segments_init(cst_segments *s, int rank, int size)
{
    *s = (cst_segments){.rank = rank, .size = size};
}

void cst_segments_free(cst_segments *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->table[i].base)
            cst_segments_remove(s, i);
    free(s->table);
    free(s->own);
    cst_segments_init(s, s->rank, s->size);
}

uint32_t cst_segments_next(const cst_segments *s)
{
    uint32_t i = 0;
    while (i < s->count && s->table[i].base)
        i++;
    return i;
}

size_t cst_segment_bytes(int size, size_t bytes, size_t *stride)
{
    /* parts that can hold huge pages start at one */
    size_t unit = bytes >= (size_t)8 << 20 ? (size_t)2 << 20 : 4096, total;
    if (bytes > SIZE_MAX / 2)
        return 0;
    *stride = cst_round_up(bytes ? bytes : 1, unit);
    return cst_size_mul(*stride, (size_t)size, &total) && total <= SIZE_MAX / 2 ? total : 0;
}

static bool make_room(cst_segments *s, uint32_t number)
{
    if (number < s->count)
        return true;
    cst_segment *table = realloc(s->table, (number + 1) * sizeof *table);
    if (!table)
        return false;
    s->table = table;
    cst_own_range *own = realloc(s->own, (number + 1) * sizeof *own);
    if (!own)
        return false;
    s->own = own;
    memset(&s->table[s->count], 0, (number + 1 - s->count) * sizeof *s->table);
    s->count = number + 1;
    return true;
}

static void add_own(cst_segments *s, uint32_t number)
{
    const cst_segment *g = &s->table[number];
    uintptr_t start = (uintptr_t)g->base + (size_t)s->rank * g->stride;
    uint32_t i = s->own_count++;
    for (; i > 0 && s->own[i - 1].start > start; i--)
        s->own[i] = s->own[i - 1];
    s->own[i] = (cst_own_range){start, start + g->bytes, number};
    s->last = i;
}

coset_status cst_segments_add(cst_segments *s, uint32_t number, int fd, size_t bytes, void **ptr, coset_error *why)
{
    cst_segment g = {.bytes = bytes, .size = s->size};
    size_t total = cst_segment_bytes(s->size, bytes, &g.stride);
    if (!make_room(s, number))
        return cst_fail(why, COSET_ERR_MEMORY, -1, "coset_alloc: out of memory");
    coset_status status = cst_pages_map(fd, total, &g.base, why);
    if (status)
        return status;
    size_t at = (size_t)s->rank * g.stride;
    status = cst_pages_populate(g.base + at, g.stride, fd, at, 1, why);
    if (status) {
        munmap(g.base, total);
        return status;
    }
    s->table[number] = g;
    add_own(s, number);
    *ptr = g.base + at;
    return COSET_OK;
}

void cst_segments_touch_all(cst_segments *s, uint32_t number)
{
    const cst_segment *g = &s->table[number];
    coset_error ignored = COSET_ERROR_INIT; /* what is not mapped now is mapped by the first access */
    cst_pages_populate(g->base, g->stride * (size_t)s->size, -1, 0, 0, &ignored);
}

void cst_segments_remove(cst_segments *s, uint32_t number)
{
    cst_segment *g = &s->table[number];
    munmap(g->base, g->stride * (size_t)g->size);
    g->base = NULL;
    uint32_t i = 0;
    while (s->own[i].number != number)
        i++;
    memmove(&s->own[i], &s->own[i + 1], (--s->own_count - i) * sizeof *s->own);
    s->last = 0;
}

int64_t cst_segments_find(const cst_segments *s, const void *ptr)
{
    for (uint32_t i = 0; i < s->own_count; i++)
        if (s->own[i].start == (uintptr_t)ptr)
            return s->own[i].number;
    return -1;
}

/* The last range that starts at or before p; -1 if there is none. */
static int64_t range_before(const cst_segments *s, uintptr_t p)
{
    uint32_t low = 0, high = s->own_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->own[middle].start <= p)
            low = middle + 1;
        else
            high = middle;
    }
    return (int64_t)low - 1;
}

static bool holds(const cst_own_range *r, uintptr_t p, size_t bytes)
{
    return p >= r->start && p <= r->end && bytes <= r->end - p;
}

coset_location cst_segments_locate(cst_segments *s, const void *ptr, size_t bytes)
{
    uintptr_t p = (uintptr_t)ptr;
    if (!s->own_count)
        return (coset_location){COSET_LOC_NONE, 0, 0};
    if (!holds(&s->own[s->last], p, bytes)) {
        int64_t i = range_before(s, p);
        if (i < 0 || !holds(&s->own[i], p, bytes))
            return (coset_location){COSET_LOC_NONE, 0, 0};
        s->last = (uint32_t)i;
    }
    const cst_own_range *r = &s->own[s->last];
    return (coset_location){COSET_LOC_SEGMENT, r->number, p - r->start};
}

void *cst_segments_map(const cst_segments *s, int peer, const coset_location *at, size_t bytes)
{
    if (at->kind != COSET_LOC_SEGMENT || at->segment >= s->count || peer < 0 || peer >= s->size)
        return NULL;
    const cst_segment *g = &s->table[at->segment];
    if (!g->base || at->offset > g->bytes || bytes > g->bytes - at->offset)
        return NULL;
    return g->base + (size_t)peer * g->stride + at->offset;
}
