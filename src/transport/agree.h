/* SPDX-License-Identifier: Apache-2.0 */
/* A collective step that every rank either completes or does not. */
#ifndef CST_TRANSPORT_AGREE_H
#define CST_TRANSPORT_AGREE_H
#include <coset_transport.h>

/* Where a gathering of `bytes` a rank leaves what it has got. A rank that is out of memory must take part in every
 * gathering that the others expect, to tell them: so small groups need no memory for it. */
enum { CST_ROOM_BYTES = 8192 };
typedef struct {
    void *memory;
    _Alignas(16) unsigned char own[CST_ROOM_BYTES];
} cst_room;
/* NULL: the group is large, and there is no memory. Then the caller has to leave without a word. */
void *cst_room_open(cst_room *room, int size, size_t bytes);
void cst_room_close(cst_room *room);

/* Exchanges the outcome of the own part of `what` and a value that must be equal on all ranks. OK if every rank has OK
 * and the same value. Else: the own status if that is no OK (*why is left as it is), the first failing rank's status,
 * or MISMATCH; *why names the rank. */
coset_status cst_agree(const coset_oob *oob, const char *what, coset_status mine, uint64_t value, int timeout_ms,
                       coset_error *why);
#endif
