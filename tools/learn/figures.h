/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every number of the lessons and questions about all-reduce, taken from coll/patterns: the very functions that the
 * library runs. Bytes are those of a vector of 4-byte elements; counts are per rank unless said otherwise.
 *
 * The cost model is the usual one (Hockney 1994): a message of b bytes takes `latency + b / bandwidth`; a rank sends
 * one message at a time and receives one at the same time.
 */
#ifndef COSET_LEARN_FIGURES_H
#define COSET_LEARN_FIGURES_H
#include <stdbool.h>
#include <stddef.h>

enum { LEARN_MIN_RANKS = 2, LEARN_MAX_RANKS = 16, LEARN_ELEMENT = 4 };

typedef struct {
    const char *id;                                   /* the library's name for it: "ring" */
    const char *name;                                 /* for readers */
    int (*steps)(int n);                              /* messages that must follow one another */
    size_t (*sent)(int n, int rank, size_t elements); /* elements that `rank` sends */
} learn_algorithm;

enum { LEARN_RING, LEARN_TREE, LEARN_RD, LEARN_RHD, LEARN_NAIVE, LEARN_ALGORITHMS };
extern const learn_algorithm learn_algorithms[LEARN_ALGORITHMS];

/* Bytes that the busiest rank sends. */
size_t learn_sent(int algorithm, int n, size_t bytes);
/* What one phase of the ring (reduce-scatter or all-gather alone) sends. */
size_t learn_ring_phase_sent(int n, size_t bytes);

/* One rank's move in step k of the ring. */
typedef struct {
    int from, to, chunk;
    bool add; /* the receiver adds it; otherwise it stores it */
} learn_move;
int learn_ring_steps(int n);
learn_move learn_ring_move(int n, int k, int rank);
/* Bytes that `rank` has sent when `steps` steps are done. */
size_t learn_ring_sent_after(int n, int steps, int rank, size_t bytes);
/* Bytes that a rank has sent in the naive exchange after as many messages, of which it needs n - 1. */
size_t learn_naive_sent_after(int n, int messages, size_t bytes);
/* parts[rank][chunk] = bit mask of the ranks whose numbers are summed there, when `steps` steps are done. */
typedef struct {
    unsigned parts[LEARN_MAX_RANKS][LEARN_MAX_RANKS];
} learn_ring_state;
void learn_ring_after(int n, int steps, learn_ring_state *state);
/* Elements of chunk i when `elements` are cut for n ranks. */
size_t learn_chunk(size_t elements, int n, int i);

/* The example network of the lessons: 20 us and 10 Gbit/s between hosts, 1 us inside one. */
typedef struct {
    double latency_s, bytes_per_s;
} learn_link;
extern const learn_link learn_network;
extern const learn_link learn_inside;
double learn_time(int algorithm, int n, size_t bytes, learn_link link);
/* The part of it that is latency. */
double learn_latency(int algorithm, int n, learn_link link);

/* M nodes with L ranks each. A flat ring over all of them, or hierarchical: a ring inside each node (reduce-scatter),
 * a ring across nodes for each of the L pieces, a ring inside again (all-gather). */
enum { LEARN_BLOCKS, LEARN_DEALT };                                           /* node of rank r: r / L, or r mod M */
size_t learn_flat_leaving(int nodes, int local, int placement, size_t bytes); /* bytes that leave one node */
size_t learn_hier_leaving(int nodes, int local, size_t bytes);
int learn_flat_slow_steps(int nodes, int local);
int learn_hier_slow_steps(int nodes);
int learn_hier_fast_steps(int local);

/* nccl-tests' two bandwidths of an all-reduce that took `seconds`; bytes per second. */
double learn_algbw(size_t bytes, double seconds);
double learn_busbw(int n, size_t bytes, double seconds);

/* "1.5 MiB", "700 MiB", "4 KiB", "12 bytes": at most two decimals. The returned text is in `room`. */
typedef char learn_bytes_text[32];
const char *learn_bytes(learn_bytes_text room, double bytes);
/* "4.2 us", "31 ms": three digits. */
const char *learn_seconds(learn_bytes_text room, double seconds);
#endif
