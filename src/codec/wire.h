/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of the compressed mean, as bytes (docs/wire-format.md has the diagrams and is the specification).
 *
 * A frame is a header of 80 bytes, tables (one entry per block: descriptor, statistics, check), and a payload. Every
 * length is checked against the buffer before it is used, every enumeration against its range, unused bits against
 * zero; header and tables carry a 64-bit hash. What passes may still be wrong in the payload: that is what the blocks'
 * own checksums are for.
 */
#ifndef CST_CODEC_WIRE_H
#define CST_CODEC_WIRE_H
#include "codec/bytes.h"

#include <coset.h>

enum { CST_WIRE_FORMAT = 6, CST_FRAME_HEADER = 80, CST_FRAME_CHECKED = 72, CST_TO_ALL = 0xFFFF };

typedef enum {
    CST_FRAME_SKETCH = 1, /* a few rotated coordinates per block, to the owner */
    CST_FRAME_STATS = 2,  /* what the owner makes of the sketches, to all */
    CST_FRAME_UP = 3,     /* codes of a sender's blocks, to their owner */
    CST_FRAME_DOWN = 4,   /* codes of the blocks' means, from their owner to all */
    CST_FRAME_VECTOR = 5, /* one vector through a codec */
    CST_FRAME_STATE = 6,  /* a saved coset_mean */
    CST_FRAME_COLOURS = 7 /* star and tree: a vector's colours, digits of them, or answers */
} cst_frame_kind;

typedef struct {
    uint8_t kind;
    uint16_t round; /* 0 for the first pair of transfers of a call, counted up by repairs */
    uint16_t sender;
    uint16_t receiver;    /* CST_TO_ALL: everybody */
    uint32_t call;        /* low 32 bits of the sender's count of calls */
    uint64_t agreement;   /* hash of all that ranks must have alike: options, spans, tracked state */
    uint32_t first_block; /* blocks of the call that this frame speaks of */
    uint32_t blocks;
    uint32_t requests;  /* entries of the table of requests (DOWN only) */
    uint64_t payload;   /* where the payload begins = where the tables end */
    uint64_t used;      /* bytes of this frame; the rest of the buffer is padding */
    uint16_t error;     /* DOWN: predicted squared error per coordinate of the sender's blocks (cst_energy_index) */
    uint16_t corrected; /* DOWN: units that the sender corrected by their checksum, at most 65535 */
    uint64_t need_up;   /* bytes that this rank asks every rank to send in the next ALLTOALL, 0: none needed */
    uint64_t need_down; /* ... in the next ALLGATHER */
} cst_frame_header;

/* Bytes of the tables that go with a frame of this kind. */
size_t cst_frame_tables(const cst_frame_header *h);
/* Writes header and hash; the tables at frame + 80 must be in place. `frame` has at least h->payload bytes. */
void cst_frame_seal(uint8_t *frame, const cst_frame_header *h);
/*
 * Reads and checks the header of a frame of `bytes` bytes: magic, version, hash, tables and payload inside `used`, `used`
 * inside `bytes`. CORRUPT with a text otherwise (MISMATCH for another format version). Does not compare sender,
 * round, call or agreement with what the caller expects: cst_frame_expect does.
 */
coset_status cst_frame_open(const uint8_t *frame, size_t bytes, cst_frame_header *h, coset_error *why);
/* Is `h` the frame that must come from `want->sender` now? Kind, round, sender, receiver, call: CORRUPT (replayed or
 * misdirected); agreement: MISMATCH naming the peer. */
coset_status cst_frame_expect(const cst_frame_header *h, const cst_frame_header *want, coset_error *why);
/* Frames without tables: 8 bytes of hash follow the header, then the body, which ends at `used`. seal: writes header and
 * hash and clears frame[used .. capacity). open: the body after cst_frame_open; false if it is damaged. */
enum { CST_BODY_AT = CST_FRAME_HEADER + 8 };
void cst_body_seal(uint8_t *frame, const cst_frame_header *h, size_t used, size_t capacity);
bool cst_body_open(const uint8_t *frame, const cst_frame_header *h, cst_reader *body);
/* Brief frames (SKETCH, STATS), where a full header would outweigh what is in them: 8 bytes that stand for kind, round,
 * sender, receiver, call and agreement, 8 bytes of hash over the body, the body to the end of the buffer. open: CORRUPT, or
 * MISMATCH if the first 8 bytes are not what `want` makes. */
enum { CST_BRIEF_HEADER = 16 };
void cst_brief_seal(uint8_t *frame, const cst_frame_header *h, size_t bytes);
coset_status cst_brief_open(const uint8_t *frame, size_t bytes, const cst_frame_header *want, cst_reader *body,
                            coset_error *why);
/* 64-bit hash of bytes; detects damage, keeps out nobody who wants to deceive. */
uint64_t cst_bytes_hash(const void *bytes, size_t n, uint64_t seed);

/* ------------------------------------------------------------------------------------------------------------------
 * Block descriptors: 32 bits = step (22) | class (7) | code (3).
 */
typedef enum {
    CST_CODE_ABSENT = 0,  /* not in this frame: it did not fit, or (DOWN) it is not finished */
    CST_CODE_ZERO = 1,    /* all coordinates are zero: no payload */
    CST_CODE_EXACT = 2,   /* the elements themselves, not rotated; class CST_CLASS_SAME: only their check */
    CST_CODE_Z = 3,       /* colours modulo q = floor(2^(class/4)) of the cubic lattice */
    CST_CODE_E8 = 4,      /* ... of E8, in basis coordinates */
    CST_CODE_ENTROPY = 5, /* integers of the cubic lattice, entropy coded: class = model (cst_model_of_class) */
    CST_CODE_WIDE = 6,    /* cubic lattice in f64: colours modulo 2^class, class bits each */
    CST_CODE_PLAIN =
        7 /* integers: whole ones of 32 or (WIDE) 64 bits, or 1 to 16 bits above a colour, class bits each */
} cst_block_code;
#define CST_CODE_COUNT 8
enum { CST_CLASS_SAME = 1 }; /* of EXACT: what the receiver has itself, if its check says so */

typedef struct {
    uint8_t code, class;
    uint32_t step; /* cst_step_index */
} cst_block_desc;

uint32_t cst_desc_pack(cst_block_desc d);
/* False if the bits mean nothing: a class out of range for its code, a step where none belongs or out of range. */
bool cst_desc_unpack(uint32_t bits, cst_block_desc *d);

/* Steps on the wire: (1 + m/1024) 2^(e - 2048), m the low ten bits of the index and e the other twelve. Callers work in
 * units of 2^exponent, so that no step is a denormal in their hands. */
enum { CST_STEP_BITS = 22, CST_STEP_LOW = (2048 - 1140) << 10, CST_STEP_HIGH = (2048 + 1023) << 10 };
/* Index of the largest representable step <= x * 2^exponent (x > 0, normal), clamped to the range LOW .. HIGH. */
uint32_t cst_step_index(double x, int exponent);
/* The step in units of 2^exponent. */
double cst_step_value(uint32_t index, int exponent);

/* Energies on the wire: 0, or 2^((i - 32768) / 16) rounded to the nearest i in 1 .. 65535. In units of 2^(2 exponent). */
uint16_t cst_energy_index(double x, int exponent);
double cst_energy_value(uint16_t index, int exponent);

/* ------------------------------------------------------------------------------------------------------------------
 * Requests: what an owner asks for in the next round, 8 bytes each.
 */
typedef enum {
    CST_ASK_DIGITS = 1, /* the next `arg` bits of every coordinate above the colour */
    CST_ASK_PLAIN = 2,  /* whole integers */
    CST_ASK_RESEND = 3, /* what was absent */
    CST_ASK_REFINE = 4  /* the residual, with step = old step / 2^(arg / 4) */
} cst_ask;

typedef struct {
    uint32_t block;
    uint16_t sender;
    uint8_t ask, arg;
} cst_request;

enum { CST_REQUEST_BYTES = 8, CST_CHECK_BYTES = 16 };
void cst_request_write(uint8_t *at, cst_request r);
/* False if it asks for nothing known. Block and sender are the caller's to check. */
bool cst_request_read(const uint8_t *at, cst_request *r);
#endif
