/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson 4: lattice codes, in two dimensions. */
#include "learn/lessons.h"
#include "learn/plane.h"

#include <math.h>

static void the_clock(learn_book *b)
{
    learn_page(b, NULL, "What is the time? 17 past");
    learn_text(
        b,
        "Somebody asks for the time and you say: 17 past. That is enough if the other one's own clock is off by less "
        "than half an hour: of all times that are 17 past, the one nearest to the own clock is meant.");
    learn_text(b, "The hour was not sent. It could be any number, however large: the message stays as short.");
    learn_text(
        b,
        "And if the own clock is off by more than half an hour, the answer is wrong by a whole hour, or several, and "
        "nothing in the message tells.");
    learn_text(
        b, "Vectors that many ranks hold, such as gradients of the same model or copies of a model, are often similar: "
           "long, but close together. So send the minutes and let the receiver find the hour in its own vector.");
    learn_key(b, "How many bits a code needs depends on how far the ranks disagree, not on how large the numbers are.");
    learn_text(b, "Next: the minutes of a point in the plane.");
}

static void rounding(learn_book *b)
{
    learn_point z = learn_nearest(learn_sender, 1);
    learn_draft d;
    learn_page(b, NULL, "Rounding to a lattice");
    learn_text(
        b,
        "The sender has x = (%g, %g), drawn `x`. The dots are the lattice: points with whole coordinates, times a "
        "step s (here 1). It rounds x to the nearest point z = (%d, %d), which is marked.",
        learn_sender.x, learn_sender.y, z.k1, z.k2);
    learn_draft_open(&d);
    learn_plane_draw(d.out, &(learn_view){.sent = &z, .sender = &learn_sender});
    learn_drawing(b, "plane", &d, "A grid of points; x at (%g, %g) and its nearest point (%d, %d).", learn_sender.x,
                  learn_sender.y, z.k1, z.k2);
}

static void dither(learn_book *b)
{
    enum { DRAWS = 10 };
    double sum = 0, x = learn_sender.x;
    learn_draft d;
    learn_page(b, NULL, "Rounding without bias");
    learn_text(
        b,
        "Plain rounding is wrong always in the same way: %g becomes %d each time, and so does the mean of many such "
        "roundings. So a random offset t, the dither, is added before rounding and subtracted after it. Sender and "
        "receiver draw the same t from a shared seed, so it is never sent.",
        x, learn_round(x));
    learn_draft_open(&d);
    fputs("t\tround(x+t) - t\n", d.out);
    for (int i = 0; i < DRAWS; i++) {
        double theta = (i + 0.5) / DRAWS;
        sum += learn_dithered(x, theta, 1);
        if (i % 2 == 0)
            fprintf(d.out, "%.2f\t%.2f\n", theta, learn_dithered(x, theta, 1));
    }
    fprintf(d.out, "mean of %d\t%.2f\n", DRAWS, sum / DRAWS);
    learn_table(b, &d, "x = %g, step 1, ten dithers spread evenly (every other one shown)", x);
    learn_text(
        b, "Now the error is spread evenly over half a step to either side, whatever x is: no bias, and a mean square "
           "of s^2/12. Every rank uses dither of its own, so in a mean over N ranks the errors average out. "
           "The pictures leave the dither away.");
}

static void colours(learn_book *b)
{
    learn_point z = learn_nearest(learn_sender, 1);
    learn_draft d;
    learn_page(b, NULL, "Colours");
    learn_text(
        b,
        "Colour the point (k1, k2) by (k1 mod q, k2 mod q). With q = %d there are %d colours, letters A to %c. Points of "
        "one colour are q steps apart. The sender sends only the colour of z, `%c`: %g bits per coordinate.",
        LEARN_Q, LEARN_Q * LEARN_Q, learn_letter((learn_point){LEARN_Q - 1, LEARN_Q - 1}, LEARN_Q),
        learn_letter(z, LEARN_Q), learn_bits(LEARN_Q));
    learn_draft_open(&d);
    learn_plane_draw(d.out, &(learn_view){.letters = 1, .sent = &z});
    learn_drawing(b, "plane", &d,
                  "The grid of points lettered by colour; every letter comes back after %d points in each direction.",
                  LEARN_Q);
    learn_text(b, "All points of one colour are a coset of the coarser lattice: hence the library's name.");
}

static void decoding(learn_book *b)
{
    learn_point z = learn_nearest(learn_sender, 1);
    learn_point got = learn_decode(z, learn_near, 1, LEARN_Q);
    learn_draft d;
    learn_page(b, NULL, "Decoding by proximity");
    learn_text(
        b,
        "The receiver has a vector of its own, v = (%g, %g), drawn `v`. It got `%c`, and takes the point of that colour "
        "nearest to v: (%d, %d). That is z.",
        learn_near.x, learn_near.y, learn_letter(z, LEARN_Q), got.k1, got.k2);
    learn_draft_open(&d);
    learn_plane_draw(d.out, &(learn_view){.class = &z, .sent = &z, .sender = &learn_sender, .receiver = &learn_near});
    learn_drawing(b, "plane", &d, "Of the points with the colour %c, (%d, %d) is nearest to the receiver's (%g, %g).",
                  learn_letter(z, LEARN_Q), got.k1, got.k2, learn_near.x, learn_near.y);
    learn_text(
        b,
        "It works if z is less than q/2 steps from v in every coordinate. Rounding moved z by up to half a step, so "
        "it is certain when x and v differ by at most (q-1)/2 * s, here %g.",
        learn_reach(1, LEARN_Q));
}

static void failure(learn_book *b)
{
    learn_point z = learn_nearest(learn_sender, 1);
    learn_point got = learn_decode(z, learn_far, 1, LEARN_Q);
    learn_draft d;
    learn_page(b, "plane", "When the distance bound is broken");
    learn_text(
        b,
        "Now the receiver is further away: v = (%g, %g). The nearest `%c` is (%d, %d), marked too: wrong by exactly q = %d "
        "steps. Nothing looks odd: the wrong point is close to v, as it should be.",
        learn_far.x, learn_far.y, learn_letter(z, LEARN_Q), got.k1, got.k2, LEARN_Q);
    learn_draft_open(&d);
    learn_plane_draw(
        d.out, &(learn_view){.class = &z, .sent = &z, .found = &got, .sender = &learn_sender, .receiver = &learn_far});
    learn_drawing(b, "plane", &d, "The receiver at (%g, %g) takes (%d, %d) instead of (%d, %d).", learn_far.x,
                  learn_far.y, got.k1, got.k2, z.k1, z.k2);
}

static void detection(learn_book *b)
{
    learn_point z = learn_nearest(learn_sender, 1);
    learn_point got = learn_decode(z, learn_far, 1, LEARN_Q);
    learn_page(b, NULL, "Noticing it");
    learn_text(b, "The sender adds a checksum of the whole coordinates of z, taken before mod q:");
    learn_key(b, "h = (%d * k1 + %d * k2) mod %d", LEARN_KEY1, LEARN_KEY2, LEARN_PRIME);
    learn_item(b, "Sender: z = (%d, %d), h = %d.", z.k1, z.k2, learn_checksum(z));
    learn_item(b,
               "Receiver: decoded (%d, %d), h = %d. Not the same, so the decoding is wrong, and the receiver knows it.",
               got.k1, got.k2, learn_checksum(got));
    learn_text(
        b, "A checksum of the colours would be useless: the wrong point has the same colour. The library keys its "
           "checksum at random, modulo 2^61 - 1, one for 4096 coordinates: a wrong block passes with a chance of about "
           "1 in 2^61.");
    learn_text(
        b,
        "Repair: the sender sends more digits of the same z (its colour for a larger q) until it fits. Not the exact "
        "x: then only unlucky roundings would be replaced, and those kept would no longer average to x. That is a bias.");
    learn_key(b, "A wrong decoding is noticed, and its repair does not tilt the mean.");
}

static void price(learn_book *b)
{
    static const int qs[] = {4, 16, 64, 256};
    learn_draft d;
    learn_page(b, NULL, "The price in bits");
    learn_text(b, "If vectors differ by at most y per coordinate, the step may be s = 2y/(q-1).");
    learn_draft_open(&d);
    fputs("q\tbits per coordinate\tstep\trms error\tof the float's 32 bits\n", d.out);
    for (size_t i = 0; i < sizeof qs / sizeof *qs; i++) {
        double s = learn_step(1, qs[i]);
        fprintf(d.out, "%d\t%g\t%.4f y\t%.4f y\t%.0f%%\n", qs[i], learn_bits(qs[i]), s, sqrt(learn_error(s)),
                100 * learn_bits(qs[i]) / 32);
    }
    learn_table(b, &d, "Step and error for a distance y");
    learn_key(b, "Each further bit about halves the error. The length of the vectors plays no part.");
    learn_text(
        b, "A quantiser that scales by the largest number has an error proportional to it: better when vectors are "
           "short and unlike (the receiver's own vector then tells nothing), hopeless when they are long and alike.");
    learn_text(
        b, "The library adds a random rotation, so that no coordinate stands out; E8, a denser lattice in groups of 8 "
           "coordinates; and a planner that measures how far ranks disagree and picks q and s for an error budget.");
}

void learn_lesson_lattice(learn_book *b, const learn_choice *choice)
{
    (void)choice;
    the_clock(b);
    rounding(b);
    dither(b);
    colours(b);
    decoding(b);
    failure(b);
    detection(b);
    price(b);
}
