/* SPDX-License-Identifier: Apache-2.0 */
/* A frame's header as it stands, whatever it says: fuzzers seal damaged frames anew, to get behind the hash. */
#ifndef TESTS_FUZZ_HEADER_H
#define TESTS_FUZZ_HEADER_H
#include "codec/wire.h"

/* Up to `corrected`; the reader stands behind it. */
static inline cst_frame_header fuzz_header(cst_reader *r)
{
    cst_frame_header h = {0};
    cst_take(r, 5);
    h.kind = cst_get8(r);
    h.round = cst_get16(r);
    h.sender = cst_get16(r);
    h.receiver = cst_get16(r);
    h.call = cst_get32(r);
    h.agreement = cst_get64(r);
    h.first_block = cst_get32(r);
    h.blocks = cst_get32(r);
    h.requests = cst_get32(r);
    h.error = cst_get16(r);
    h.corrected = cst_get16(r);
    return h;
}
#endif
