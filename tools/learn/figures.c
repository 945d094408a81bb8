/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/figures.h"

#include "coll/patterns/naive.h"
#include "coll/patterns/rd.h"
#include "coll/patterns/rhd.h"
#include "coll/patterns/ring.h"
#include "coll/patterns/tree.h"

#include <stdio.h>
#include <string.h>

static int naive_messages(int n)
{
    int messages = 0;
    for (int k = 0; k < n - 1; k++)
        messages += cst_naive_to(n, 0, k) != 0;
    return messages;
}

static size_t naive_sent(int n, int rank, size_t elements)
{
    (void)rank;
    return cst_naive_sent(n, elements);
}

const learn_algorithm learn_algorithms[LEARN_ALGORITHMS] = {
    [LEARN_RING] = {"ring", "ring", cst_ring_steps, cst_ring_sent},
    [LEARN_TREE] = {"tree", "double binary tree", cst_tree_steps, cst_tree_sent},
    [LEARN_RD] = {"rd", "recursive doubling", cst_rd_steps, cst_rd_sent},
    [LEARN_RHD] = {"rhd", "halving and doubling", cst_rhd_steps, cst_rhd_sent},
    [LEARN_NAIVE] = {"naive", "naive", naive_messages, naive_sent},
};

const learn_link learn_network = {20e-6, 1.25e9};
const learn_link learn_inside = {1e-6, 10e9};

size_t learn_sent(int algorithm, int n, size_t bytes)
{
    size_t most = 0;
    for (int rank = 0; rank < n; rank++) {
        size_t sent = learn_algorithms[algorithm].sent(n, rank, bytes / LEARN_ELEMENT) * LEARN_ELEMENT;
        most = sent > most ? sent : most;
    }
    return most;
}

static size_t chunk_bytes(int n, int chunk, size_t bytes)
{
    return learn_chunk(bytes / LEARN_ELEMENT, n, chunk) * LEARN_ELEMENT;
}

size_t learn_chunk(size_t elements, int n, int i)
{
    return cst_range_size(cst_chunk(elements, n, i));
}

size_t learn_ring_phase_sent(int n, size_t bytes)
{
    return learn_ring_sent_after(n, cst_ring_phase_steps(n), 0, bytes);
}

int learn_ring_steps(int n)
{
    return cst_ring_steps(n);
}

learn_move learn_ring_move(int n, int k, int rank)
{
    cst_ring_step s = cst_ring(n, rank, k);
    return (learn_move){rank, s.to, s.send_chunk, s.add};
}

size_t learn_ring_sent_after(int n, int steps, int rank, size_t bytes)
{
    size_t sent = 0;
    for (int k = 0; k < steps; k++)
        sent += chunk_bytes(n, learn_ring_move(n, k, rank).chunk, bytes);
    return sent;
}

size_t learn_naive_sent_after(int n, int messages, size_t bytes)
{
    int all = naive_messages(n);
    return cst_naive_sent(n, bytes) / (size_t)all * (size_t)(messages < all ? messages : all);
}

void learn_ring_after(int n, int steps, learn_ring_state *state)
{
    for (int rank = 0; rank < n; rank++)
        for (int chunk = 0; chunk < n; chunk++)
            state->parts[rank][chunk] = 1u << rank;
    for (int k = 0; k < steps; k++) {
        learn_ring_state before = *state;
        for (int rank = 0; rank < n; rank++) {
            learn_move m = learn_ring_move(n, k, rank);
            unsigned sent = before.parts[rank][m.chunk];
            state->parts[m.to][m.chunk] = m.add ? before.parts[m.to][m.chunk] | sent : sent;
        }
    }
}

double learn_latency(int algorithm, int n, learn_link link)
{
    return learn_algorithms[algorithm].steps(n) * link.latency_s;
}

double learn_time(int algorithm, int n, size_t bytes, learn_link link)
{
    return learn_latency(algorithm, n, link) + (double)learn_sent(algorithm, n, bytes) / link.bytes_per_s;
}

size_t learn_flat_leaving(int nodes, int local, int placement, size_t bytes)
{
    int n = nodes * local;
    size_t leaving = 0;
    for (int rank = 0; rank < n; rank++) {
        int to = cst_ring(n, rank, 0).to;
        int here = placement == LEARN_BLOCKS ? rank / local : rank % nodes;
        int there = placement == LEARN_BLOCKS ? to / local : to % nodes;
        if (here == 0 && there != 0)
            leaving += cst_ring_sent(n, rank, bytes / LEARN_ELEMENT) * LEARN_ELEMENT;
    }
    return leaving;
}

size_t learn_hier_leaving(int nodes, int local, size_t bytes)
{
    size_t leaving = 0;
    for (int rank = 0; rank < local; rank++)
        leaving += cst_ring_sent(nodes, 0, learn_chunk(bytes / LEARN_ELEMENT, local, rank)) * LEARN_ELEMENT;
    return leaving;
}

int learn_flat_slow_steps(int nodes, int local)
{
    return cst_ring_steps(nodes * local);
}

int learn_hier_slow_steps(int nodes)
{
    return cst_ring_steps(nodes);
}

int learn_hier_fast_steps(int local)
{
    return cst_ring_steps(local);
}

double learn_algbw(size_t bytes, double seconds)
{
    return (double)bytes / seconds;
}

double learn_busbw(int n, size_t bytes, double seconds)
{
    return (double)learn_sent(LEARN_RING, n, bytes) / seconds;
}

/* Up to two decimals, without zeros at the end. */
static void print_number(char *room, size_t size, double value)
{
    snprintf(room, size, "%.2f", value);
    char *end = room + strlen(room);
    while (end[-1] == '0')
        *--end = 0;
    if (end[-1] == '.')
        end[-1] = 0;
}

const char *learn_bytes(learn_bytes_text room, double bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    print_number(room, sizeof(learn_bytes_text), bytes);
    size_t used = strlen(room);
    snprintf(room + used, sizeof(learn_bytes_text) - used, " %s", units[unit]);
    return room;
}

const char *learn_seconds(learn_bytes_text room, double seconds)
{
    double scaled = seconds >= 1 ? seconds : seconds >= 1e-3 ? seconds * 1e3 : seconds * 1e6;
    const char *unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : "us";
    int decimals = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
    snprintf(room, sizeof(learn_bytes_text), "%.*f %s", decimals, scaled, unit);
    return room;
}
