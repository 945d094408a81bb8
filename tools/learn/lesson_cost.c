/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson 2: volume and latency; when other algorithms win. */
#include "learn/figures.h"
#include "learn/lessons.h"

static void two_prices(learn_book *b)
{
    learn_bytes_text latency, small, large;
    learn_seconds(latency, learn_latency(LEARN_RING, 64, learn_network));
    learn_seconds(small, learn_time(LEARN_RING, 64, 4096, learn_network));
    learn_seconds(large, learn_time(LEARN_RING, 64, (size_t)256 << 20, learn_network));
    learn_page(b, NULL, "Two prices");
    learn_text(
        b, "A message has two prices: a fixed one, the latency, however small it is, and one per byte. With b bytes:");
    learn_key(b, "time = latency + b / bandwidth");
    learn_text(b, "Steps that must follow one another pay the latency each. So an algorithm costs "
                  "steps * latency + (bytes that a rank sends) / bandwidth.");
    learn_text(b,
               "In the ring, more ranks mean smaller chunks: the bytes per rank stay below 2S. But they also mean more "
               "steps: 2(N-1). Each byte of a chunk visits every rank, one after another, and there is no shorter way "
               "around a ring.");
    learn_key(b, "The ring's volume does not grow with N. Its latency does.");
    learn_text(
        b,
        "An example network for this lesson: latency 20 us, bandwidth 10 Gbit/s. On 64 ranks the ring's %d steps "
        "cost %s of latency. For 4 KiB that is nearly everything (%s in all); for 256 MiB it is lost in the rest "
        "(%s).",
        learn_ring_steps(64), latency, small, large);
}

static void steps_table(learn_book *b)
{
    static const int ranks[] = {4, 16, 64, 256};
    learn_draft d;
    learn_draft_open(&d);
    fputs("algorithm\tN=4\tN=16\tN=64\tN=256\tsent, N=64\n", d.out);
    for (int a = 0; a < LEARN_ALGORITHMS; a++) {
        fputs(learn_algorithms[a].name, d.out);
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
            fprintf(d.out, "\t%d", learn_algorithms[a].steps(ranks[i]));
        size_t bytes = (size_t)1 << 30;
        fprintf(d.out, "\t%.2f S\n", (double)learn_sent(a, 64, bytes) / (double)bytes);
    }
    learn_table(b, &d, "Messages one after another, and what the busiest rank sends");
}

static void other_shapes(learn_book *b)
{
    learn_page(b, NULL, "Other shapes than a ring");
    learn_item(
        b,
        "Tree: sums go up a tree, results come down. The way is short, about 2 log2 N. In one binary tree half of the "
        "ranks are leaves and hardly work; a second tree, in which they are the inner nodes, mends that "
        "(double binary tree).");
    learn_item(b,
               "Recursive doubling: exchange whole vectors with the rank at distance 1, 2, 4, ...: log2 N steps, but "
               "log2 N whole vectors.");
    learn_item(
        b, "Halving and doubling: exchange halves, then quarters, ..., and back: 2 log2 N steps, the ring's volume.");
    steps_table(b);
}

static void times_table(learn_book *b)
{
    static const size_t sizes[] = {4096, (size_t)1 << 20, (size_t)256 << 20};
    learn_draft d;
    learn_draft_open(&d);
    fputs("algorithm\t4 KiB\t1 MiB\t256 MiB\n", d.out);
    for (int a = 0; a < LEARN_ALGORITHMS; a++) {
        fputs(learn_algorithms[a].name, d.out);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            learn_bytes_text t;
            fprintf(d.out, "\t%s", learn_seconds(t, learn_time(a, 64, sizes[i], learn_network)));
        }
        fputc('\n', d.out);
    }
    learn_table(b, &d, "Time by the formula: 64 ranks, 20 us, 10 Gbit/s");
}

static void who_wins(learn_book *b)
{
    learn_page(b, NULL, "Who wins when");
    times_table(b);
    learn_item(b, "Small vectors: few steps win. Tree, or recursive doubling.");
    learn_item(b, "Large vectors: little volume wins. Ring, or halving and doubling.");
    learn_item(
        b, "In between the machine decides: how many messages a rank can handle at once, how well the network takes "
           "exchanges across it. So libraries measure, and keep a table.");
    learn_text(b, "Messages are also cut into segments, so that one segment is added while the next is under way. That "
                  "saves time, not bytes.");
    learn_text(
        b, "Benchmarks print algorithm bandwidth, S / time, and bus bandwidth, which is that times 2(N-1)/N: what each "
           "link really carried.");
}

static void nodes_table(learn_book *b, int nodes, int local, size_t bytes)
{
    learn_bytes_text text;
    learn_draft d;
    learn_draft_open(&d);
    fputs("algorithm\tsteps on the network\tleaves each node\n", d.out);
    fprintf(d.out, "flat ring, neighbours together\t%d\t%s\n", learn_flat_slow_steps(nodes, local),
            learn_bytes(text, (double)learn_flat_leaving(nodes, local, LEARN_BLOCKS, bytes)));
    fprintf(d.out, "flat ring, ranks dealt out\t%d\t%s\n", learn_flat_slow_steps(nodes, local),
            learn_bytes(text, (double)learn_flat_leaving(nodes, local, LEARN_DEALT, bytes)));
    fprintf(d.out, "hierarchical\t%d\t%s\n", learn_hier_slow_steps(nodes),
            learn_bytes(text, (double)learn_hier_leaving(nodes, local, bytes)));
    learn_table(b, &d, "%d nodes of %d ranks, S = %s", nodes, local, learn_bytes(text, (double)bytes));
}

static void hierarchy(learn_book *b)
{
    int nodes = 8, local = 8;
    learn_page(b, NULL, "Two levels");
    learn_text(
        b, "Inside one machine (a node) ranks share memory: a step costs 1 us, not 20. Hierarchical all-reduce uses "
           "this, with M nodes of L ranks:");
    learn_item(b, "Reduce-scatter inside each node: every rank gets 1/L of the node's sum.");
    learn_item(b, "All-reduce across nodes, L rings side by side, one for each piece: all ranks share the slow work.");
    learn_item(b, "All-gather inside each node.");
    nodes_table(b, nodes, local, (size_t)256 << 20);
    learn_key(b,
              "Hierarchy hardly saves bytes against a well-placed ring. It saves slow steps: %d fast and %d slow ones "
              "instead of %d slow ones, since a ring's every step waits for its slowest link.",
              learn_hier_fast_steps(local), learn_hier_slow_steps(nodes), learn_flat_slow_steps(nodes, local));
    learn_text(b, "With one rank per node, or where all links are alike, there is nothing to win.");
}

void learn_lesson_cost(learn_book *b, const learn_choice *choice)
{
    (void)choice;
    two_prices(b);
    other_shapes(b);
    who_wins(b);
    hierarchy(b);
}
