/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data-parallel training with coset_ddp: a network of one hidden layer learns a function of 32 numbers. Each rank has its
 * own samples; the gradients' mean over the ranks keeps all copies of the weights equal.
 *
 *     cc -O2 ddp.c -lcoset -lm -o ddp
 *     coset run -n 4 -- ./ddp             exact gradients
 *     coset run -n 4 -- ./ddp lattice     the gradient of the matrix as lattice codes
 */
#include <coset_ddp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 32, HIDDEN = 64, BATCH = 64, STEPS = 300 };
enum { W1 = 1, B1, W2 }; /* ids of the parameters */

static float w1[IN][HIDDEN], b1[HIDDEN], w2[HIDDEN];

static float uniform(unsigned *state) /* -1 .. 1 */
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

static void die(coset_comm *comm, const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    if (comm)
        coset_comm_abort(comm, what); /* so that no other rank waits for us */
    exit(1);
}

/* One sample: adds its gradient, returns its loss. What is learned: the sine of a sum. */
static float sample(unsigned *state, float (*g1)[HIDDEN], float *gb, float *g2)
{
    float x[IN], h[HIDDEN], sum = 0, y = 0;
    for (int i = 0; i < IN; i++)
        sum += x[i] = uniform(state);
    for (int j = 0; j < HIDDEN; j++) {
        h[j] = b1[j];
        for (int i = 0; i < IN; i++)
            h[j] += x[i] * w1[i][j];
        h[j] = tanhf(h[j]);
        y += h[j] * w2[j];
    }
    float error = y - sinf(sum / 2), scale = error / BATCH;
    for (int j = 0; j < HIDDEN; j++) {
        float d = scale * w2[j] * (1 - h[j] * h[j]);
        g2[j] += scale * h[j];
        gb[j] += d;
        for (int i = 0; i < IN; i++)
            g1[i][j] += x[i] * d;
    }
    return error * error / 2;
}

static void step(float *w, const float *g, size_t n, float rate)
{
    for (size_t i = 0; i < n; i++)
        w[i] -= rate * g[i];
}

int main(int argc, char **argv)
{
    coset_comm *comm;
    coset_error why = COSET_ERROR_INIT;
    if (coset_comm_create_env(NULL, &comm, &why))
        die(NULL, "coset_comm_create_env", why.text);
    int rank = coset_comm_rank(comm);
    unsigned start = 1, data = 1000u + (unsigned)rank; /* the same weights everywhere, different samples */
    for (int j = 0; j < HIDDEN; j++) {
        for (int i = 0; i < IN; i++)
            w1[i][j] = uniform(&start) / 4;
        w2[j] = uniform(&start) / 8;
    }

    const coset_param params[] = {{.id = W1, .count = (size_t)IN * HIDDEN, .dtype = COSET_F32, .ndim = 2, .name = "w1"},
                                  {.id = B1, .count = HIDDEN, .dtype = COSET_F32, .ndim = 1, .name = "b1"},
                                  {.id = W2, .count = HIDDEN, .dtype = COSET_F32, .ndim = 1, .name = "w2"}};
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    coset_ddp_options options = COSET_DDP_OPTIONS_INIT;
    if (argc > 1) {
        mean.codec = argv[1];
        mean.objective = COSET_OBJECTIVE_BITS; /* leave this out, and a quick link is used without compression */
        options.mean = &mean;
    }
    coset_ddp *ddp;
    if (coset_ddp_create(comm, &options, params, 3, &ddp)) {
        coset_last_error(comm, &why);
        die(comm, "coset_ddp_create", why.text);
    }
    for (int t = 0; t < STEPS; t++) {
        /* Where gradients live may change after the first step, so ask each time. */
        float *g1 = coset_ddp_grad(ddp, W1), *gb = coset_ddp_grad(ddp, B1), *g2 = coset_ddp_grad(ddp, W2), loss = 0;
        memset(g1, 0, sizeof w1);
        memset(gb, 0, sizeof b1);
        memset(g2, 0, sizeof w2);
        for (int k = 0; k < BATCH; k++)
            loss += sample(&data, (float(*)[HIDDEN])g1, gb, g2);
        for (uint64_t id = W2; id >= W1; id--) /* last layer first; a large model says so as soon as each is complete */
            coset_ddp_ready(ddp, id);
        int skip = 0;
        if (coset_ddp_finish(ddp, NULL) || coset_ddp_clip(ddp, 1.0, NULL, &skip))
            die(comm, "coset_ddp", coset_ddp_why(ddp));
        if (!skip) {
            step(&w1[0][0], coset_ddp_grad(ddp, W1), (size_t)IN * HIDDEN, 0.3f);
            step(b1, coset_ddp_grad(ddp, B1), HIDDEN, 0.3f);
            step(w2, coset_ddp_grad(ddp, W2), HIDDEN, 0.3f);
        }
        if (rank == 0 && (t + 1) % 50 == 0)
            printf("step %3d  loss %.4f\n", t + 1, (double)(loss / BATCH));
    }
    coset_ddp_destroy(ddp);
    coset_comm_destroy(comm);
    return 0;
}
