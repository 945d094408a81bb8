/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a builder needs to know to write a schedule: the call, who we are, and how long messages shall be.
 *
 * Builders see one vector of cst_plan_elements() elements, cut into one chunk per rank: for an all-reduce, broadcast or
 * reduce the vector itself (patterns/chunk.h), for reduce-scatter and all-gather the size * count elements of the long
 * buffer, chunk i being block i. cst_input and cst_result find an element in the buffers that the call really has.
 */
#ifndef CST_COLL_PLAN_H
#define CST_COLL_PLAN_H
#include "coll/patterns/chunk.h"
#include "comm/call.h"
#include <stdbool.h>

typedef struct {
    cst_call call; /* its pointers may be NULL where the schedule is not run; call.algorithm is not read */
    int rank, size;
    size_t segment_bytes; /* wanted length of messages, as in coset_transport_caps; 0: CST_SEGMENT_BYTES */
    size_t max_message;   /* no message is longer; 0: no limit */
    bool rank_order;      /* sums must be taken in rank order */
    bool hosts;           /* there are several hosts, one of them with several ranks (select.h: hier) */
    bool network;         /* there are several hosts */
} cst_plan;

/* Length of messages where the transport names none: the best over loopback sockets. */
#define CST_SEGMENT_BYTES ((size_t)256 << 10)

/* Which memory a step touches; a place is a byte offset within it. */
typedef enum { CST_IN_SEND, CST_IN_RECV, CST_IN_SCRATCH } cst_buffer;
typedef struct {
    size_t offset;
    cst_buffer buffer;
    bool wide; /* the elements there are f32: partial sums of a 16-bit vector */
} cst_place;

/* Are partial sums kept in a wider type than the elements? */
bool cst_plan_widens(const cst_plan *plan);
/* Does the call end with a division by the number of ranks? */
bool cst_plan_divides(const cst_plan *plan);
size_t cst_plan_elements(const cst_plan *plan);
cst_range cst_plan_chunk(const cst_plan *plan, int chunk);
/* Where element `e` of the vector is given, and where its result goes (in the receive buffer; for a rank that has none
 * of it, nowhere: do not ask). */
cst_place cst_input(const cst_plan *plan, size_t e);
cst_place cst_result(const cst_plan *plan, size_t e);
/* Is the input of element e the memory where its result goes? */
bool cst_plan_in_place(const cst_plan *plan);
#endif
