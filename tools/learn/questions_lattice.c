/* SPDX-License-Identifier: Apache-2.0 */
/* Questions on lattice codes. */
#include "learn/questions.h"
#include "learn/plane.h"

#include <math.h>

static const int qs[LEARN_VARIANTS] = {16, 64, 4, 256};

static void fill_bits(learn_values *v, int variant)
{
    int q = qs[variant];
    enum { BLOCK = 4096 };
    learn_put(v, "q", q);
    learn_put(v, "block", BLOCK);
    learn_put(v, "bits", learn_bits(q));
    learn_put_bytes(v, "right", BLOCK * learn_bits(q) / 8);
    learn_put_bytes(v, "values", (double)BLOCK * q / 8);
    learn_put_bytes(v, "bytes_each", BLOCK * learn_bits(q));
}

static void fill_saving(learn_values *v, int variant)
{
    int q = qs[variant];
    learn_put(v, "q", q);
    learn_put(v, "bits", learn_bits(q));
    learn_put_as(v, "right", 32 / learn_bits(q), "%.1f");
    learn_put_as(v, "levels", pow(2, 32 - learn_bits(q)), "%.0f");
    learn_put_as(v, "bytes", 4 / learn_bits(q), "%.2f");
    learn_put_as(v, "minus", 32 - learn_bits(q), "%.0f");
}

static void fill_decode(learn_values *v, int variant)
{
    static const struct {
        int q, colour;
        double own;
    } cases[LEARN_VARIANTS] = {{8, 3, 21.4}, {10, 7, 42.6}, {16, 5, 98.2}, {4, 1, 14.6}};
    int q = cases[variant].q, colour = cases[variant].colour;
    double own = cases[variant].own;
    int right = learn_decode1(colour, own, 1, q);
    learn_put(v, "q", q);
    learn_put(v, "colour", colour);
    learn_put(v, "own", own);
    learn_put(v, "right", right);
    learn_put(v, "rounded", learn_round(own));
    learn_put(v, "other", right < own ? right + q : right - q);
}

static const struct {
    int q;
    double s;
} steps[LEARN_VARIANTS] = {{16, 0.5}, {8, 0.2}, {4, 1}, {64, 0.1}};

static void fill_reach(learn_values *v, int variant)
{
    int q = steps[variant].q;
    double s = steps[variant].s;
    learn_put(v, "q", q);
    learn_put(v, "s", s);
    learn_put(v, "right", learn_reach(s, q));
    learn_put(v, "period", q * s);
    learn_put(v, "twice", 2 * learn_reach(s, q));
    learn_put(v, "half", s / 2);
}

static void fill_wrong_by(learn_values *v, int variant)
{
    int q = steps[variant].q;
    double s = steps[variant].s;
    int sent = 5, got = learn_decode1(learn_colour(sent, q), s * (sent + 0.8 * q), s, q);
    learn_put(v, "q", q);
    learn_put(v, "s", s);
    learn_put(v, "right", s * (got - sent));
    learn_put(v, "one", s);
    learn_put(v, "half", s / 2);
    learn_put(v, "reach", learn_reach(s, q));
}

static void fill_step(learn_values *v, int variant)
{
    static const double distance[LEARN_VARIANTS] = {3, 6.3, 1.5, 0.51};
    int q = qs[variant];
    double y = distance[variant];
    learn_put(v, "q", q);
    learn_put(v, "y", y);
    learn_put_as(v, "right", learn_step(y, q), "%.4g");
    learn_put_as(v, "single", learn_step(y, q) / 2, "%.4g");
    learn_put_as(v, "no_rounding", 2 * y / q, "%.4g");
    learn_put_as(v, "quarter", y / q, "%.4g");
}

static void fill_error(learn_values *v, int variant)
{
    static const double width[LEARN_VARIANTS] = {0.6, 1.2, 0.12, 12};
    double s = width[variant];
    learn_put(v, "s", s);
    learn_put(v, "right", learn_error(s));
    learn_put(v, "worst", s * s / 4);
    learn_put(v, "half", s / 2);
}

static void fill_mean(learn_values *v, int variant)
{
    static const int ranks[LEARN_VARIANTS] = {16, 4, 10, 64};
    int n = ranks[variant];
    double one = learn_error(1.2);
    learn_put(v, "n", n);
    learn_put(v, "s", 1.2);
    learn_put_as(v, "right", one / n, "%.4g");
    learn_put_as(v, "one", one, "%.4g");
    learn_put_as(v, "square", one / n / n, "%.3g");
    learn_put_as(v, "sum", one * n, "%.4g");
}

static void fill_one_more(learn_values *v, int variant)
{
    static const int from[LEARN_VARIANTS] = {16, 32, 64, 128};
    int q = from[variant];
    learn_put(v, "bits", learn_bits(q));
    learn_put(v, "more", learn_bits(2 * q));
    learn_put_as(v, "right", learn_error(learn_step(1, q)) / learn_error(learn_step(1, 2 * q)), "%.0f");
    learn_put_as(v, "root", learn_step(1, q) / learn_step(1, 2 * q), "%.0f");
    learn_put(v, "q", q);
}

static void fill_scaled(learn_values *v, int variant)
{
    static const double largest[LEARN_VARIANTS] = {1000, 200, 50, 10000};
    double size = largest[variant];
    int q = 16;
    learn_put(v, "size", size);
    learn_put(v, "q", q);
    learn_put(v, "bits", learn_bits(q));
    learn_put(v, "right", learn_step(size, q) / learn_step(1, q));
    learn_put(v, "root", sqrt(size));
}

static void fill_checksum(learn_values *v, int variant)
{
    static const learn_point points[LEARN_VARIANTS] = {{5, 4}, {2, 7}, {11, 3}, {8, 6}};
    learn_point z = points[variant], got = {z.k1 + LEARN_Q, z.k2};
    learn_put(v, "key1", LEARN_KEY1);
    learn_put(v, "key2", LEARN_KEY2);
    learn_put(v, "prime", LEARN_PRIME);
    learn_put(v, "q", LEARN_Q);
    learn_put(v, "k1", z.k1);
    learn_put(v, "k2", z.k2);
    learn_put(v, "got1", got.k1);
    learn_put(v, "sent", learn_checksum(z));
    learn_put(v, "got", learn_checksum(got));
    learn_put(v, "colours", learn_checksum((learn_point){learn_colour(z.k1, LEARN_Q), learn_colour(z.k2, LEARN_Q)}));
}

const learn_question learn_questions_lattice[] = {
    {"lattice-idea",
     "What does a rank send in a lattice code?",
     {{"the colour of the nearest lattice point: its coordinates mod q",
       "The receiver finds out which point of that colour is meant, with its own vector."},
      {"the difference to the receiver's vector", "It does not know the receiver's vector, and need not."},
      {"the nearest lattice point in full", "That takes more bits the larger the numbers are. The colour does not."},
      {"its vector, scaled by its largest number",
       "That is the usual quantiser, whose error grows with the largest number."}},
     NULL},
    {"lattice-bits",
     "A block of {block} coordinates is coded with q = {q}. How large are the codes?",
     {{"{right}", "log2 q = {bits} bits per coordinate."},
      {"{values}", "q is the number of values that a code can have; it takes log2 q bits to name one."},
      {"{bits} bits", "That is one coordinate. There are {block} of them."},
      {"{bytes_each}", "log2 q are bits, not bytes."}},
     fill_bits},
    {"lattice-saving",
     "Codes with q = {q} replace 32-bit floats. How many times less is sent?",
     {{"{right} times", "32 bits against log2 q = {bits} bits."},
      {"{levels} times", "That compares the numbers of values, not the numbers of bits."},
      {"{minus} times", "That is how many bits are saved per number: a difference, not a ratio."},
      {"{bytes} times", "That compares 4 bytes with {bits} bits."}},
     fill_saving},
    {"lattice-decode",
     "One coordinate, step 1, q = {q}. The code {colour} arrives; the receiver's own number is {own}. What does it decode?",
     {{"{right}", "Of all numbers that are {colour} mod {q}, it is the nearest to {own}."},
      {"{colour}", "That takes the code for the number itself. It is only the remainder."},
      {"{rounded}", "That is the receiver's own number, rounded. It only helps to choose."},
      {"{other}", "It has the right remainder, but it is further away from {own}."}},
     fill_decode},
    {"lattice-shift",
     "A million is added to every number of both the sender's and the receiver's vector. The error of the decoded vector ...",
     {{"... stays the same.", "Only the step counts, and the step follows from how far the two are apart."},
      {"... grows in proportion.", "So it would with a quantiser that scales by the largest number."},
      {"... grows by a few bits.", "Codes are remainders: as short as before."},
      {"... cannot be told: decoding fails.",
       "Decoding depends on the distance of the two vectors, and that has not changed."}},
     NULL},
    {"lattice-reach",
     "q = {q}, step {s}. Up to which distance per coordinate between sender and receiver is decoding certain?",
     {{"{right}", "(q-1)/2 * s: half the way between points of a colour, less half a step for the rounding."},
      {"{period}", "That is the distance between points of one colour. Half-way, the next one is nearer already."},
      {"{twice}", "It must hold to either side, so it is half of this."},
      {"{half}", "That is the largest rounding error, not the reach."}},
     fill_reach},
    {"lattice-step",
     "Vectors differ by at most y = {y} per coordinate, q = {q}. Which is the smallest step that is safe?",
     {{"{right}", "(q-1)/2 * s must be y, so s = 2y/(q-1)."},
      {"{no_rounding}", "That leaves no room for the rounding, which moves the point by up to half a step."},
      {"{single}", "The receiver may be y above or y below: the colours have to cover 2y."},
      {"{quarter}", "It misses both: 2y is to be covered, with q-1 steps."}},
     fill_step},
    {"lattice-error",
     "Step s = {s}, with dither. What is the mean square error of one decoded coordinate?",
     {{"{right}", "The error is spread evenly over -s/2 to s/2: s^2/12."},
      {"{worst}", "(s/2)^2 is the worst case. On average it is a third of this."},
      {"{half}", "s/2 is the largest error, not its mean square."},
      {"0", "Dither makes the error zero on average, but each error is there, and its square too."}},
     fill_error},
    {"lattice-mean",
     "{n} ranks, step {s}, each with dither of its own. What is the mean square error of the mean of the decoded numbers, per coordinate?",
     {{"{right}", "Independent errors average out: s^2/12 divided by N."},
      {"{one}",
       "That would be so if all ranks used the same dither and had the same number: then errors do not average out."},
      {"{square}",
       "The sum of N independent errors has N times the mean square; dividing it by N leaves 1/N, not 1/N^2."},
      {"{sum}", "That is the error of the sum, not of the mean."}},
     fill_mean},
    {"lattice-dither",
     "Why is a random offset added before rounding, and subtracted after decoding?",
     {{"So that the error has mean zero, whatever the number is.",
       "Without it, a number is rounded the same way every time, and the mean of many roundings is off by as much as one."},
      {"So that others cannot read the vector.",
       "The offset comes from a shared seed; it is no secret and no protection."},
      {"So that the codes get shorter.", "They have log2 q bits with or without it."},
      {"So that the receiver finds the right point more often.", "The reach is the same. What changes is the bias."}},
     NULL},
    {"lattice-same",
     "All ranks use the same dither. What is wrong with that?",
     {{"Their rounding errors resemble each other and no longer average out in the mean.",
       "If ranks have nearly equal numbers, all are rounded in the same direction."},
      {"The mean becomes biased.",
       "Each estimate is still unbiased. But the mean's error is as large as a single one's."},
      {"The receiver can no longer subtract it.", "It can: it knows the seed either way."},
      {"Nothing: shared randomness must be the same for all.",
       "The seed is shared. The streams drawn from it must be different for each sender."}},
     NULL},
    {"lattice-far",
     "The receiver's vector is much further from the sender's than the reach. What happens?",
     {{"It decodes a wrong point, close to its own vector, and the code alone does not tell.",
       "The wrong point has the right colour and is where a right one could be. It takes a checksum to notice."},
      {"It finds no point of that colour.", "There is always one nearby: every colour comes back after q steps."},
      {"The error grows a little with the distance.", "It jumps: by q steps at once."},
      {"It decodes the sender's point, but with fewer digits.", "It decodes another point altogether."}},
     NULL},
    {"lattice-wrong-by",
     "q = {q}, step {s}; the distance bound is broken and one coordinate is decoded wrong. By how much, at least?",
     {{"{right}", "By q steps: the next point of the same colour."},
      {"{one}", "Neighbouring points have different colours, so they cannot be mixed up."},
      {"{half}", "That is the largest rounding error, which is always there. This comes on top."},
      {"{reach}", "That is the reach. Points of one colour are further apart: q steps."}},
     fill_wrong_by},
    {"lattice-checksum",
     "h = ({key1} * k1 + {key2} * k2) mod {prime}, q = {q}. The sender's point is ({k1}, {k2}); the receiver decodes ({got1}, {k2}). What does it find?",
     {{"{sent} came, {got} computed: wrong, and noticed",
       "The checksum is over the whole coordinates, so another point of the same colour has another one."},
      {"{sent} came, {sent} computed: wrong, and not noticed",
       "The colours are the same, but the checksum is taken before mod q."},
      {"{colours} came, {colours} computed: wrong, and not noticed",
       "That is a checksum of the colours, which are the same for right and wrong points. It would be useless."},
      {"nothing: ({got1}, {k2}) is no point of that colour", "It is: k1 differs by q, so the remainder is the same."}},
     fill_checksum},
    {"lattice-repair",
     "A checksum fails. Why not just send the exact vector instead?",
     {{"Only unlucky roundings would be replaced, so those that are kept would be biased.",
       "So the sender sends more digits of the same rounded point."},
      {"It would take too many bytes.", "Failures are rare; that would be bearable. The bias is the reason."},
      {"The sender does not have it any more.", "It does. It must not use it, for the sake of the mean."},
      {"The receiver could not decode it.",
       "It could, but then the result would depend on whether the rounding was unlucky."}},
     NULL},
    {"lattice-one-more",
     "For the same distance between vectors, {more} instead of {bits} bits per coordinate are sent. The mean square error becomes about ...",
     {{"{right} times smaller", "Half the step, so a quarter of its square."},
      {"{root} times smaller", "That is the error itself. The question is about its square."},
      {"{q} times smaller", "q doubles; the step is halved, no more."},
      {"no smaller: only the reach grows",
       "With the same step the reach would double. For the same reach the step is halved."}},
     fill_one_more},
    {"lattice-scaled",
     "Numbers are as large as {size}, but ranks differ by at most 1. At {bits} bits per coordinate, how many times finer is the lattice code's step than that of a quantiser over -{size} to {size}?",
     {{"{right} times", "The step follows the distance, 1, not the size, {size}."},
      {"{q} times", "Both have q = {q} values. They differ in what these have to cover."},
      {"{root} times", "No square root here: both steps are proportional to the range that is covered."},
      {"not at all: the bits are the same", "The same bits cover a range {size} times smaller."}},
     fill_scaled},
    {"lattice-when-not",
     "When is a quantiser that scales by the vector's own size the better choice?",
     {{"When vectors are short and as different from each other as they are long.",
       "Then the receiver's own vector tells nothing about the sender's, and codes that use it have nothing to gain."},
      {"When vectors are long and close together.", "That is where lattice codes win most."},
      {"When there are many ranks.", "The number of ranks decides little; how alike their vectors are decides."},
      {"Never.",
       "Lattice codes spend bits on the worst case of a distance; where the distance is as large as the vector, others spend fewer."}},
     NULL},
    {0},
};
