/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry record: what one rank says about the operation it has entered. Equal on all ranks, or the ranks disagree
 * and every one of them gets COSET_ERR_MISMATCH. In shared memory it lies beside the entry flag (shared.h); over
 * messages it rides in each message's header. So the check is always on and costs no message of its own.
 */
#ifndef CST_COMM_ENTRY_H
#define CST_COMM_ENTRY_H
#include "comm/call.h"

#include <coset_transport.h>

/* Layout of coset_entry.bytes, host byte order (ranks of different byte order refuse each other at creation). */
typedef struct {
    uint64_t sequence; /* operation number on the communicator; for send and receive: number within the pair */
    uint64_t count;
    uint8_t kind, dtype, op, algorithm;
    int32_t root;     /* -1 where there is none */
    uint32_t options; /* hash of what else must agree: codec parameters, memory path */
    uint32_t version; /* COSET_WIRE_VERSION */
} cst_entry;
_Static_assert(sizeof(cst_entry) == sizeof(coset_entry), "the transport carries exactly one record");

/* The record of `call` as operation `sequence`. Send and receive give the same record. */
coset_entry cst_entry_make(const cst_call *call, uint64_t sequence);
static inline int cst_entry_equal(const coset_entry *a, const coset_entry *b)
{
    return __builtin_memcmp(a, b, sizeof *a) == 0;
}
/* One line that names both ranks and both values of the first field that differs. */
void cst_entry_explain(int rank_a, const coset_entry *a, int rank_b, const coset_entry *b, char *text, size_t size);
#endif
