/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the blocks of a frame (parts.h). */
#include "codec/model.h"
#include "codec/parts.h"

#include <stdlib.h>

static size_t tables_of(const cst_packer *p)
{
    cst_frame_header h = p->header;
    h.requests = 0;
    return CST_FRAME_HEADER + cst_frame_tables(&h);
}

void cst_packer_begin(cst_packer *p, uint8_t *frame, size_t capacity, const cst_frame_header *header,
                      const cst_entropy_kernels *kernels)
{
    p->frame = frame;
    p->capacity = capacity;
    p->header = *header;
    p->header.requests = 0;
    p->kernels = kernels;
    p->streams_bytes = p->in_stream = 0;
    p->dropped = p->reserved = 0;
    p->no_memory = false;
    size_t tables = tables_of(p);
    p->next = frame + tables;
    memset(frame, 0, tables);
}

static size_t used(const cst_packer *p)
{
    return (size_t)(p->next - p->frame) + p->streams_bytes + (size_t)p->header.requests * CST_REQUEST_BYTES;
}

static bool fits(const cst_packer *p, size_t payload)
{
    size_t taken = used(p) + p->reserved;
    return taken <= p->capacity && payload <= p->capacity - taken;
}

uint8_t *cst_packer_room(cst_packer *p, size_t bytes)
{
    if (!fits(p, bytes))
        return NULL;
    p->next += bytes;
    return p->next - bytes;
}

static uint8_t *desc_at(const cst_packer *p, uint32_t part)
{
    return p->frame + CST_FRAME_HEADER + (size_t)4 * part;
}

void cst_packer_set(cst_packer *p, uint32_t part, cst_block_desc desc, cst_checksum check)
{
    cst_writer w = cst_writer_of(desc_at(p, part), 4);
    cst_put(&w, cst_desc_pack(desc), 4);
    size_t before = (size_t)(p->header.kind == CST_FRAME_DOWN ? 8 : 4) * p->header.blocks;
    cst_check_write(p->frame + CST_FRAME_HEADER + before + (size_t)CST_CHECK_BYTES * part, check);
}

void cst_packer_stats(cst_packer *p, uint32_t part, uint16_t s2, uint16_t r2)
{
    cst_writer w = cst_writer_of(p->frame + CST_FRAME_HEADER + (size_t)4 * p->header.blocks + (size_t)4 * part, 4);
    cst_put(&w, s2, 2);
    cst_put(&w, r2, 2);
}

bool cst_packer_has(const cst_packer *p, uint32_t part)
{
    cst_reader r = cst_reader_of(desc_at(p, part), 4);
    return (cst_get32(&r) & 7) != CST_CODE_ABSENT;
}

static bool reserve(uint8_t **buffer, size_t *room, size_t bytes)
{
    if (bytes <= *room)
        return true;
    uint8_t *more = realloc(*buffer, bytes + bytes / 2);
    if (!more)
        return false;
    *buffer = more;
    *room = bytes + bytes / 2;
    return true;
}

/* Encodes the collected blocks, last to first, into the end of the scratch buffer. */
static const uint8_t *encode_stream(cst_packer *p, size_t *length)
{
    size_t bound = CST_ENTROPY_STATES_BYTES + 64;
    cst_entropy_model model[CST_STREAM_BLOCKS];
    for (uint32_t i = 0; i < p->in_stream; i++) {
        cst_reader r = cst_reader_of(desc_at(p, p->stream_part[i]), 4);
        model[i] = cst_model_of_class(cst_get32(&r) >> 3 & 127);
        bound += cst_entropy_block_bound(p->stream_n[i], model[i]);
    }
    if (!reserve(&p->scratch, &p->scratch_bytes, bound))
        return NULL;
    cst_entropy_encoder e;
    cst_entropy_encoder_init(&e, p->scratch, p->scratch_bytes);
    for (uint32_t i = p->in_stream; i-- > 0;)
        if (!p->kernels->encode(&e, model[i], p->points + (size_t)CST_BLOCK * i, p->stream_n[i]))
            return NULL;
    const uint8_t *start = cst_entropy_encoder_finish(&e);
    *length = start ? (size_t)(p->scratch + p->scratch_bytes - start) : 0;
    return start;
}

static void drop_stream(cst_packer *p, size_t length)
{
    for (uint32_t i = 0; i < p->in_stream; i++)
        cst_packer_set(p, p->stream_part[i], (cst_block_desc){0}, (cst_checksum){{0}});
    p->dropped += length + 4;
}

bool cst_packer_flush(cst_packer *p)
{
    if (p->in_stream == 0)
        return !p->no_memory;
    size_t length = 0;
    const uint8_t *stream = encode_stream(p, &length);
    if (!stream || !reserve(&p->streams, &p->streams_room, p->streams_bytes + length + 4))
        p->no_memory = true;
    else if (!fits(p, length + 4))
        drop_stream(p, length);
    else {
        cst_writer w = cst_writer_of(p->streams + p->streams_bytes, length + 4);
        cst_put(&w, length, 4);
        cst_put_bytes(&w, stream, length);
        p->streams_bytes += length + 4;
    }
    p->in_stream = 0;
    return !p->no_memory;
}

int32_t *cst_packer_points(cst_packer *p)
{
    if (!p->points)
        p->points = aligned_alloc(64, sizeof(int32_t) * CST_BLOCK * CST_STREAM_BLOCKS);
    p->no_memory |= !p->points;
    return p->points ? p->points + (size_t)CST_BLOCK * p->in_stream : NULL;
}

void cst_packer_entropy(cst_packer *p, uint32_t part, cst_block_desc desc, cst_checksum check, uint32_t n)
{
    cst_packer_set(p, part, desc, check);
    p->stream_part[p->in_stream] = part;
    p->stream_n[p->in_stream++] = n;
    if (p->in_stream == CST_STREAM_BLOCKS)
        cst_packer_flush(p);
}

bool cst_packer_request(cst_packer *p, cst_request request)
{
    if (used(p) + CST_REQUEST_BYTES > p->capacity)
        return false;
    if (p->header.requests == p->requests_room) {
        uint32_t room = p->requests_room ? 2 * p->requests_room : 64;
        cst_request *more = realloc(p->requests, room * sizeof *more);
        if (!more) {
            p->no_memory = true;
            return false;
        }
        p->requests = more;
        p->requests_room = room;
    }
    p->requests[p->header.requests++] = request;
    return true;
}

bool cst_packer_finish(cst_packer *p)
{
    if (!cst_packer_flush(p))
        return false;
    size_t tables = tables_of(p), payload = (size_t)(p->next - p->frame) - tables;
    size_t moved = (size_t)p->header.requests * CST_REQUEST_BYTES;
    memmove(p->frame + tables + moved, p->frame + tables, payload);
    for (uint32_t i = 0; i < p->header.requests; i++)
        cst_request_write(p->frame + tables + (size_t)CST_REQUEST_BYTES * i, p->requests[i]);
    p->header.payload = tables + moved;
    p->header.used = tables + moved + payload + p->streams_bytes;
    if (p->streams_bytes)
        memcpy(p->frame + tables + moved + payload, p->streams, p->streams_bytes);
    memset(p->frame + p->header.used, 0, p->capacity - (size_t)p->header.used);
    cst_frame_seal(p->frame, &p->header);
    return true;
}

void cst_packer_free(cst_packer *p)
{
    free(p->streams);
    free(p->points);
    free(p->scratch);
    free(p->requests);
    *p = (cst_packer){0};
}
