/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/frame.h"

#include "base/error.h"

#include <endian.h>
#include <string.h>

static const uint8_t magic[8] = {'c', 'o', 's', 'e', 't', 'b', 's', '\n'};

void cst_frame_write(const cst_frame *frame, uint8_t out[CST_FRAME_BYTES])
{
    uint32_t kind = htole32(frame->kind), number = htole32(frame->number);
    uint64_t bytes = htole64(frame->bytes);
    memcpy(out, &kind, 4);
    memcpy(out + 4, &number, 4);
    memcpy(out + 8, &bytes, 8);
    memcpy(out + 16, magic, sizeof magic);
}

bool cst_frame_read(const uint8_t in[CST_FRAME_BYTES], cst_frame *frame)
{
    memcpy(&frame->kind, in, 4);
    memcpy(&frame->number, in + 4, 4);
    memcpy(&frame->bytes, in + 8, 8);
    frame->kind = le32toh(frame->kind);
    frame->number = le32toh(frame->number);
    frame->bytes = le64toh(frame->bytes);
    return !memcmp(in + 16, magic, sizeof magic);
}

void cst_failure_write(const coset_error *error, uint8_t out[CST_FAILURE_BYTES])
{
    uint32_t status = htole32((uint32_t)error->status), peer = htole32((uint32_t)error->peer);
    memset(out, 0, CST_FAILURE_BYTES);
    memcpy(out, &status, 4);
    memcpy(out + 4, &peer, 4);
    memcpy(out + 8, error->text, strnlen(error->text, sizeof error->text - 1));
}

/* Only what a root may report is taken for its report. */
static bool may_be_reported(uint32_t status)
{
    return status == COSET_ERR_PEER || status == COSET_ERR_LATE || status == COSET_ERR_MISMATCH ||
           status == COSET_ERR_SYSTEM || status == COSET_ERR_CORRUPT || status == COSET_ERR_MEMORY;
}

bool cst_failure_read(const uint8_t in[CST_FAILURE_BYTES], coset_error *error)
{
    uint32_t status, peer;
    char text[sizeof error->text];
    memcpy(&status, in, 4);
    memcpy(&peer, in + 4, 4);
    memcpy(text, in + 8, sizeof text);
    status = le32toh(status);
    if (!may_be_reported(status) || !memchr(text, 0, sizeof text))
        return false;
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = '?'; /* it may end on a terminal */
    cst_fail(error, (coset_status)status, (int32_t)le32toh(peer), "%s", text);
    return true;
}
