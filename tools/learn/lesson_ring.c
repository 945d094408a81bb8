/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson 1: ring all-reduce, every step, and where 2(N-1)/N * S comes from. */
#include "learn/figures.h"
#include "learn/lessons.h"

#include <math.h>
#include <string.h>

/* Up to LISTED ranks a cell lists them; above, it counts them. Up to ROOMY there is space between cells on 80 columns. */
enum { LISTED = 8, ROOMY = 6, MOVES_PER_LINE = 5, BAR = 40 };

static void the_task(learn_book *b, const learn_choice *c)
{
    learn_bytes_text s, naive;
    learn_bytes(s, (double)c->bytes);
    learn_bytes(naive, (double)learn_sent(LEARN_NAIVE, c->ranks, c->bytes));
    learn_page(b, NULL, "The task");
    learn_text(
        b, "N workers, called ranks, each hold a vector of S bytes: say, the gradient that each computed from its own "
           "data. Every rank wants the sum of all N vectors (divided by N, it is the mean). This is all-reduce.");
    learn_text(b, "Here N = %d and S = %s.", c->ranks, s);
    learn_text(b,
               "The naive way: everybody sends its whole vector to everybody else. Each rank then sends N-1 vectors, "
               "(N-1) * S bytes, here %s. Every new rank makes this worse for all the others.",
               naive);
    learn_text(b, "The ring does better, with two ideas:");
    learn_item(b, "Cut the vector into N chunks, c0, c1, and so on, of S/N bytes each.");
    learn_item(b, "Let each rank talk to its neighbours only: rank i sends to rank i+1, the last one to rank 0.");
}

static void the_rules(learn_book *b)
{
    learn_page(b, NULL, "The rules");
    learn_text(
        b, "Phase 1, reduce-scatter, N-1 steps: sums travel. In step k (counted from 0) rank i sends chunk (i-k) mod N "
           "to its right neighbour, which adds it to its own. What arrives in one step is sent on in the next.");
    learn_text(b, "After it, every chunk is complete at one rank: rank i holds the sum of chunk (i+1) mod N.");
    learn_text(
        b, "Phase 2, all-gather, N-1 steps: results travel. Each rank sends its complete chunk on, and then, step by "
           "step, the one that it has just received. The receiver overwrites its own; nothing is added any more.");
    learn_text(
        b, "All ranks send at the same time, in every step, and all send the same amount. No link is idle, and none "
           "is crowded.");
}

static int members(unsigned parts)
{
    return __builtin_popcount(parts);
}

static void print_cell(FILE *out, int n, unsigned parts, char mark)
{
    if (n > LISTED) {
        fprintf(out, " %c%-2d", mark, members(parts));
        return;
    }
    fprintf(out, "%s%c", n > ROOMY ? "" : " ", mark);
    for (int rank = 0; rank < n; rank++)
        fputc(parts >> rank & 1 ? '0' + rank : '.', out);
}

static void print_chunk_names(FILE *out, int n)
{
    fputs("    ", out);
    for (int chunk = 0; chunk < n; chunk++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", chunk);
        if (n > LISTED)
            fprintf(out, "  %-*s", chunk + 1 < n ? 2 : 1, name + 1);
        else
            fprintf(out, "%s %-*s", n > ROOMY ? "" : " ", chunk + 1 < n ? n : 1, name);
    }
    fputc('\n', out);
}

/* `steps` are done; the last of them is marked. */
static void print_state(FILE *out, int n, int steps)
{
    learn_ring_state state;
    learn_ring_after(n, steps, &state);
    print_chunk_names(out, n);
    for (int rank = 0; rank < n; rank++) {
        fprintf(out, "r%-3d", rank);
        learn_move m = {0};
        for (int from = 0; steps > 0 && from < n; from++) {
            learn_move each = learn_ring_move(n, steps - 1, from);
            m = each.to == rank ? each : m;
        }
        for (int chunk = 0; chunk < n; chunk++) {
            bool moved = steps > 0 && m.chunk == chunk;
            print_cell(out, n, state.parts[rank][chunk], moved ? m.add ? '+' : '=' : ' ');
        }
        fputc('\n', out);
    }
}

static void print_moves(FILE *out, int n, int k)
{
    for (int rank = 0; rank < n; rank++) {
        learn_move m = learn_ring_move(n, k, rank);
        fprintf(out, "%s%d -c%d-> %d",
                rank == 0                    ? ""
                : rank % MOVES_PER_LINE == 0 ? "\n"
                                             : "    ",
                m.from, m.chunk, m.to);
    }
    fputs("\n\n", out);
}

static void print_bar(FILE *out, const char *name, double sent, double whole)
{
    char bar[BAR + 1];
    memset(bar, '#', sizeof bar);
    int length = (int)ceil(sent / whole * BAR);
    learn_bytes_text text;
    fprintf(out, "%-6s %11s  %.*s\n", name, learn_bytes(text, sent), length, bar);
}

static void print_bars(FILE *out, const learn_choice *c, int steps)
{
    double whole = (double)learn_sent(LEARN_NAIVE, c->ranks, c->bytes);
    double ring_whole = (double)learn_sent(LEARN_RING, c->ranks, c->bytes);
    fputs("\nsent by each rank so far:\n", out);
    print_bar(out, "ring", (double)learn_ring_sent_after(c->ranks, steps, 0, c->bytes), fmax(whole, ring_whole));
    print_bar(out, "naive", (double)learn_naive_sent_after(c->ranks, steps, c->bytes), fmax(whole, ring_whole));
}

static void start(learn_book *b, const learn_choice *c)
{
    learn_draft d;
    learn_page(b, "ring", "Before the first step");
    if (c->ranks <= LISTED)
        learn_text(b,
                   "A row is a rank, a column is a chunk. The digits in a cell tell whose numbers are summed there: at "
                   "first every rank has only its own. A cell with all %d digits is complete.",
                   c->ranks);
    else
        learn_text(
            b,
            "A row is a rank, a column is a chunk. The number in a cell tells how many ranks are summed there: at "
            "first every rank has only its own numbers. A cell with %d is complete.",
            c->ranks);
    learn_text(b,
               "In the next pages `+` marks what was added in this step, `=` what was stored. (Other numbers of ranks: "
               "`coset learn ring --ranks N`.)");
    learn_draft_open(&d);
    print_state(d.out, c->ranks, 0);
    print_bars(d.out, c, 0);
    learn_drawing(b, NULL, &d, "Every chunk of every rank holds that rank's own numbers only. Nothing has been sent.");
}

static void step(learn_book *b, const learn_choice *c, int k)
{
    int n = c->ranks, phase = n - 1;
    bool add = k < phase;
    learn_page(b, "ring", "Step %d of %d: %s", k + 1, learn_ring_steps(n), add ? "reduce-scatter" : "all-gather");
    if (add)
        learn_text(b, "k = %d: rank i sends chunk (i-%d) mod %d to rank i+1, which adds it.", k, k, n);
    else if (k == phase)
        learn_text(b, "Now each rank sends the chunk that it has completed; the receiver stores it.");
    else
        learn_text(b, "Each rank sends on what it has just stored; the receiver stores it.");
    learn_draft d;
    learn_draft_open(&d);
    print_moves(d.out, n, k);
    print_state(d.out, n, k + 1);
    print_bars(d.out, c, k + 1);
    learn_move m = learn_ring_move(n, k, 0);
    learn_drawing(b, NULL, &d,
                  "Rank 0 sends chunk %d to rank %d, which %s it; all other ranks do the same one place further.",
                  m.chunk, m.to, add ? "adds" : "stores");
}

static void volume_table(learn_book *b, const learn_choice *c)
{
    static const int ranks[] = {2, 4, 8, 64, 1024};
    learn_bytes_text ring, naive;
    learn_draft d;
    learn_draft_open(&d);
    fputs("ranks\t2(N-1)/N\tring sends\tnaive sends\n", d.out);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        size_t sent = learn_sent(LEARN_RING, ranks[i], c->bytes);
        fprintf(d.out, "%d\t%.3f\t%s\t%s\n", ranks[i], (double)sent / (double)c->bytes, learn_bytes(ring, (double)sent),
                learn_bytes(naive, (double)learn_sent(LEARN_NAIVE, ranks[i], c->bytes)));
    }
    learn_bytes_text s;
    learn_table(b, &d, "Bytes that each rank sends for a vector of %s", learn_bytes(s, (double)c->bytes));
}

static void the_price(learn_book *b, const learn_choice *c)
{
    int n = c->ranks;
    learn_bytes_text chunk, sent;
    learn_bytes(chunk, (double)c->bytes / n);
    learn_bytes(sent, (double)learn_sent(LEARN_RING, n, c->bytes));
    learn_page(b, NULL, "What it cost");
    learn_text(b, "Count for one rank:");
    learn_item(b, "In each step it sends exactly one chunk: S/N bytes, here %s.", chunk);
    learn_item(b, "A chunk starts at one rank and has to pass the other N-1 to be complete: N-1 steps.");
    learn_item(b, "A complete chunk has to reach the other N-1 ranks: N-1 steps again.");
    learn_key(b, "2(N-1) steps of S/N bytes: each rank sends 2(N-1)/N * S, here %s.", sent);
    volume_table(b, c);
    learn_text(b,
               "The factor never reaches 2: a thousand ranks cost each one hardly more than ten do. The naive exchange "
               "grows with every rank.");
}

static void the_bound(learn_book *b, const learn_choice *c)
{
    (void)c;
    learn_page(b, NULL, "Nobody can send less");
    learn_text(b, "Look at one number of the vector, held by N ranks.");
    learn_item(
        b,
        "Some rank is the first to know the sum. Before that, the parts of the other N-1 ranks had to get there. "
        "A message can merge two partial sums into one, so N partial sums need at least N-1 messages to become one.");
    learn_item(b,
               "At that moment the other N-1 ranks do not know it yet. Each must receive at least one more message.");
    learn_text(
        b, "That is 2(N-1) sends per number, whoever makes them. Shared evenly by N ranks: 2(N-1)/N * S bytes each. "
           "The ring reaches this bound (Patarasuk and Yuan, 2009).");
    learn_text(
        b, "It holds for exact sums of numbers that cannot be compressed. To send less, one must send fewer bits per "
           "number: that is what the lesson on lattice codes is about.");
    learn_key(
        b, "Every chunk is summed once, along one path, and the result is copied. So all ranks end with the same bits, "
           "though floating-point addition depends on the order.");
}

void learn_lesson_ring(learn_book *b, const learn_choice *choice)
{
    the_task(b, choice);
    the_rules(b);
    start(b, choice);
    for (int k = 0; k < learn_ring_steps(choice->ranks); k++)
        step(b, choice, k);
    the_price(b, choice);
    the_bound(b, choice);
}
