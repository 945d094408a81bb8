/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks inside a frame (UP or DOWN), read and written. docs/wire-format.md has the layout:
 *
 *     header | descriptors, 4 bytes each | statistics, 4 each (DOWN) | checks, 16 each | requests, 8 each (DOWN)
 *     payloads of all blocks but the entropy-coded, in order | streams: u32 length, bytes; 32 entropy-coded blocks each
 *
 * In DOWN frames the payload of a block with code Z or E8 begins with its units' classes.
 */
#ifndef CST_CODEC_PARTS_H
#define CST_CODEC_PARTS_H
#include "codec/block.h"
#include "codec/wire.h"

enum { CST_STREAM_BLOCKS = 32 };

/* What the reader must know about a block beforehand. */
typedef struct {
    uint32_t n, count;
} cst_part_size;

typedef struct {
    cst_block_desc desc;
    uint16_t s2, r2; /* DOWN */
    uint32_t n;
    cst_checksum check;
    const uint8_t *classes; /* DOWN, Z and E8: nibbles; else NULL */
    const uint8_t *payload; /* NULL if there is none, or it is in a stream */
    uint32_t ordinal;       /* ENTROPY: among the frame's entropy-coded blocks */
} cst_part;

typedef struct {
    cst_frame_header header;
    cst_part *parts;         /* header.blocks */
    const uint8_t *requests; /* header.requests entries */
    uint32_t nentropy;
    uint32_t *entropy;       /* ordinal -> part */
    cst_entropy_decoder *at; /* the decoder as it is before each entropy-coded block */
    uint8_t *known;          /* whether `at` is, or the stream is broken before it */
} cst_parts;

/* Takes a frame of kind UP or DOWN apart. `sizes` has header.blocks entries: the caller checks header.blocks before.
 * `element`: bytes of an exact element. CORRUPT, MEMORY; nothing to free on failure. The frame must outlive `parts`. */
coset_status cst_parts_read(cst_parts *parts, const uint8_t *frame, const cst_frame_header *header,
                            const cst_part_size *sizes, size_t element, coset_error *why);
void cst_parts_free(cst_parts *parts);
/* Integers of an entropy-coded block; in any order, cheapest in ascending order. False if its stream is damaged. */
bool cst_parts_points(cst_parts *parts, const cst_entropy_kernels *kernels, uint32_t part, int32_t *points);

/* ---- writing ---- */

typedef struct {
    uint8_t *frame;
    size_t capacity;
    cst_frame_header header;
    const cst_entropy_kernels *kernels;
    uint8_t *next;    /* end of the payloads so far */
    uint8_t *streams; /* finished streams, kept apart until the end */
    size_t streams_bytes, streams_room;
    int32_t *points; /* of the stream being collected */
    uint32_t stream_part[CST_STREAM_BLOCKS], stream_n[CST_STREAM_BLOCKS], in_stream;
    uint8_t *scratch;
    size_t scratch_bytes;
    cst_request *requests;
    uint32_t requests_room;
    size_t dropped;  /* bytes of streams that did not fit */
    size_t reserved; /* kept free for requests to come; the caller's to set after begin */
    bool no_memory;
} cst_packer;

/* Begins a frame whose header has kind and blocks set; all blocks are ABSENT at first. The packer keeps its buffers from
 * frame to frame; it starts as {0}. */
void cst_packer_begin(cst_packer *p, uint8_t *frame, size_t capacity, const cst_frame_header *header,
                      const cst_entropy_kernels *kernels);
/* Room for a payload of so many bytes, or NULL if it does not fit. */
uint8_t *cst_packer_room(cst_packer *p, size_t bytes);
void cst_packer_set(cst_packer *p, uint32_t part, cst_block_desc desc, cst_checksum check);
void cst_packer_stats(cst_packer *p, uint32_t part, uint16_t s2, uint16_t r2);
/* An entropy-coded block: ascending parts; its n integers must be where cst_packer_points says. What does not fit is ABSENT
 * in the end, and counted in `dropped`. points: room for the next block's integers; NULL: no memory. */
int32_t *cst_packer_points(cst_packer *p);
void cst_packer_entropy(cst_packer *p, uint32_t part, cst_block_desc desc, cst_checksum check, uint32_t n);
/* False if there is no room for it. */
bool cst_packer_request(cst_packer *p, cst_request request);
/* Is the part there (not ABSENT)? */
bool cst_packer_has(const cst_packer *p, uint32_t part);
/* Ends the stream under way; completes and seals the frame; clears its unused end. False: no memory. */
bool cst_packer_flush(cst_packer *p);
bool cst_packer_finish(cst_packer *p);
void cst_packer_free(cst_packer *p);
#endif
