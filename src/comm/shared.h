/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each rank shows the others where ranks share memory: its control area.
 *
 * An operation begins when a rank fills in its slot of that operation and raises the slot's flag to the operation's
 * number. A slot holds the entry record, where the buffers are, and, for small messages, the data itself; so a small
 * all-reduce is one store and N-1 reads.
 *
 * Two slots are enough: a rank raises slot s+2 (the same memory as s) only after operation s+1 is over, and no rank
 * gets through s+1 before every rank has entered it, that is, has left s and will not read slot s again. Only a call with
 * wrong arguments is over before: what follows it waits (cst_shared_enter).
 *
 * `done` is raised when a rank has finished touching the others' memory in an operation (the exit barrier of the paths
 * that read or write peers' buffers directly). It counts these barriers, which all ranks go through alike, not operations:
 * a flag that stays behind by 2^30 numbers looks raised (base/flag.h), and only `entered` moves in every operation.
 */
#ifndef CST_COMM_SHARED_H
#define CST_COMM_SHARED_H
#include "base/flag.h"
#include "comm/entry.h"

/* Largest send buffer that can travel with a slot in a group of `size` (coll/shared.c says what does). The more ranks, the
 * less: all together stay within a few megabytes, since /dev/shm of a container has 64. */
static inline size_t cst_slot_room(int size)
{
    return size <= 8 ? (size_t)256 << 10 : size <= 64 ? (size_t)64 << 10 : (size_t)16 << 10;
}
/* What fits behind the entry record in its cache line. */
#define CST_SLOT_INLINE ((size_t)16)

typedef struct {
    _Alignas(128) _Atomic uint32_t entered;
    uint32_t payload_bytes; /* data in the slot; CST_NO_PAYLOAD: none there */
    coset_entry entry;
    uint8_t inline_data[CST_SLOT_INLINE]; /* payloads of up to CST_SLOT_INLINE bytes: one cache line carries all */
    uint64_t reserved;
    /* second line of the pair */
    coset_location send, recv;
    uint8_t pad[32];
} cst_entry_slot;
#define CST_NO_PAYLOAD UINT32_MAX
_Static_assert(offsetof(cst_entry_slot, send) == 64, "record and small payload fill the first cache line");

/* `size` of the group: whatever a peer has written there, nobody reads past its area. */
static inline int cst_slot_has_payload(const cst_entry_slot *slot, int size)
{
    return slot->payload_bytes <= cst_slot_room(size);
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
    cst_flag leaving; /* 1: this rank has failed or given up, and its memory is out of bounds */
    cst_flag given;   /* pieces that this rank has laid out for the others (coll/bulk_stage.c) */
    cst_flag reduced; /* pieces of its own share that it has summed */
    uint8_t data[];   /* cst_slot_room for each of the two slots */
} cst_control;
#endif
