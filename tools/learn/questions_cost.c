/* SPDX-License-Identifier: Apache-2.0 */
/* Questions on volume, latency and the choice of an algorithm. */
#include "learn/figures.h"
#include "learn/questions.h"

#include <math.h>

#define MIB ((size_t)1 << 20)

static double volume(int algorithm, int n)
{
    size_t s = (size_t)n * MIB;
    return (double)learn_sent(algorithm, n, s) / (double)s;
}

static void fill_growth(learn_values *v, int variant)
{
    static const int ranks[LEARN_VARIANTS][2] = {{8, 64}, {4, 32}, {16, 256}, {8, 32}};
    int n = ranks[variant][0], m = ranks[variant][1];
    learn_put(v, "n", n);
    learn_put(v, "m", m);
    learn_put_as(v, "right", 100 * (volume(LEARN_RING, m) / volume(LEARN_RING, n) - 1), "%.1f%%");
    learn_put(v, "times", m / n);
    learn_put_as(v, "log",
                 100.0 * (learn_algorithms[LEARN_RD].steps(m) / (double)learn_algorithms[LEARN_RD].steps(n) - 1),
                 "%.0f%%");
    learn_put_as(v, "before", volume(LEARN_RING, n), "%.3f");
    learn_put_as(v, "after", volume(LEARN_RING, m), "%.3f");
}

static const int powers[LEARN_VARIANTS] = {64, 16, 256, 32};

static void fill_rd(learn_values *v, int variant)
{
    int n = powers[variant];
    learn_put(v, "n", n);
    learn_put(v, "steps", learn_algorithms[LEARN_RD].steps(n));
    learn_put(v, "ring_steps", learn_ring_steps(n));
    learn_put(v, "phase_steps", learn_ring_steps(n) / 2);
    learn_put(v, "half", n / 2);
    learn_put_as(v, "volume", volume(LEARN_RD, n), "%.4g * S");
    learn_put_as(v, "ring_volume", volume(LEARN_RING, n), "%.4g * S");
    learn_put_as(v, "naive_volume", volume(LEARN_NAIVE, n), "%.4g * S");
}

static void fill_rhd(learn_values *v, int variant)
{
    int n = powers[variant];
    learn_put(v, "n", n);
    learn_put(v, "steps", learn_algorithms[LEARN_RHD].steps(n));
    learn_put(v, "ring_steps", learn_ring_steps(n));
    learn_put_as(v, "volume", volume(LEARN_RHD, n), "%.4g * S");
    learn_put_as(v, "ring_volume", volume(LEARN_RING, n), "%.4g * S");
    learn_put(v, "rd_steps", learn_algorithms[LEARN_RD].steps(n));
    learn_put_as(v, "rd_volume", volume(LEARN_RD, n), "%.4g * S");
}

static void fill_share(learn_values *v, int variant)
{
    static const struct {
        int n;
        size_t bytes;
    } small[LEARN_VARIANTS] = {{64, 4096}, {32, 65536}, {16, 4096}, {64, 65536}};
    int n = small[variant].n;
    double latency = learn_latency(LEARN_RING, n, learn_network);
    double all = learn_time(LEARN_RING, n, small[variant].bytes, learn_network);
    learn_put(v, "n", n);
    learn_put_bytes(v, "s", (double)small[variant].bytes);
    learn_put(v, "steps", learn_ring_steps(n));
    learn_put_time(v, "latency", latency);
    learn_put_time(v, "bytes", all - latency);
    learn_put_time(v, "right", all);
    learn_put_time(v, "one", learn_network.latency_s + (all - latency));
    learn_put_time(v, "per_rank", n * latency);
}

static const struct {
    int nodes, local;
    size_t bytes;
} clusters[LEARN_VARIANTS] = {{8, 2, 256 * MIB}, {4, 8, 64 * MIB}, {16, 4, 128 * MIB}, {4, 16, 512 * MIB}};

static void fill_cluster(learn_values *v, int variant)
{
    int nodes = clusters[variant].nodes, local = clusters[variant].local;
    size_t s = clusters[variant].bytes;
    learn_put(v, "nodes", nodes);
    learn_put(v, "local", local);
    learn_put(v, "n", nodes * local);
    learn_put_bytes(v, "s", (double)s);
    learn_put(v, "flat_steps", learn_flat_slow_steps(nodes, local));
    learn_put(v, "hier_steps", learn_hier_slow_steps(nodes));
    learn_put(v, "fast_steps", learn_hier_fast_steps(local));
    learn_put(v, "local_rings", local * learn_hier_slow_steps(nodes));
    learn_put_bytes(v, "hier", (double)learn_hier_leaving(nodes, local, s));
    learn_put_bytes(v, "blocks", (double)learn_flat_leaving(nodes, local, LEARN_BLOCKS, s));
    learn_put_bytes(v, "dealt", (double)learn_flat_leaving(nodes, local, LEARN_DEALT, s));
    learn_put_bytes(v, "each", (double)local * (double)learn_hier_leaving(nodes, local, s));
    learn_put_bytes(v, "share", (double)learn_hier_leaving(nodes, local, s) / local);
    learn_put_bytes(v, "naive", (double)learn_sent(LEARN_NAIVE, nodes, s));
}

static void fill_bus(learn_values *v, int variant)
{
    static const struct {
        int n;
        double seconds;
    } runs[LEARN_VARIANTS] = {{8, 0.5}, {4, 0.25}, {16, 1}, {32, 0.8}};
    int n = runs[variant].n;
    size_t s = (size_t)1 << 30;
    double speed = learn_algbw(s, runs[variant].seconds) / 1e9;
    learn_put(v, "n", n);
    learn_put_bytes(v, "s", (double)s);
    learn_put(v, "seconds", runs[variant].seconds);
    learn_put_as(v, "right", learn_busbw(n, s, runs[variant].seconds) / 1e9, "%.2f GB/s");
    learn_put_as(v, "algbw", speed, "%.2f GB/s");
    learn_put_as(v, "all", speed * n, "%.2f GB/s");
    learn_put_as(v, "phase", (double)learn_ring_phase_sent(n, s) / runs[variant].seconds / 1e9, "%.2f GB/s");
}

const learn_question learn_questions_cost[] = {
    {"cost-growth",
     "A job grows from {n} to {m} ranks. By how much does the volume that each rank sends in a ring all-reduce grow?",
     {{"by {right}", "The factor 2(N-1)/N goes from {before} to {after}."},
      {"to {times} times as much", "That would be the naive exchange: in the ring, the chunks shrink as N grows."},
      {"by {log}", "That is how log2 N grows: steps of recursive doubling, not the ring's volume."},
      {"not at all: it is exactly 2S", "2S is the limit that it comes closer to; it does grow a little."}},
     fill_growth},
    {"cost-double",
     "Twice as many ranks all-reduce a very small vector by ring. The time ...",
     {{"... about doubles.", "There are 2(N-1) steps and each pays its latency, however small the chunk."},
      {"... stays about the same, as the volume does.", "For a small vector the volume hardly counts. The steps do."},
      {"... is about halved, as chunks are half as large.",
       "Smaller chunks save nothing if nearly all of the time is latency."},
      {"... grows by one latency, as log2 N grows by one.", "That is recursive doubling. A ring has no short cuts."}},
     NULL},
    {"cost-time",
     "Latency 20 us per step, 10 Gbit/s. How long does a ring all-reduce of {s} take on {n} ranks?",
     {{"{right}", "{steps} steps * 20 us = {latency}, and {bytes} for the bytes."},
      {"{bytes}", "That is the bytes alone. Each of the {steps} steps pays a latency."},
      {"{one}", "That counts one latency. But a step cannot begin before the one before it has ended."},
      {"{per_rank}", "That adds up the latencies of all ranks. They wait at the same time."}},
     fill_share},
    {"cost-rd-steps",
     "How many steps does recursive doubling take on {n} ranks?",
     {{"{steps}", "Each step doubles the number of ranks whose vectors are in the sum: log2 N."},
      {"{ring_steps}", "That is the ring, 2(N-1)."},
      {"{phase_steps}", "That is one phase of the ring, or the messages of a naive exchange."},
      {"{half}", "The distance of the last partner is N/2; the number of steps is log2 N."}},
     fill_rd},
    {"cost-rd-volume",
     "How much does each of {n} ranks send in recursive doubling of S bytes?",
     {{"{volume}", "log2 N steps, each with the whole vector: fine for short vectors, too much for long ones."},
      {"{ring_volume}", "That is the ring, which sends chunks. Recursive doubling exchanges whole vectors."},
      {"S", "One vector per step, and there are log2 N steps."},
      {"{naive_volume}", "That is the naive exchange. Partial sums save most of it."}},
     fill_rd},
    {"cost-rhd",
     "Recursive halving and doubling on {n} ranks: how many steps, and how much does a rank send?",
     {{"{steps} steps, {volume}", "Halves, quarters, ...: they add up to (N-1)/N * S, twice; log2 N steps each way."},
      {"{ring_steps} steps, {ring_volume}", "The volume is the same as the ring's, but the steps are only 2 log2 N."},
      {"{rd_steps} steps, {rd_volume}", "That is recursive doubling with whole vectors."},
      {"{steps} steps, {rd_volume}", "What is exchanged halves in each step, so the volume stays below 2S."}},
     fill_rhd},
    {"cost-small",
     "64 ranks, a vector of 4 KiB, latency 20 us. Which is fastest?",
     {{"recursive doubling", "Few steps: log2 N. That each carries the whole vector costs little, as it is small."},
      {"ring", "It has the smallest volume, but 2(N-1) latencies, and nearly all of the time is latency here."},
      {"naive", "A rank has to send N-1 messages one after another. For very few ranks it can win."},
      {"all alike: the same bytes have to be summed",
       "The sums take no time here. The number of steps differs by far."}},
     NULL},
    {"cost-large",
     "64 ranks, a vector of 256 MiB, latency 20 us, 10 Gbit/s. Which is fastest?",
     {{"ring", "Less than 2S per rank. Its latencies are lost in the time for the bytes."},
      {"recursive doubling", "It has few steps, but each sends the whole vector: log2 N * S instead of less than 2S."},
      {"naive", "N-1 vectors from each rank: the most of all."},
      {"all alike: the link is the same", "The link is the same, but they send very different amounts over it."}},
     NULL},
    {"cost-tree",
     "Why is all-reduce over a single binary tree slow for large vectors?",
     {{"Half of the ranks are leaves and send little, while inner ranks take in two vectors each.",
       "A second tree with the roles exchanged uses all links: the double binary tree."},
      {"The way up the tree is longer than the way around the ring.", "It is much shorter: log2 N against N-1."},
      {"The root must add all N vectors by itself.", "It adds what its children send, which are sums already."},
      {"A tree needs N to be a power of two.", "It does not; a tree may have any number of nodes."}},
     NULL},
    {"cost-segments",
     "Why are large messages cut into segments?",
     {{"So that one segment is added while the next is still on its way.",
       "Sending, receiving and adding overlap; the number of bytes stays the same."},
      {"So that fewer bytes are sent in all.", "The bytes stay the same; headers even add a few."},
      {"So that the number of steps falls from 2(N-1) to log2 N.",
       "Segments travel the same way as before, only in smaller pieces."},
      {"So that every rank adds in the same order.",
       "The order of additions is fixed by the schedule, with or without segments."}},
     NULL},
    {"cost-hier-when",
     "When does hierarchical all-reduce win over a flat ring?",
     {{"When several ranks share a node, inside which a step is far cheaper than on the network.",
       "It replaces most of the slow steps by fast ones."},
      {"When each node holds one rank.", "Then there is no inside, and nothing to win."},
      {"When all links are equally fast.", "Then its extra phases cost as much as the steps that they replace."},
      {"Only when vectors are so large that latency does not matter.",
       "On the contrary: it saves steps more than bytes, so it matters most for small and middle sizes."}},
     NULL},
    {"cost-hier-steps",
     "{nodes} nodes of {local} ranks. How many steps go over the network, one after another, in a hierarchical all-reduce?",
     {{"{hier_steps}", "A ring across M nodes: 2(M-1). A flat ring over all {n} ranks has {flat_steps}."},
      {"{flat_steps}",
       "That is the flat ring: in each of its steps some link between nodes is used, and all wait for it."},
      {"{fast_steps}", "Those are the steps inside the nodes, 2(L-1). They do not use the network."},
      {"{local_rings}", "There are {local} rings across the nodes, but they run side by side, not one after another."}},
     fill_cluster},
    {"cost-hier-bytes",
     "{nodes} nodes of {local} ranks, S = {s}, hierarchical. How many bytes leave each node?",
     {{"{hier}", "L rings, each with S/L: together 2(M-1)/M * S."},
      {"{each}", "That would be L rings with all of S. After the reduce-scatter inside, each rank handles only S/L."},
      {"{share}", "That is what one rank of the node sends. All {local} of them send as much."},
      {"{naive}", "That is the naive exchange between nodes."}},
     fill_cluster},
    {"cost-placement",
     "A flat ring over {nodes} nodes of {local} ranks, S = {s}. Ranks are dealt out to the nodes like cards (rank r on node r mod {nodes}). How many bytes leave each node?",
     {{"{dealt}",
       "Every right neighbour is on another node, so each of a node's {local} ranks sends over the network."},
      {"{blocks}",
       "That is the ring with neighbours together: only one rank of each node sends outside. Placement matters."},
      {"{hier}", "That is the hierarchical all-reduce, which does not depend on this placement."},
      {"{naive}", "That is a naive exchange between the nodes."}},
     fill_cluster},
    {"cost-bus",
     "An all-reduce of {s} on {n} ranks takes {seconds} s. What is its bus bandwidth?",
     {{"{right}", "S / time * 2(N-1)/N: what each link carried, to be compared with what it can do."},
      {"{algbw}", "That is the algorithm bandwidth, S / time. It falls as N grows even if the links are as busy."},
      {"{all}", "That adds up all ranks. Bus bandwidth is that of one link."},
      {"{phase}", "That counts one phase, (N-1)/N. It is right for reduce-scatter or all-gather alone."}},
     fill_bus},
    {0},
};
