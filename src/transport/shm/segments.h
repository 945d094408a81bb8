/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: memory of coset_alloc. A segment is one piece of anonymous memory with a part for every rank, mapped whole
 * in every process; its number is the same everywhere, since allocating is collective.
 */
#ifndef CST_TRANSPORT_SHM_SEGMENTS_H
#define CST_TRANSPORT_SHM_SEGMENTS_H
#include <coset_transport.h>

typedef struct {
    char *base;    /* NULL: no segment of this number */
    size_t bytes;  /* of each rank's part */
    size_t stride; /* from one rank's part to the next */
    int size;
} cst_segment;

/* The own part of a segment. */
typedef struct {
    uintptr_t start, end;
    uint32_t number;
} cst_own_range;

typedef struct {
    int rank, size;
    cst_segment *table; /* by number */
    uint32_t count;
    cst_own_range *own; /* sorted by start */
    uint32_t own_count;
    uint32_t last; /* index in own of the last hit */
} cst_segments;

void cst_segments_init(cst_segments *s, int rank, int size);
void cst_segments_free(cst_segments *s);

/* The number that the next segment will have: the lowest that is free. */
uint32_t cst_segments_next(const cst_segments *s);
/* Bytes of the whole segment for parts of `bytes`; 0 on overflow. *stride is set. */
size_t cst_segment_bytes(int size, size_t bytes, size_t *stride);
/* Maps fd as segment `number` and populates the own part. MEMORY. fd stays the caller's. */
coset_status cst_segments_add(cst_segments *s, uint32_t number, int fd, size_t bytes, void **ptr, coset_error *why);
/* Maps the others' pages, which exist by now. */
void cst_segments_touch_all(cst_segments *s, uint32_t number);
void cst_segments_remove(cst_segments *s, uint32_t number);
/* The number of the segment whose own part starts at ptr; -1 if there is none. */
int64_t cst_segments_find(const cst_segments *s, const void *ptr);

/* As in the contract: the own memory's location (kind NONE if it is in no segment), and a pointer to a peer's. */
coset_location cst_segments_locate(cst_segments *s, const void *ptr, size_t bytes);
void *cst_segments_map(const cst_segments *s, int peer, const coset_location *at, size_t bytes);
#endif
