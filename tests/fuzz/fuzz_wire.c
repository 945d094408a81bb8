/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile frames and saved states: whatever comes, an error or a meaning, never a read out of bounds. */
#include "fuzz/header.h"
#include "codec/wire.h"
#include "mean/saved.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives a frame valid hashes, so that fuzzing gets behind them. */
static void reseal(uint8_t *frame, size_t size)
{
    cst_reader r = cst_reader_of(frame, size);
    cst_frame_header h = fuzz_header(&r);
    h.payload = CST_FRAME_HEADER + cst_frame_tables(&h);
    h.used = size;
    if (h.kind == CST_FRAME_STATE && size >= CST_BODY_AT)
        cst_body_seal(frame, &h, size, size);
    else if (h.payload <= size)
        cst_frame_seal(frame, &h);
}

/* What can be loaded can be saved, and loaded again. */
static void load(const uint8_t *frame, size_t size)
{
    cst_frame_header h;
    if (cst_frame_open(frame, size, &h, NULL))
        return;
    cst_track track = {0};
    cst_saved with = {.agreement = h.agreement};
    coset_status status = cst_saved_read(&track, &with, frame, size, NULL);
    size_t bytes = status ? 0 : cst_saved_bytes(&track, with.hosts_bytes);
    uint8_t *again = malloc(bytes + 1);
    if (!again || (!status && (bytes != h.used || cst_saved_write(&track, &with, again, bytes) != COSET_OK ||
                               cst_saved_read(&track, &with, again, bytes, NULL) != COSET_OK)))
        abort();
    free(again);
    cst_track_free(&track);
}

static void look_at(const uint8_t *frame, size_t size)
{
    cst_frame_header h;
    if (cst_frame_open(frame, size, &h, NULL))
        return;
    const uint8_t *tables = frame + CST_FRAME_HEADER;
    bool described = h.kind == CST_FRAME_UP || h.kind == CST_FRAME_DOWN;
    for (uint32_t b = 0; described && b < h.blocks; b++) {
        cst_reader r = cst_reader_of(tables + 4 * (size_t)b, 4);
        cst_block_desc d;
        if (cst_desc_unpack(cst_get32(&r), &d) && cst_desc_pack(d) >> 10 != d.step)
            abort();
    }
    cst_request request;
    for (uint32_t i = 0; i < h.requests; i++)
        cst_request_read(frame + h.payload - CST_REQUEST_BYTES * (size_t)(h.requests - i), &request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    look_at(data, size);
    load(data, size);
    if (size >= CST_FRAME_HEADER) {
        uint8_t *copy = malloc(size);
        if (!copy)
            abort();
        memcpy(copy, data, size);
        reseal(copy, size);
        look_at(copy, size);
        load(copy, size);
        free(copy);
    }
    return 0;
}
