/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory through which the ranks of one host (or one process) pass messages.
 *
 * Every rank has one area, which all others can read and write:
 *
 *     post head | left[size] | slots | block flags | rings, one per sender | stage blocks
 *
 * Ring s of area r carries what s says to r. It is a circle of cells; the producer fills a cell and then writes its
 * sequence number, the consumer sees cell p when it holds sequence p + 1, and tells in `consumed` how far it has come.
 * Each word has one writer, so there is nothing to lock. The sequence number and the description of a message share a
 * cache line, so a small message costs one line that travels, or two.
 *
 * Slots and stage blocks of area r belong to messages that r sends:
 * - a slot is the state of one offered message (larger than a cell), driven by both ends: see slot_state;
 * - a stage block is a piece of memory into which r copies what the receiver cannot read where it lies.
 *
 * In the shm transport a broken peer may have written anything here: whoever reads a value checks it before use.
 */
#ifndef CST_TRANSPORT_CHANNEL_LAYOUT_H
#define CST_TRANSPORT_CHANNEL_LAYOUT_H
#include <coset_transport.h>
#include <stdatomic.h>

enum {
    CST_LINE = 128, /* processors fetch cache lines in pairs */
    CST_CELL_PAYLOAD = 4096,
    CST_SLOTS = 256 /* offers under way per sender; more wait in a queue */
};

typedef enum {
    CST_CELL_EAGER = 1, /* a message with its payload in the cell */
    CST_CELL_BLOCK,     /* a message with its payload in stage block `block` */
    CST_CELL_OFFER,     /* a message described by `pieces` pieces in the payload; its state is in slot `slot` */
    CST_CELL_DATA       /* `length` bytes of the offered message `slot`, in stage block `block` */
} cst_cell_kind;

/* What a cell says; 64 bytes. */
typedef struct {
    uint32_t sequence; /* the cell's, see cst_cell */
    uint8_t kind;
    uint8_t pieces;  /* OFFER: cst_piece in the payload; 0: nothing that the receiver could reach */
    uint16_t index;  /* BLOCK: stage block. OFFER, DATA: slot */
    uint32_t length; /* EAGER, BLOCK, DATA: bytes. OFFER: generation of the slot */
    uint32_t tag;    /* DATA: generation of the slot */
    uint64_t op;     /* DATA: stage block */
    uint64_t total;  /* bytes of the message */
    coset_entry entry;
} cst_head;
_Static_assert(sizeof(cst_head) == 64, "a cell's head is one cache line");

/* Where a part of an offered message lies. */
typedef struct {
    coset_location at;
    uint64_t bytes;
} cst_piece;
enum { CST_PIECES = CST_CELL_PAYLOAD / sizeof(cst_piece) };
/* A location kind of our own, in one address space only: offset is the address of an array of `segment` iovecs. */
enum { CST_LOC_IOV = 255 };

typedef struct {
    union {
        _Alignas(64) _Atomic uint32_t sequence;
        cst_head head;
    };
    unsigned char payload[CST_CELL_PAYLOAD];
} cst_cell;

typedef struct {
    _Alignas(CST_LINE) _Atomic uint32_t consumed; /* written by the receiver */
    _Alignas(CST_LINE) cst_cell cells[];          /* written by the sender */
} cst_ring;

/*
 * State of an offer: generation << 3 | slot_state. The sender writes OFFERED before it tells; from there
 *     OFFERED -> CLAIMED -> DONE   the receiver copies, then the sender's message is complete
 *     OFFERED -> STREAM            the receiver cannot reach the memory: the sender sends it through stage blocks
 *     OFFERED -> CANCELLED         the sender took it back
 *     CLAIMED -> CANCELLED         the same, and the receiver has stopped in the middle of its copy
 * Each step is a compare-and-exchange on both sides, so that a cancelled message is never taken for one.
 */
typedef enum {
    CST_SLOT_FREE = 0,
    CST_SLOT_OFFERED,
    CST_SLOT_CLAIMED,
    CST_SLOT_DONE,
    CST_SLOT_STREAM,
    CST_SLOT_CANCELLED
} cst_slot_state;
typedef struct {
    _Alignas(64) _Atomic uint32_t word;
} cst_word;
static inline uint32_t cst_slot_word(uint32_t generation, cst_slot_state state)
{
    return generation << 3 | (uint32_t)state;
}

typedef struct {
    _Alignas(CST_LINE) _Atomic uint32_t sleeping; /* the owner sleeps or is about to: who makes work for it wakes it */
    _Alignas(CST_LINE) _Atomic uint32_t bell;     /* what it sleeps on, where it sleeps in a futex (base/flag.h) */
} cst_post;

/* Sizes and offsets within an area; a function of the arguments only, so equal on all ranks. */
typedef struct {
    int size;
    uint32_t cells;  /* per ring, a power of two */
    uint32_t blocks; /* stage blocks per rank */
    size_t block_bytes;
    size_t ring_bytes;
    size_t left, slots, block_flags, rings, stage; /* offsets */
    size_t bytes;                                  /* of an area: a multiple of 4096 */
} cst_layout;
cst_layout cst_layout_for(int size, uint32_t blocks, size_t block_bytes);

/* Has peer p left the memory of the area's owner? (destroy) */
static inline cst_word *cst_left(const cst_layout *l, char *area, int p)
{
    return (cst_word *)(area + l->left) + p;
}
static inline cst_word *cst_slot(const cst_layout *l, char *area, uint32_t slot)
{
    return (cst_word *)(area + l->slots) + slot;
}
/* 1: block holds something that its reader has not taken out yet. */
static inline cst_word *cst_block_flag(const cst_layout *l, char *area, uint32_t block)
{
    return (cst_word *)(area + l->block_flags) + block;
}
static inline char *cst_block(const cst_layout *l, char *area, uint32_t block)
{
    return area + l->stage + block * l->block_bytes;
}
static inline cst_ring *cst_ring_from(const cst_layout *l, char *area, int sender)
{
    return (cst_ring *)(area + l->rings + (size_t)sender * l->ring_bytes);
}
#endif
