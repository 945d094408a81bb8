/* SPDX-License-Identifier: Apache-2.0 */
/* What `auto` would do, and why. */
#include "base/error.h"
#include "coll/cost.h"
#include "coll/hier.h"
#include "coll/shared.h"
#include "coll/select.h"
#include "transport/registry.h"

#include <string.h>

enum { MOST_RANKS = 1024 };
static const cst_algo by_messages[] = {CST_ALGO_FLAT, CST_ALGO_DIRECT, CST_ALGO_RING,
                                       CST_ALGO_RD,   CST_ALGO_RHD,    CST_ALGO_TREE};
enum { BY_MESSAGES = sizeof by_messages / sizeof *by_messages };

static void add_row(coset_tuning *t, cst_algo algo, const cst_cost *cost, double us)
{
    t->row[t->rows++] = (coset_tuning_row){
        cst_algo_name(algo), cost->rounds, cost->messages, cost->sent, cost->crowded, cost->added, us};
}

static void in_memory(int ranks, size_t bytes, coset_tuning *t)
{
    static const cst_algo algos[] = {CST_ALGO_FLAT, CST_ALGO_DIRECT};
    const cst_prices *prices = cst_prices_of(CST_PLACE_MEMORY);
    t->place = prices->name;
    for (int i = 0; i < 2; i++) {
        cst_cost cost = cst_cost_in_memory(ranks, bytes, algos[i]);
        add_row(t, algos[i], &cost, cst_cost_us(&cost, prices));
    }
    t->chosen = cst_algo_name(bytes <= CST_SHARED_FLAT_BYTES ? CST_ALGO_FLAT : CST_ALGO_DIRECT);
}

/* How many ranks' messages share a host's link: with the ring only one of them has its neighbour elsewhere. */
static double share_of_link(cst_algo algo, int ranks, int local)
{
    switch (algo) {
    case CST_ALGO_RING: return 1;
    case CST_ALGO_FLAT:
    case CST_ALGO_DIRECT: return (double)local * (ranks - local) / (ranks - 1);
    default: return local;
    }
}

static cst_plan plan_for(int ranks, int hosts, size_t bytes)
{
    return (cst_plan){
        .call = {.kind = CST_ALLREDUCE, .dtype = COSET_F32, .op = COSET_SUM, .count = bytes / sizeof(float)},
        .size = ranks,
        .hosts = hosts > 1 && ranks > hosts,
        .network = hosts > 1};
}

/* A reduction and a broadcast inside the hosts, through memory; between them what is chosen for a share of the vector. */
static void add_hier(coset_tuning *t, int ranks, int hosts, size_t bytes)
{
    int local = ranks / hosts;
    cst_plan across = plan_for(hosts, hosts, bytes / (size_t)local);
    cst_cost between = cst_cost_of(&across, cst_select(&across, CST_ALGO_AUTO));
    cst_cost inside = {
        .rounds = 2.0 * local, .sent = 2.0 * (local - 1) / local * (double)bytes, .added = (double)bytes};
    double us = cst_cost_us(&inside, cst_prices_of(CST_PLACE_MEMORY));
    cst_cost shared = between;
    shared.sent *= local; /* all ranks of a host share its link */
    shared.crowded *= local;
    us += cst_cost_us(&shared, cst_prices_of(CST_PLACE_NETWORK));
    between.rounds += inside.rounds;
    between.added += inside.added;
    add_row(t, CST_ALGO_HIER, &between, us);
}

static void over_messages(int ranks, int hosts, size_t bytes, coset_tuning *t)
{
    const cst_prices *prices = cst_prices_of(hosts > 1 ? CST_PLACE_NETWORK : CST_PLACE_HOST);
    cst_plan plan = plan_for(ranks, hosts, bytes);
    t->place = prices->name;
    for (int i = 0; i < BY_MESSAGES; i++) {
        cst_cost cost = cst_cost_of(&plan, by_messages[i]), shared = cost;
        double share = hosts > 1 ? share_of_link(by_messages[i], ranks, ranks / hosts) : 1;
        shared.sent *= share;
        shared.crowded *= share;
        add_row(t, by_messages[i], &cost, cst_cost_us(&shared, prices));
    }
    if (plan.hosts)
        add_hier(t, ranks, hosts, bytes);
    bool hier = plan.hosts && bytes >= CST_HIER_BYTES;
    t->chosen = cst_algo_name(hier ? CST_ALGO_HIER : cst_select(&plan, CST_ALGO_AUTO));
}

coset_status coset_tuning_of(const char *transport, int ranks, int hosts, size_t bytes, coset_tuning *out)
{
    if (!transport || !out || out->struct_size < sizeof out->struct_size || ranks < 2 || ranks > MOST_RANKS ||
        hosts < 1 || ranks % hosts)
        return COSET_ERR_ARGUMENT;
    bool memory = !strcmp(transport, "shm") || !strcmp(transport, "threads");
    if ((!cst_transport_find(transport) && strcmp(transport, "mpi")) || (memory && hosts > 1))
        return COSET_ERR_ARGUMENT;
    coset_tuning t = {.struct_size = out->struct_size};
    if (memory)
        in_memory(ranks, bytes, &t);
    else
        over_messages(ranks, hosts, bytes, &t);
    memcpy(out, &t, out->struct_size < sizeof t ? out->struct_size : sizeof t);
    return COSET_OK;
}
