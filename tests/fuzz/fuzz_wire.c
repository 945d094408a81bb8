/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile frames and saved states: whatever comes, an error or a meaning, never a read out of bounds. */
#include "fuzz/header.h"
#include "codec/wire.h"
#include "mean/saved.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives a frame a valid hash, so that fuzzing gets behind it. */
static void reseal(uint8_t *frame, size_t size)
{
    cst_reader r = cst_reader_of(frame, size);
    cst_frame_header h = fuzz_header(&r);
    h.payload = CST_FRAME_HEADER + cst_frame_tables(&h);
    h.used = size;
    if (h.payload <= size)
        cst_frame_seal(frame, &h);
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
    cst_track track = {0};
    cst_saved with = {0};
    cst_saved_read(&track, &with, data, size, NULL);
    if (size >= CST_FRAME_HEADER) {
        uint8_t *copy = malloc(size);
        if (!copy)
            abort();
        memcpy(copy, data, size);
        reseal(copy, size);
        look_at(copy, size);
        with.agreement = 0;
        cst_saved_read(&track, &with, copy, size, NULL);
        free(copy);
    }
    cst_track_free(&track);
    return 0;
}
