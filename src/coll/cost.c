/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/cost.h"

#include "coll/patterns/direct.h"
#include "coll/patterns/naive.h"
#include "coll/patterns/rd.h"
#include "coll/patterns/rhd.h"
#include "coll/patterns/ring.h"
#include "coll/patterns/tree.h"
#include "coll/tuning.h"

const cst_prices *cst_prices_of(cst_place_kind place)
{
    return &cst_tuned_prices[place];
}

static size_t sent_by(int n, int rank, size_t count, cst_algo algo)
{
    switch (algo) {
    case CST_ALGO_DIRECT: return cst_direct_sent(n, rank, count);
    case CST_ALGO_RING: return cst_ring_sent(n, rank, count);
    case CST_ALGO_RD: return cst_rd_sent(n, rank, count);
    case CST_ALGO_RHD: return cst_rhd_sent(n, rank, count);
    case CST_ALGO_TREE: return cst_tree_sent(n, rank, count);
    default: return cst_naive_sent(n, count);
    }
}

static size_t most_sent(int n, size_t count, cst_algo algo)
{
    size_t most = 0;
    for (int r = 0; r < n; r++) {
        size_t sent = sent_by(n, r, count, algo);
        most = sent > most ? sent : most;
    }
    return most;
}

static double rounds_of(int n, cst_algo algo)
{
    switch (algo) {
    case CST_ALGO_DIRECT: return 2;
    case CST_ALGO_RING: return cst_ring_steps(n);
    case CST_ALGO_RD: return cst_rd_steps(n);
    case CST_ALGO_RHD: return cst_rhd_steps(n);
    case CST_ALGO_TREE: return cst_tree_steps(n);
    default: return 1;
    }
}

/* One for each round and partner, however short the vector is. */
static double least_messages(int n, cst_algo algo)
{
    switch (algo) {
    case CST_ALGO_DIRECT: return 2 * (n - 1);
    case CST_ALGO_TREE: return n > 2 ? 4 : 2; /* inner node of one tree: up, twice down; leaf of the other: up */
    case CST_ALGO_RING:
    case CST_ALGO_RD:
    case CST_ALGO_RHD: return rounds_of(n, algo);
    default: return n - 1;
    }
}

/* Times the vector's length. A sum of k operands reads k. */
static double operands(int n, cst_algo algo)
{
    double p = cst_pow2_floor(n), exchanges = cst_rd_exchanges(n);
    switch (algo) {
    case CST_ALGO_DIRECT: return 1;
    case CST_ALGO_RING: return 2 * (n - 1.0) / n;
    case CST_ALGO_RD: return 2 * (exchanges + (p < n));
    case CST_ALGO_RHD: return 2 * ((p - 1) / p + (p < n));
    case CST_ALGO_TREE: return n > 2 ? 1.5 : 1; /* three operands for one half */
    default: return n;
    }
}

static bool crowds(int n, cst_algo algo)
{
    return n > 2 && (algo == CST_ALGO_FLAT || algo == CST_ALGO_NAIVE || algo == CST_ALGO_DIRECT);
}

cst_cost cst_cost_of(const cst_plan *plan, cst_algo algo)
{
    size_t element = coset_dtype_size(plan->call.dtype), count = plan->call.count;
    size_t segment = plan->segment_bytes ? plan->segment_bytes : CST_SEGMENT_BYTES;
    double sent = (double)(most_sent(plan->size, count, algo) * element);
    return (cst_cost){.rounds = rounds_of(plan->size, algo),
                      .messages = least_messages(plan->size, algo) + (double)(size_t)(sent / (double)segment),
                      .sent = sent,
                      .crowded = crowds(plan->size, algo) ? sent : 0,
                      .added = operands(plan->size, algo) * (double)(count * element)};
}

cst_cost cst_cost_in_memory(int ranks, size_t bytes, cst_algo algo)
{
    double n = ranks, s = (double)bytes;
    if (algo == CST_ALGO_DIRECT) /* reads a chunk of everybody's, writes it to everybody */
        return (cst_cost){.rounds = 2, .sent = 2 * (n - 1) / n * s, .added = s};
    return (cst_cost){.rounds = 1, .sent = (n - 1) * s, .added = n * s};
}

double cst_cost_us(const cst_cost *c, const cst_prices *p)
{
    double bytes_ns = c->sent * p->sent_ns + c->crowded * p->crowded_ns + c->added * p->added_ns;
    double more = c->messages > c->rounds ? c->messages - c->rounds : 0; /* a round has one in its price */
    return c->rounds * p->round_us + more * p->message_us + bytes_ns * 1e-3;
}
