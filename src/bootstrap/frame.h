/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What root and ranks say to each other once the hellos are done: a head of 24 bytes, then `bytes` of payload.
 *
 *    0  kind (u32)   4  number of the gathering, 0 is the first (u32)   8  bytes (u64)   16  magic "cosetbs\n"
 *
 * Numbers are little-endian.
 */
#ifndef CST_BOOTSTRAP_FRAME_H
#define CST_BOOTSTRAP_FRAME_H
#include <coset.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CST_FRAME_BYTES 24

enum {
    CST_FRAME_JOINED = 1, /* root: all ranks have joined */
    CST_FRAME_PART = 2,   /* rank: its part of a gathering */
    CST_FRAME_ALL = 3,    /* root: the parts of all */
    CST_FRAME_FAILURE = 4 /* root: a cst_failure; the last frame */
};

typedef struct {
    uint32_t kind, number;
    uint64_t bytes;
} cst_frame;

void cst_frame_write(const cst_frame *frame, uint8_t out[CST_FRAME_BYTES]);
/* False if the bytes are no frame. */
bool cst_frame_read(const uint8_t in[CST_FRAME_BYTES], cst_frame *frame);

/* An error as bytes: status and peer (i32 each), then the text with its zero. */
#define CST_FAILURE_BYTES (8 + sizeof((coset_error *)0)->text)
void cst_failure_write(const coset_error *error, uint8_t out[CST_FAILURE_BYTES]);
/* False if the bytes make no sense. */
bool cst_failure_read(const uint8_t in[CST_FAILURE_BYTES], coset_error *error);
#endif
