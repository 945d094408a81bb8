/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on the wire. Numbers are little-endian.
 *
 * A message on a data connection is a head, the payload, and a tail:
 *
 *   head, 64 bytes                        tail, 16 bytes
 *    0  magic                              0  magic (u32)
 *    4  tag (u32)                          4  0: whole; 1: cancelled, what came is filling (u32)
 *    8  operation (u64)                    8  XXH64 of the payload if the option `checksum` is on, else 0
 *   16  payload bytes (u64)
 *   24  entry (32 bytes)
 *   56  XXH64 of the 56 bytes before
 *
 * The tail is there so that a send can be cancelled half-way without breaking the connection, and so that half a
 * message is never taken for one.
 *
 * A control connection carries records of 16 bytes, magic, kind (u32 each) and XXH64 of the rest of the record, which
 * for CST_RECORD_NOTICE is followed by a notice of 216 bytes.
 */
#ifndef CST_TRANSPORT_TCP_FRAME_H
#define CST_TRANSPORT_TCP_FRAME_H
#include <coset_transport.h>
#include <stdbool.h>

#define CST_HEAD_BYTES 64
#define CST_TAIL_BYTES 16

typedef struct {
    uint32_t tag;
    uint64_t op, bytes;
    coset_entry entry;
} cst_head;

/* entry NULL: zeroes. */
void cst_head_write(uint32_t tag, uint64_t op, uint64_t bytes, const coset_entry *entry, uint8_t out[CST_HEAD_BYTES]);
/* False if the bytes are no head. */
bool cst_head_read(const uint8_t in[CST_HEAD_BYTES], cst_head *head);

void cst_tail_write(bool cancelled, uint64_t sum, uint8_t out[CST_TAIL_BYTES]);
bool cst_tail_read(const uint8_t in[CST_TAIL_BYTES], bool *cancelled, uint64_t *sum);

#define CST_RECORD_BYTES 16
#define CST_NOTICE_BYTES 216
enum { CST_RECORD_BEAT = 1, CST_RECORD_NOTICE = 2 };

/* Returns the length of the record: CST_RECORD_BYTES, with a notice CST_RECORD_BYTES + CST_NOTICE_BYTES. */
size_t cst_beat_write(uint8_t out[CST_RECORD_BYTES]);
size_t cst_notice_write(const coset_notice *notice, uint8_t out[CST_RECORD_BYTES + CST_NOTICE_BYTES]);
/* What the first `got` bytes are: the length of a whole record (*is_notice tells which, *notice is filled in), 0 if
 * more bytes are needed, -1 if they are no record. The notice's numbers are not judged, but its text is terminated
 * and printable. */
int cst_record_read(const uint8_t *in, size_t got, bool *is_notice, coset_notice *notice);
#endif
