/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each rank shows the others where ranks share memory: its control area.
 *
 * An operation begins when a rank fills in its slot of that operation and raises the slot's flag to the operation's
 * number. A slot holds the entry record, where the buffers are, and, for small messages, the data itself; so a small
 * all-reduce is one store and N-1 reads.
 *
 * Two slots are enough: a rank raises slot s+2 (the same memory as s) only after operation s+1 is over, and no rank
 * gets through s+1 before every rank has entered it, that is, has left s and will not read slot s again.
 *
 * `done` is raised when a rank has finished touching the others' memory in an operation (the exit barrier of the paths
 * that read or write peers' buffers directly).
 */
#ifndef CST_COMM_SHARED_H
#define CST_COMM_SHARED_H
#include "base/flag.h"
#include "comm/entry.h"

/* Largest send buffer that travels inside the slot. Measured: beyond, direct reads (mapped memory) or bulk copies win. */
#define CST_SLOT_PAYLOAD ((size_t)16 << 10)
/* What fits behind the entry record in its cache line. */
#define CST_SLOT_INLINE ((size_t)16)

typedef struct {
    _Alignas(128) _Atomic uint32_t entered;
    uint32_t payload_bytes; /* data in the slot; UINT32_MAX: none there */
    coset_entry entry;
    uint8_t inline_data[CST_SLOT_INLINE]; /* payloads of up to CST_SLOT_INLINE bytes: one cache line carries all */
    uint64_t reserved;
    /* second line of the pair */
    coset_location send, recv;
    uint8_t pad[32];
    uint8_t data[CST_SLOT_PAYLOAD];
} cst_entry_slot;
_Static_assert(offsetof(cst_entry_slot, send) == 64, "record and small payload fill the first cache line");

static inline int cst_slot_has_payload(const cst_entry_slot *slot)
{
    return slot->payload_bytes <= CST_SLOT_PAYLOAD;
}
static inline int cst_location_mapped(const coset_location *l)
{
    return l->kind == COSET_LOC_SEGMENT || l->kind == COSET_LOC_ADDRESS;
}

/* A rank that has given up fills its records with these bytes: whoever comes later must not take it for a participant. */
#define CST_GAVE_UP 0xff

typedef struct {
    cst_entry_slot slot[2];
    cst_flag done;
    cst_flag busy;    /* odd while this rank touches the private memory of others */
    cst_flag leaving; /* 1: this rank has been poisoned and its memory is out of bounds */
    cst_flag given;   /* pieces that this rank has laid out for the others (coll/bulk.c) */
    cst_flag reduced; /* pieces of its own share that it has summed */
} cst_control;
#endif
