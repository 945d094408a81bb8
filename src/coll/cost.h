/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an all-reduce costs, as a model: a round costs the latency of a message, each message beyond one per round the work
 * at both ends, a byte the time of the wire, an operand's byte the time of adding it (docs/algorithms.md). Rounds, messages and bytes are facts of
 * the algorithms; the prices of a place are fitted to measurements by bench/algorithms.py (tuning.h).
 */
#ifndef CST_COLL_COST_H
#define CST_COLL_COST_H
#include "coll/plan.h"
#include "coll/select.h"

/* Of the rank that has most of each. */
typedef struct {
    double rounds;   /* each can start only when the one before has arrived */
    double messages; /* sent; what is longer than a segment counts as several */
    double sent;     /* bytes */
    double crowded;  /* of these, sent while others send to the same rank */
    double added;    /* bytes of operands of sums */
} cst_cost;

/* Where the ranks are, and what things cost there. */
typedef enum {
    CST_PLACE_MEMORY,  /* ranks share memory: paths flat and direct */
    CST_PLACE_HOST,    /* messages within one host */
    CST_PLACE_NETWORK, /* messages between hosts, one rank on each */
    CST_PLACES
} cst_place_kind;
typedef struct {
    const char *name;
    double round_us, message_us;          /* each */
    double sent_ns, crowded_ns, added_ns; /* per byte; crowded: besides sent */
} cst_prices;
const cst_prices *cst_prices_of(cst_place_kind place);

/* Of an all-reduce of call.count elements by `algo` (not AUTO, not HIER), by messages of plan->segment_bytes. */
cst_cost cst_cost_of(const cst_plan *plan, cst_algo algo);
/* The same where ranks share memory: algo FLAT or DIRECT; nothing is a message there. */
cst_cost cst_cost_in_memory(int ranks, size_t bytes, cst_algo algo);
double cst_cost_us(const cst_cost *cost, const cst_prices *prices);
#endif
