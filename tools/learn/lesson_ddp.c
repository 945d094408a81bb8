/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson 3: data-parallel training; buckets, overlap, clipping. */
#include "learn/lessons.h"
#include "learn/timeline.h"

#include <math.h>

enum { AXIS = 64 };

static void the_idea(learn_book *b)
{
    learn_page(b, NULL, "Training together");
    learn_text(
        b, "In data-parallel training (DDP) every rank has a whole copy of the model. In each step it takes its own "
           "part of the data, and then:");
    learn_item(b, "Forward: compute the loss.");
    learn_item(b, "Backward: compute a gradient for every weight, from the last layer to the first.");
    learn_item(b, "All-reduce: take the mean of the gradients over all ranks.");
    learn_item(b, "Optimizer: change the weights, on every rank by the same rule.");
    learn_key(b,
              "Weights are never sent after the start. They stay equal since all ranks begin with the same weights and "
              "apply the same mean gradient: the same bits.");
    learn_text(
        b, "Mean, not sum: the gradient of a loss averaged over N times as much data is the mean of the N gradients. "
           "With the sum, every step would be N times as long.");
}

static void buckets(learn_book *b)
{
    learn_page(b, NULL, "Buckets");
    learn_text(b, "When should a gradient be sent? Two bad answers:");
    learn_item(b, "Each tensor at once. A model has hundreds, many of them tiny, and each all-reduce pays its 2(N-1) "
                  "latencies.");
    learn_item(
        b, "All at the end, in one piece. Few messages, but nothing is sent while backward computes, and nothing is "
           "computed while they are sent.");
    learn_text(
        b, "So gradients are gathered in buckets of some 25 MiB. A full bucket is sent at once, while backward goes on "
           "with the layers before it: overlap.");
    learn_text(
        b, "Backward produces the last layer's gradient first. So buckets are filled in reverse order of the layers: "
           "the first bucket is full early.");
    learn_text(
        b, "All ranks must start the buckets in the same order, even if their gradients become ready in another one: "
           "an all-reduce matches the n-th call of one rank with the n-th call of the others.");
    learn_text(
        b, "A parameter that took no part in the forward pass gets no gradient: its bucket would never be full. Ranks "
           "must agree on such parameters and count them as zero.");
}

/* `intro` names the plan; `after` follows the figures. */
static void timeline(learn_book *b, int which, const char *intro, const char *after)
{
    learn_timeline t;
    learn_run(&learn_plans[which], &t);
    learn_bytes_text exposed, comm, backward;
    learn_seconds(exposed, t.exposed_s);
    learn_seconds(comm, t.comm_s);
    learn_seconds(backward, t.backward_s);
    learn_draft d;
    learn_draft_open(&d);
    learn_timeline_draw(d.out, &t, AXIS);
    if (which == LEARN_PLAN_ONE)
        fputs("(L8: backward of layer 8   -: a bucket fills   #: it is sent)\n", d.out);
    learn_text(b, "%s", intro);
    learn_drawing(b, "timeline", &d,
                  "%d buckets. Backward takes %s, communication %s, of which %s are after the end of backward.",
                  t.buckets, backward, comm, exposed);
    learn_text(b, "Backward %s, communication %s, exposed (after backward) %s. %s", backward, comm, exposed, after);
}

static void overlap(learn_book *b)
{
    learn_page(b, NULL, "Overlap as a time line");
    timeline(b, LEARN_PLAN_ONE,
             "100 MiB of gradients, 8 layers, 4 ranks, 25 Gbit/s. All in one bucket, there is no overlap:", "");
    timeline(b, LEARN_PLAN_FOUR,
             "In four buckets of 25 MiB, three are hidden behind backward:", "Only the last bucket is not hidden.");
}

static void last_bucket(learn_book *b)
{
    learn_page(b, NULL, "The last bucket");
    timeline(
        b, LEARN_PLAN_TAIL,
        "The last bucket to fill holds the first layers. When it is full, backward is over: it has nothing left to hide "
        "behind. So it should be small. Here the first layer (1 MiB) has a bucket of its own:",
        "The first bucket is often made small too, so that communication begins early.");
    learn_key(b, "What counts is not how long communication takes but how much of it is exposed.");
    learn_text(b,
               "If communication takes longer than backward, buckets queue up and no order of them hides it. Then send "
               "less often (accumulate gradients of several small batches before one all-reduce) or send fewer bits "
               "(compression).");
}

static void clipping(learn_book *b)
{
    /* Two ranks, two weights: long gradients that nearly cancel in the first weight. */
    double f1 = learn_clip_factor(6, 8, 5), f2 = learn_clip_factor(-6, 8, 5), f = learn_clip_factor(0, 8, 5);
    learn_page(b, NULL, "Where clipping belongs");
    learn_text(
        b, "Clipping shortens a gradient that is too long: if its norm is above a limit, all of it is multiplied by "
           "limit / norm. The norm is that of all gradients together, after all-reduce.");
    learn_item(b,
               "Not before: two ranks have the gradients (6, 8) and (-6, 8), limit 5. Clipped one by one they become "
               "(%g, %g) and (%g, %g), with the mean (%g, %g). The mean gradient is (0, 8), and clipped (0, %g). "
               "Clipping the parts cut what cancels anyway, and so shortened the step for no reason.",
               6 * f1, 8 * f1, -6 * f2, 8 * f2, (6 * f1 - 6 * f2) / 2, (8 * f1 + 8 * f2) / 2, 8 * f);
    learn_item(
        b, "Not bucket by bucket: the factor needs the norm of the whole gradient. Sums of squares can be collected "
           "per bucket, but the factor is known only after the last one.");
    learn_item(
        b, "Not differently on each rank: all must use the same factor, to the last bit, or their weights drift apart. "
           "They can: after all-reduce all hold the same bits.");
    learn_key(
        b,
        "The order of a step: backward and all-reduce overlapped, wait for the last bucket, norm and clip, optimizer.");
}

void learn_lesson_ddp(learn_book *b, const learn_choice *choice)
{
    (void)choice;
    the_idea(b);
    buckets(b);
    overlap(b);
    last_bucket(b);
    clipping(b);
}
