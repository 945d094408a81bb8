/* SPDX-License-Identifier: Apache-2.0 */
/* Questions on data-parallel training. */
#include "learn/questions.h"
#include "learn/timeline.h"

#include <math.h>

/* The lessons' four buckets over faster and slower links. */
static void fill_exposed(learn_values *v, int variant)
{
    static const double speeds[LEARN_VARIANTS] = {3.125e9, 6.25e9, 1.25e9, 2.5e9};
    learn_plan plan = learn_plans[LEARN_PLAN_FOUR];
    plan.link.bytes_per_s = speeds[variant];
    learn_timeline t;
    learn_run(&plan, &t);
    learn_put_time(v, "backward", t.backward_s);
    learn_put_time(v, "every", t.bucket[0].full_s);
    learn_put_time(v, "each", t.bucket[0].done_s - t.bucket[0].start_s);
    learn_put_time(v, "right", t.exposed_s);
    learn_put_time(v, "all", t.comm_s);
    learn_put_time(v, "three", t.comm_s * 3 / 4);
}

static void fill_one_bucket(learn_values *v, int variant)
{
    static const double speeds[LEARN_VARIANTS] = {3.125e9, 6.25e9, 1.25e9, 2.5e9};
    learn_plan plan = learn_plans[LEARN_PLAN_ONE];
    plan.link.bytes_per_s = speeds[variant];
    learn_timeline t;
    learn_run(&plan, &t);
    learn_put_time(v, "backward", t.backward_s);
    learn_put_time(v, "comm", t.comm_s);
    learn_put_time(v, "right", t.done_s);
    learn_put_time(v, "longer", fmax(t.backward_s, t.comm_s));
    learn_put_time(v, "half", t.backward_s + t.comm_s / 2);
    learn_put_time(v, "twice", t.backward_s + 2 * t.comm_s);
}

static void fill_clip(learn_values *v, int variant)
{
    static const double cases[LEARN_VARIANTS][3] = {{6, 8, 5}, {12, 16, 10}, {9, 12, 5}, {3, 4, 2.5}};
    double a = cases[variant][0], b = cases[variant][1], limit = cases[variant][2];
    learn_put(v, "a", a);
    learn_put(v, "b", b);
    learn_put(v, "limit", limit);
    learn_put(v, "right", b * learn_clip_factor(a, b, limit));
    learn_put(v, "after", b * learn_clip_factor(0, b, limit));
    learn_put(v, "mean", b);
    learn_put(v, "norm", hypot(a, b));
}

static void fill_sum(learn_values *v, int variant)
{
    static const int ranks[LEARN_VARIANTS] = {4, 16, 9, 64};
    int n = ranks[variant];
    learn_put(v, "n", n);
    learn_put(v, "root", sqrt(n));
}

static void fill_accumulate(learn_values *v, int variant)
{
    static const struct {
        int n, batches;
        size_t mib;
    } cases[LEARN_VARIANTS] = {{8, 3, 400}, {4, 8, 100}, {16, 5, 800}, {5, 4, 50}};
    int n = cases[variant].n, batches = cases[variant].batches;
    size_t s = cases[variant].mib << 20;
    double once = (double)learn_sent(LEARN_RING, n, s);
    learn_put(v, "n", n);
    learn_put(v, "batches", batches);
    learn_put_bytes(v, "s", (double)s);
    learn_put_bytes(v, "right", once);
    learn_put_bytes(v, "each", once * batches);
    learn_put_bytes(v, "part", once / batches);
    learn_put_bytes(v, "naive", (double)learn_sent(LEARN_NAIVE, n, s));
}

const learn_question learn_questions_ddp[] = {
    {"ddp-reverse",
     "Why are gradient buckets filled in reverse order of the layers?",
     {{"Backward computes the last layer's gradients first.",
       "So the first bucket is full early and can be sent while backward goes on."},
      {"The last layers have the largest gradients.",
       "Size does not matter for the order; the time at which they are ready does."},
      {"The optimizer updates the last layer first.",
       "The optimizer begins when all gradients are reduced (and clipped), in any order."},
      {"A ring sends chunks in reverse order.",
       "The order of chunks inside an all-reduce has nothing to do with layers."}},
     NULL},
    {"ddp-tensors",
     "Why not all-reduce every gradient tensor on its own as soon as it is ready?",
     {{"There are hundreds, many tiny, and each all-reduce pays all its latencies.",
       "Buckets gather them, so that the latencies are paid once per bucket."},
      {"A single tensor cannot be cut into N chunks.", "It can, even if it is small."},
      {"The mean of a single tensor would not be exact.",
       "The mean is taken element by element; how elements are gathered does not change it."},
      {"It would send more bytes.", "The bytes are the same; the number of messages is what hurts."}},
     NULL},
    {"ddp-one",
     "Backward takes {backward}, and all gradients are then all-reduced in one piece, {comm}. How long until the optimizer can begin?",
     {{"{right}", "One after the other: nothing is sent before the last gradient is there."},
      {"{longer}", "That would be perfect overlap. But one bucket is full only when backward is over."},
      {"{half}", "Nothing of the communication is hidden: it cannot begin before the end of backward."},
      {"{twice}", "The {comm} are for both phases of the all-reduce already."}},
     fill_one_bucket},
    {"ddp-exposed",
     "Backward takes {backward}. Every {every} a bucket is full; its all-reduce takes {each}, one at a time. How long after backward is everything reduced?",
     {{"{right}",
       "Each bucket is sent when it is full and the one before is done; follow the four one by one. The last begins at the end of backward, or later."},
      {"{all}", "That is all communication. Part of it runs while backward computes."},
      {"nothing: all of it is hidden", "The last bucket is full only when backward ends, so it cannot be hidden."},
      {"{three}", "That hides only the first bucket. All buckets but the last can begin before backward ends."}},
     fill_exposed},
    {"ddp-last",
     "Which bucket can never be hidden behind backward?",
     {{"The last one to fill, with the first layers.", "When it is full, backward is over. So it should be small."},
      {"The first one to fill, with the last layers.", "That one has nearly all of backward to hide behind."},
      {"The largest one.", "It can be hidden if it is full early enough."},
      {"None: with enough buckets everything is hidden.",
       "The last gradient is ready when backward ends, and it still has to be sent."}},
     NULL},
    {"ddp-order",
     "Gradients become ready in a different order on different ranks. What about the buckets' all-reduces?",
     {{"All ranks must start them in the same order.",
       "The n-th call of one rank meets the n-th call of the others. Otherwise they mix up buckets, or wait forever."},
      {"Each rank starts the bucket that is full first.",
       "Then bucket 2 of one rank would be summed with bucket 3 of another."},
      {"The order does not matter, since sums are commutative.",
       "The sum is, but the messages have to meet their counterparts."},
      {"They have to wait until backward has ended on all ranks.",
       "That would be safe but hides nothing. A fixed order is enough."}},
     NULL},
    {"ddp-clip-place",
     "Where in a training step does clipping by the norm belong?",
     {{"after the last bucket is reduced, before the optimizer",
       "Then the norm is that of the mean gradient, the same on every rank."},
      {"on each rank before the all-reduce",
       "Then parts are cut that would have cancelled in the mean; and the mean of clipped vectors is not the clipped mean."},
      {"on each bucket as soon as it is reduced",
       "The norm of the whole gradient is not known yet, and buckets would be scaled differently."},
      {"on the weights, after the optimizer", "By then the long step has been taken."}},
     NULL},
    {"ddp-clip-local",
     "Two ranks have the gradients ({a}, {b}) and (-{a}, {b}); the limit is {limit}. Each clips its own, then the mean is taken. How long is it?",
     {{"{right}",
       "Each was shortened for a part that cancels in the mean. Clipped after the all-reduce it would be {after}."},
      {"{after}", "That is the right order: the mean first, then the clip. Here it was done the other way round."},
      {"{mean}", "That is the mean of the gradients as they were. They were clipped before."},
      {"{norm}", "That is the norm of one rank's gradient before clipping."}},
     fill_clip},
    {"ddp-clip-factor",
     "Why must all ranks use the same clipping factor, to the last bit?",
     {{"Otherwise their weights drift apart.",
       "Weights are never compared again; a difference in the last bit stays and grows."},
      {"Otherwise the all-reduce after it fails.", "No all-reduce comes after it; the step is the next thing."},
      {"Because the norm must not be above the limit on any rank.",
       "A last bit would not matter for that. It matters for equality."},
      {"It need not be: the optimizer rounds anyway.", "Optimizers do not round away differences between ranks."}},
     NULL},
    {"ddp-sum",
     "{n} ranks all-reduce their gradients with a sum and forget to divide. With plain SGD, the step is ...",
     {{"... {n} times as long as it should be.",
       "The sum is N times the mean: as if the learning rate were N times as large."},
      {"... as long as it should be.", "Only if the loss had been divided by N before."},
      {"... {root} times as long as it should be.", "That is how noise grows in a sum. The common part grows with N."},
      {"... 1/{n} of what it should be.", "Dividing twice would do that."}},
     fill_sum},
    {"ddp-accumulate",
     "{n} ranks, gradients of {s}, ring. Gradients of {batches} small batches are accumulated before one all-reduce. What does each rank send for these {batches} batches?",
     {{"{right}", "One all-reduce, 2(N-1)/N * S, however many batches were added up locally."},
      {"{each}", "That is an all-reduce after every batch: just what accumulation avoids."},
      {"{part}", "The accumulated gradient is as large as a single one; it is sent once, in full."},
      {"{naive}", "That is a naive exchange."}},
     fill_accumulate},
    {"ddp-equal",
     "How do the copies of the model stay equal on all ranks?",
     {{"They start equal, and every step applies the same mean gradient by the same rule.",
       "Same bits in, same rule, same bits out."},
      {"The weights are averaged after every step.",
       "That is model averaging, another method. DDP sends gradients only."},
      {"Rank 0 sends its weights to all after every step.", "Only once, at the start."},
      {"They do not, but the differences cancel.",
       "Differences would not cancel but grow. The same bits on all ranks are what counts."}},
     NULL},
    {"ddp-unused",
     "A parameter takes no part in the forward pass on one rank. What must happen?",
     {{"The ranks agree on it, and the rank counts its gradient as zero.",
       "Otherwise its bucket would never be full there, and the others would wait."},
      {"Nothing: the bucket is sent without it.",
       "All ranks must send the same elements, or sums go to the wrong places."},
      {"The other ranks drop the parameter for good.",
       "It may take part in the next step, or has a gradient on other ranks now."},
      {"The rank leaves the job.", "Its other gradients are needed."}},
     NULL},
    {"ddp-slow",
     "One of the ranks needs 20% longer for backward than the others. What does the step time follow?",
     {{"the slow rank: all wait for its last bucket", "A sum is complete only with everybody's part."},
      {"the average of the ranks", "The fast ones cannot finish a sum without the slow one."},
      {"the fast ranks: the slow one catches up in the next step",
       "It cannot: every step ends with everybody's gradients."},
      {"the majority", "DDP waits for all. Leaving out the slowest changes the result, and DDP does not do that."}},
     NULL},
    {0},
};
