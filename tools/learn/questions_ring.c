/* SPDX-License-Identifier: Apache-2.0 */
/* Questions on ring all-reduce. */
#include "learn/figures.h"
#include "learn/questions.h"

#include <math.h>

#define MIB ((size_t)1 << 20)

static const struct {
    int n;
    size_t bytes;
} cases[LEARN_VARIANTS] = {{4, 100 * MIB}, {8, 256 * MIB}, {16, 64 * MIB}, {5, 10 * MIB}};

static void fill_volume(learn_values *v, int variant)
{
    int n = cases[variant].n;
    size_t s = cases[variant].bytes;
    learn_put(v, "n", n);
    learn_put(v, "steps", learn_ring_steps(n));
    learn_put_bytes(v, "s", (double)s);
    learn_put_bytes(v, "right", (double)learn_sent(LEARN_RING, n, s));
    learn_put_bytes(v, "naive", (double)learn_sent(LEARN_NAIVE, n, s));
    learn_put_bytes(v, "phase", (double)learn_ring_phase_sent(n, s));
    learn_put_bytes(v, "whole", (double)learn_ring_steps(n) * (double)s);
    learn_put_bytes(v, "chunk", (double)s / n);
}

static void fill_steps(learn_values *v, int variant)
{
    int n = cases[variant].n;
    learn_put(v, "n", n);
    learn_put(v, "right", learn_ring_steps(n));
    learn_put(v, "phase", learn_ring_steps(n) / 2);
    learn_put(v, "twice", 2 * n);
    learn_put(v, "messages", n * learn_ring_steps(n));
}

/* Ranks and steps in the middle of things, so that no two ideas give the same chunk. */
static const struct {
    int n, rank, k;
} moves[LEARN_VARIANTS] = {{6, 2, 1}, {8, 5, 2}, {7, 1, 2}, {5, 0, 1}};

static void fill_move(learn_values *v, int variant)
{
    int n = moves[variant].n, rank = moves[variant].rank, k = moves[variant].k;
    learn_move out = learn_ring_move(n, k, rank), in = learn_ring_move(n, k, (rank + n - 1) % n);
    learn_put(v, "n", n);
    learn_put(v, "rank", rank);
    learn_put(v, "left", in.from);
    learn_put(v, "k", k);
    learn_put(v, "sends", out.chunk);
    learn_put(v, "takes", in.chunk);
    learn_put(v, "own", rank);
    learn_put(v, "forward", (rank + k) % n);
}

static void fill_owner(learn_values *v, int variant)
{
    int n = moves[variant].n, rank = moves[variant].rank;
    learn_move last = learn_ring_move(n, n - 2, (rank + n - 1) % n);
    learn_put(v, "n", n);
    learn_put(v, "rank", rank);
    learn_put(v, "right", last.chunk);
    learn_put(v, "own", rank);
    learn_put(v, "left", (rank + n - 1) % n);
}

static void fill_ratio(learn_values *v, int variant)
{
    static const int ranks[LEARN_VARIANTS] = {8, 16, 10, 64};
    int n = ranks[variant];
    size_t s = (size_t)n * MIB;
    learn_put(v, "n", n);
    learn_put(v, "right", (double)learn_sent(LEARN_NAIVE, n, s) / (double)learn_sent(LEARN_RING, n, s));
    learn_put(v, "less", n - 1);
    learn_put(v, "twice", 2 * (n - 1));
}

static void fill_two(learn_values *v, int variant)
{
    size_t s = cases[variant].bytes, ring = learn_sent(LEARN_RING, 2, s);
    learn_put_bytes(v, "s", (double)s);
    learn_put_bytes(v, "right", (double)ring);
    learn_put_bytes(v, "naive", (double)learn_sent(LEARN_NAIVE, 2, s));
    learn_put_bytes(v, "half", (double)s / 2);
    learn_put_bytes(v, "twice", 2 * (double)s);
}

static void fill_uneven(learn_values *v, int variant)
{
    static const struct {
        int elements, n;
    } cut[LEARN_VARIANTS] = {{10, 4}, {11, 4}, {14, 4}, {18, 4}};
    int elements = cut[variant].elements, n = cut[variant].n, up = (elements + n - 1) / n, least = elements, most = 0;
    for (int i = 0; i < n; i++) {
        int size = (int)learn_chunk((size_t)elements, n, i);
        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    learn_put(v, "elements", elements);
    learn_put(v, "n", n);
    learn_put(v, "least", least);
    learn_put(v, "most", most);
    learn_put(v, "padded", up * n);
    learn_put(v, "down", elements / n);
    learn_put(v, "rest", elements - (n - 1) * (elements / n));
}

static void fill_phase(learn_values *v, int variant)
{
    int n = cases[variant].n;
    size_t s = cases[variant].bytes;
    learn_put(v, "n", n);
    learn_put_bytes(v, "s", (double)s);
    learn_put_bytes(v, "right", (double)learn_ring_phase_sent(n, s));
    learn_put_bytes(v, "all", (double)learn_sent(LEARN_RING, n, s));
    learn_put_bytes(v, "chunk", (double)s / n);
    learn_put_bytes(v, "naive", (double)learn_sent(LEARN_NAIVE, n, s));
}

static void fill_slow(learn_values *v, int variant)
{
    static const int ranks[LEARN_VARIANTS] = {8, 4, 16, 5};
    static const int factors[LEARN_VARIANTS] = {10, 6, 20, 15};
    int n = ranks[variant], f = factors[variant];
    learn_link slow = {0, learn_network.bytes_per_s / f}, fast = {0, learn_network.bytes_per_s};
    double right = learn_time(LEARN_RING, n, (size_t)n * MIB, slow) / learn_time(LEARN_RING, n, (size_t)n * MIB, fast);
    learn_put(v, "n", n);
    learn_put(v, "factor", f);
    learn_put_as(v, "right", right, "%.0f");
    learn_put(v, "average", (double)(n - 1 + f) / n);
    learn_put(v, "share", (double)f / n);
}

const learn_question learn_questions_ring[] = {
    {"ring-volume",
     "{n} ranks all-reduce a vector of {s} by ring. How much does each rank send?",
     {{"{right}", "It sends one chunk, S/N = {chunk}, in each of 2(N-1) = {steps} steps."},
      {"{naive}", "That is N-1 whole vectors: the naive exchange."},
      {"{phase}", "That is one phase, reduce-scatter. The results must still be handed round: as much again."},
      {"{whole}", "That is the whole vector in every step. A step carries one chunk only, 1/N of it."}},
     fill_volume},
    {"ring-steps",
     "How many steps, one after another, does a ring all-reduce take on {n} ranks?",
     {{"{right}", "N-1 to add a chunk up at one rank, N-1 to bring the result to the others: 2(N-1)."},
      {"{phase}", "That is reduce-scatter alone. After it, each rank has only one complete chunk."},
      {"{twice}", "A chunk already is at its first rank, so each phase needs N-1 moves, not N."},
      {"{messages}", "That counts the messages of all ranks. They send at the same time, one each per step."}},
     fill_steps},
    {"ring-sends",
     "Reduce-scatter on {n} ranks, step k = {k} (counted from 0). Which chunk does rank {rank} send?",
     {{"chunk {sends}", "Rank i sends chunk (i-k) mod N: the one that it received and added to in the step before."},
      {"chunk {takes}",
       "That is the chunk it receives in this step, (i-k-1) mod N. It sends that one in the next step."},
      {"chunk {own}", "Its own number is the chunk of step 0. After that it passes on what came in from the left."},
      {"chunk {forward}", "(i+k) mod N would run against the direction of the ring: that chunk's sum is not here."}},
     fill_move},
    {"ring-adds",
     "Reduce-scatter on {n} ranks, step k = {k} (counted from 0). To which chunk does rank {rank} add what it receives?",
     {{"chunk {takes}",
       "Its left neighbour, rank {left}, sends chunk ({left}-k) mod N; it is added to the chunk of the same number."},
      {"chunk {sends}", "That is the chunk it sends in this step; it has finished its own part in it already."},
      {"chunk {own}", "Its own number is the chunk that it sends in step 0. It never adds to that one in this phase."},
      {"chunk {forward}",
       "Chunks come from the left, where ranks have smaller numbers, so the number goes down with k."}},
     fill_move},
    {"ring-owner",
     "After reduce-scatter in the textbook ring on {n} ranks, which chunk is complete at rank {rank}?",
     {{"chunk {right}",
       "Chunk c starts at rank c and passes all the others; it ends at rank c-1. So rank i ends with chunk (i+1) mod N."},
      {"chunk {own}", "That chunk left rank {rank} in step 0 and now is complete at rank {left}, the last on its way."},
      {"chunk {left}", "Its way ends one rank further back. Follow it: it starts at rank {left} and needs N-1 moves."},
      {"all chunks", "Only one each. To have all of them everywhere is what the second phase is for."}},
     fill_owner},
    {"ring-partner",
     "To whom does rank i send in step k of a ring all-reduce?",
     {{"to rank (i+1) mod N, in every step",
       "Always to the right neighbour. Only the chunk changes from step to step."},
      {"to rank (i+k) mod N", "A new partner in every step is the pattern of all-to-all, not a ring."},
      {"to the rank whose number differs in bit k",
       "That is recursive doubling: log2 N steps, with a partner further away each time."},
      {"to all other ranks", "That is the naive exchange, and it is why that one sends so much."}},
     NULL},
    {"ring-gather",
     "In the all-gather phase of the ring, what does a rank do with a chunk that it receives?",
     {{"It stores it in place of its own.", "The chunk is the complete sum. Nothing is left to add."},
      {"It adds it to its own.", "Then its own part, which is in the sum already, would count twice."},
      {"It divides it by N and adds it to its own.",
       "The chunk is complete; a mean needs one division of the sum and no further addition."},
      {"It keeps both and averages them at the end.",
       "Its own chunk is only a partial sum; mixing it into the complete one spoils that."}},
     NULL},
    {"ring-ratio",
     "On {n} ranks, how many times as much does a rank send in the naive exchange as in the ring?",
     {{"{right} times", "(N-1) * S divided by 2(N-1)/N * S is N/2."},
      {"{n} times", "The ring sends S/N per step, but it has two phases: so N/2, not N."},
      {"{less} times", "That takes the ring's volume for S. It is 2(N-1)/N * S."},
      {"{twice} times", "That is the number of the ring's steps, which has to do with latency, not with volume."}},
     fill_ratio},
    {"ring-limit",
     "More and more ranks join a ring all-reduce of S bytes. What each of them sends ...",
     {{"... comes closer and closer to 2S and never gets there.", "2(N-1)/N = 2 - 2/N."},
      {"... grows in proportion to N.", "That is the naive exchange. In the ring, chunks shrink as steps are added."},
      {"... shrinks towards zero, since chunks get smaller.",
       "Chunks shrink as 1/N, but there are 2(N-1) of them to send."},
      {"... comes closer and closer to S.", "That is one phase. Both together tend to 2S."}},
     NULL},
    {"ring-bound",
     "Why can no exact all-reduce of incompressible numbers get by with less than 2(N-1)/N * S per rank, on average?",
     {{"Each number needs N-1 sends to be summed up, and N-1 more until all know the sum.",
       "2(N-1) sends per number, shared by N ranks."},
      {"Each rank must send its vector to all the others at least once.",
       "It need not: partial sums stand for many vectors at once."},
      {"A link can carry data in only one direction at a time.",
       "The bound counts what is sent, however fast or in whichever direction."},
      {"Each message needs an acknowledgement of the same size.",
       "Acknowledgements are tiny, and the bound does not count them."}},
     NULL},
    {"ring-bits",
     "Floating-point addition depends on the order. Why do all ranks of a ring all-reduce still end with the same bits?",
     {{"Each chunk is summed once, along one path, and that result is copied to all.",
       "There is only one sum of each chunk; nobody computes it a second time."},
      {"Every rank adds in the order 0, 1, 2, ...",
       "Nobody does: chunk c is added up in the order c, c+1, ..., around the ring."},
      {"Addition is commutative, so the order does not matter.",
       "It is commutative but not associative: (a+b)+c and a+(b+c) may differ in the last bit."},
      {"Results are rounded to fewer digits at the end, which hides the difference.",
       "No ring does that, and numbers close to a rounding edge would still differ."}},
     NULL},
    {"ring-places",
     "Two elements, far apart in the vector, hold the same N values on the N ranks. After a ring all-reduce, are their sums equal to the last bit?",
     {{"Not always: elements in different chunks are added up in different orders.",
       "Chunk c starts at rank c. Other starting points group the additions in other ways."},
      {"Yes: the same N values are added.",
       "The same values, but not in the same order; rounding happens after each addition."},
      {"Yes: the ring always begins at rank 0.",
       "If all chunks began at rank 0, its link would be crowded and the others idle. Each begins at another rank."},
      {"Not always: packets may arrive in another order.",
       "The schedule says which chunk is added when; late packets delay it but change nothing."}},
     NULL},
    {"ring-two",
     "Two ranks all-reduce {s} by ring. How much does each send?",
     {{"{right}",
       "2(N-1)/N is 1 for N = 2: as much as in the naive exchange, {naive}. The ring begins to save at three ranks."},
      {"{half}", "That is one phase: half of the vector is summed here. The sum of that half must still be sent back."},
      {"{twice}", "2S is the limit for very many ranks, not the volume for two."},
      {"nothing at all", "Each holds numbers that the other needs."}},
     fill_two},
    {"ring-uneven",
     "A vector of {elements} elements is cut for {n} ranks. What chunks does Coset make?",
     {{"sizes {least} and {most}, as even as possible",
       "Chunk i is the range from i*count/N to (i+1)*count/N. Sizes differ by one, and no work is added."},
      {"{n} equal ones, after padding to {padded} elements",
       "Padding is a way, but it sends elements that nobody needs."},
      {"{down} each, and the last one takes the rest: {rest}",
       "Then the last chunk is the slowest in every step, and all ranks wait for it."},
      {"none: the count must be divisible by {n}",
       "Some libraries ask for that. It is not needed: chunks may have different sizes."}},
     fill_uneven},
    {"ring-phase",
     "Only the reduce-scatter phase is needed: each of {n} ranks wants its own part of the sum of {s}. What does each send?",
     {{"{right}", "N-1 steps of one chunk: (N-1)/N * S, half of an all-reduce."},
      {"{all}", "That is the whole all-reduce: the second phase, all-gather, is left out here."},
      {"{chunk}", "One chunk is what it ends with. To get there, all other chunks had to pass through its hands."},
      {"{naive}", "Nobody needs whole vectors here, only sums of chunks."}},
     fill_phase},
    {"ring-slow",
     "In a ring of {n} ranks one link has 1/{factor} of the others' bandwidth. How much longer does a large all-reduce take?",
     {{"about {right} times as long",
       "Each link carries 2(N-1)/N * S, the slow one too, and nobody can go on without what comes over it."},
      {"about {average} times as long",
       "That is the average over the links. But steps end when the slowest link is done."},
      {"about {share} times as long", "The slow link carries not 1/N of the data but as much as any other."},
      {"as long: the other links make up for it",
       "There is only one way around a ring; nothing can be sent around the slow link."}},
     fill_slow},
    {0},
};
