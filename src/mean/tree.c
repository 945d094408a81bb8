/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Algorithm 4 of the paper (mean/whole.h): MeanEstimation(m) in a tree, O(log) rounds, no rank with more than a few messages.
 *
 *     a random set of t = min(m, n) ranks are the leaves of a binary tree whose inner nodes are different ranks
 *     up     a leaf sends the colours of its vector; an inner node decodes its children against its own vector and sends
 *            the colours of their weighted average
 *     down   the root's colours are relayed, bit by bit the same, through a binary tree of all ranks; each decodes them
 *            against its own vector
 *
 * Nodes are numbered as in a heap: 1 is the root, i has the children 2 i and 2 i + 1, t .. 2t - 1 are the leaves. q = m^3 by
 * default. After l levels an estimate is off by at most (l + 1) half steps, so s = 2 y' / (q - l - 3) with l the depth.
 * With t < n the mean of the leaves stands for that of all: sampling variance y^2 / t. What cannot be decoded makes the call
 * fail on all ranks, as in the star.
 */
#include "base/error.h"
#include "codec/portable.h"
#include "mean/whole.h"

#include <math.h>
#include <stdlib.h>

typedef enum { AT_START, AT_UP, AT_DOWN, AT_END } stage;

enum { VERDICT = 1, PHASE_TREE = 16 };

typedef struct {
    stage at;
    int leaves, depth;  /* of the up tree */
    int level;          /* whose messages are under way; down: distance from the root */
    int *leaf, *inner;  /* rank of leaf node leaves + i, of inner node 1 + i */
    int *order, *place; /* down tree: ranks in order, the root first; and where a rank is in it */
    cst_whole whole;
    float step;
    uint32_t q;
    int32_t *points;
    cst_checksum *checks;
    float *value, *child[2];
    uint8_t *own[2]; /* messages this rank sends as leaf and as inner node */
    uint8_t *in[2];  /* messages of the two children of its inner node */
    uint8_t *code;   /* of the root, as it travels down */
    coset_route routes[6];
    size_t bytes;
    bool good; /* what this rank has decoded so far */
} tree;

typedef struct {
    double y;
    uint32_t q;
    int m;
} tree_settings;

static tree *state_of(const coset_round *round)
{
    return round->state;
}

static int depth_of(int node)
{
    int d = 0;
    while (node > 1) {
        node /= 2;
        d++;
    }
    return d;
}

static int machine_of(const tree *t, int node)
{
    return node >= t->leaves ? t->leaf[node - t->leaves] : t->inner[node - 1];
}

/* The node of this rank among first .. last, 0 if it has none. */
static int node_of(const tree *t, int rank, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (machine_of(t, i) == rank)
            return i;
    return 0;
}

static int weight_of(const tree *t, int node)
{
    return node >= t->leaves ? 1 : weight_of(t, 2 * node) + weight_of(t, 2 * node + 1);
}

static coset_status draw_tree(coset_round *round)
{
    tree *t = state_of(round);
    int n = round->mean->size, *drawn = malloc((size_t)n * sizeof *drawn);
    coset_status status = drawn ? cst_draw_ranks(round, n, n, drawn) : COSET_ERR_MEMORY;
    /* Leaves: the first of the permutation; inner nodes: its last, so that roles coincide as little as may be. */
    for (int i = 0; !status && i < t->leaves; i++)
        t->leaf[i] = drawn[i];
    for (int i = 0; !status && i < t->leaves - 1; i++)
        t->inner[i] = drawn[n - 1 - i];
    int root = status ? 0 : machine_of(t, 1), k = 1;
    t->order[0] = root;
    for (int r = 0; r < n; r++)
        if (r != root)
            t->order[k++] = r;
    for (int i = 0; i < n; i++)
        t->place[t->order[i]] = i;
    free(drawn);
    return status;
}

static coset_status tree_begin(coset_round *round)
{
    tree *t = round->state = calloc(1, sizeof *t);
    const tree_settings *settings = round->mean->settings;
    int n = round->mean->size;
    if (!t)
        return COSET_ERR_MEMORY;
    t->leaves = settings->m < n ? settings->m : n;
    t->depth = depth_of(2 * t->leaves - 1);
    t->q = settings->q;
    t->good = true;
    coset_status status = cst_whole_make(&t->whole, round);
    if (status)
        return status;
    t->step = (float)(2 * cst_whole_infinity(&t->whole, settings->y) / (t->q - t->depth - 3));
    t->bytes = CST_BODY_AT + VERDICT + cst_colours_bytes(&t->whole, t->q);
    t->leaf = calloc((size_t)n, sizeof *t->leaf);
    t->inner = calloc((size_t)n, sizeof *t->inner);
    t->order = calloc((size_t)n, sizeof *t->order);
    t->place = calloc((size_t)n, sizeof *t->place);
    t->points = malloc(t->whole.n * sizeof *t->points);
    t->checks = malloc(t->whole.pieces * sizeof *t->checks);
    t->value = malloc(t->whole.n * sizeof *t->value);
    t->code = calloc(1, t->bytes);
    bool enough = t->leaf && t->inner && t->order && t->place && t->points && t->checks && t->value && t->code;
    for (int i = 0; i < 2; i++) {
        t->child[i] = malloc(t->whole.n * sizeof *t->child[i]);
        t->own[i] = calloc(1, t->bytes);
        t->in[i] = calloc(1, t->bytes);
        enough = enough && t->child[i] && t->own[i] && t->in[i];
    }
    return enough ? draw_tree(round) : COSET_ERR_MEMORY;
}

static void tree_end(coset_round *round)
{
    tree *t = state_of(round);
    cst_whole_free(&t->whole);
    void *all[] = {t->leaf,     t->inner,    t->order,  t->place,  t->points, t->checks, t->value,
                   t->child[0], t->child[1], t->own[0], t->own[1], t->in[0],  t->in[1],  t->code};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(t);
}

static coset_status too_far(coset_round *round)
{
    const tree_settings *settings = round->mean->settings;
    return cst_fail(
        &round->mean->error, COSET_ERR_ARGUMENT, -1,
        "vectors are farther apart than y = %g allows (or an input is too large for f32 at this step): give a larger "
        "y or sigma, or use the protocols robust or sharded-star",
        settings->y);
}

/* Colours of a node's value into a message. */
static void encode_node(coset_round *round, int node, const float *value, uint8_t *message)
{
    tree *t = state_of(round);
    if (t->good)
        t->good = cst_whole_quantise(&t->whole, value, (uint32_t)node, PHASE_TREE, t->step, t->points, t->checks);
    message[CST_BODY_AT] = t->good;
    if (t->good)
        cst_colours_write(&t->whole, t->points, t->checks, t->q, message + CST_BODY_AT + VERDICT);
}

static bool decode_node(coset_round *round, int node, const uint8_t *message, float *value)
{
    tree *t = state_of(round);
    return message[CST_BODY_AT] == 1 &&
           cst_colours_decode(&t->whole, message + CST_BODY_AT + VERDICT, t->q, (uint32_t)node, PHASE_TREE, t->step,
                              t->whole.own, value) == 0;
}

/* An inner node's value: the average of its children's, weighted by leaves. */
static coset_status average_children(coset_round *round, int node)
{
    tree *t = state_of(round);
    int rank = round->mean->rank;
    for (int i = 0; i < 2; i++) {
        int child = 2 * node + i, from = machine_of(t, child);
        const uint8_t *message = from == rank ? t->own[child < t->leaves] : t->in[i];
        cst_reader body;
        coset_status status =
            from == rank ? COSET_OK : cst_colours_open(round, depth_of(child), from, rank, message, t->bytes, &body);
        if (status)
            return status;
        t->good = t->good && decode_node(round, child, message, t->child[i]);
    }
    double a = weight_of(t, 2 * node), b = weight_of(t, 2 * node + 1);
    for (size_t i = 0; i < t->whole.n; i++)
        t->value[i] = (float)((a * t->child[0][i] + b * t->child[1][i]) / (a + b));
    return COSET_OK;
}

/* Messages of the nodes at depth t->level to their parents. A rank can be both, once as leaf and once as inner node. */
static coset_status send_level(coset_round *round, coset_xfer *xfer)
{
    tree *t = state_of(round);
    int rank = round->mean->rank, n = 0, first = 1 << t->level,
        last = 2 * first - 1 < 2 * t->leaves - 1 ? 2 * first - 1 : 2 * t->leaves - 1;
    for (int node = first; node <= last; node++) {
        int from = machine_of(t, node), to = machine_of(t, node / 2);
        bool inner = node < t->leaves;
        if (from == rank) {
            if (!inner)
                encode_node(round, node, t->whole.own, t->own[0]);
            cst_frame_header h = cst_header_of(round, CST_FRAME_COLOURS, t->level, rank, to);
            cst_body_seal(t->own[inner], &h, t->bytes, t->bytes);
            if (to != rank)
                t->routes[n++] = (coset_route){to, t->own[inner], NULL, t->bytes};
        } else if (to == rank) {
            t->routes[n++] = (coset_route){from, NULL, t->in[node % 2], t->bytes};
        }
    }
    t->at = AT_UP;
    return cst_hand_out_routes(round, xfer, t->routes, (size_t)n);
}

/* After the messages of depth t->level: the inner nodes above it have what they need. */
static coset_status take_level(coset_round *round)
{
    tree *t = state_of(round);
    int first = 1 << (t->level - 1), last = 2 * first - 1 < t->leaves - 1 ? 2 * first - 1 : t->leaves - 1;
    int node = node_of(t, round->mean->rank, first, last);
    if (!node)
        return COSET_OK;
    coset_status status = average_children(round, node);
    if (!status)
        encode_node(round, node, t->value, t->own[1]);
    return status;
}

/* Relays the root's colours one level further: ranks at distance t->level get them. */
static coset_status send_down(coset_round *round, coset_xfer *xfer)
{
    tree *t = state_of(round);
    int rank = round->mean->rank, size = round->mean->size, at = t->place[rank] + 1, n = 0;
    if (depth_of(at) == t->level - 1)
        for (int child = 2 * at; child <= 2 * at + 1; child++) {
            if (child > size)
                continue;
            int to = t->order[child - 1];
            uint8_t *message = t->in[child % 2];
            memcpy(message, t->code, t->bytes);
            cst_frame_header h = cst_header_of(round, CST_FRAME_COLOURS, 256 + t->level, rank, to);
            cst_body_seal(message, &h, t->bytes, t->bytes);
            t->routes[n++] = (coset_route){to, message, NULL, t->bytes};
        }
    if (depth_of(at) == t->level && at > 1)
        t->routes[n++] = (coset_route){t->order[at / 2 - 1], NULL, t->code, t->bytes};
    t->at = AT_DOWN;
    return cst_hand_out_routes(round, xfer, t->routes, (size_t)n);
}

static coset_status check_relay(coset_round *round)
{
    tree *t = state_of(round);
    int at = t->place[round->mean->rank] + 1;
    cst_reader body;
    if (depth_of(at) != t->level || at == 1)
        return COSET_OK;
    return cst_colours_open(round, 256 + t->level, t->order[at / 2 - 1], round->mean->rank, t->code, t->bytes, &body);
}

static coset_status conclude(coset_round *round)
{
    tree *t = state_of(round);
    if (!decode_node(round, 1, t->code, t->value))
        return too_far(round);
    t->at = AT_END;
    return cst_whole_store(&t->whole, t->value);
}

static coset_status start_down(coset_round *round, coset_xfer *xfer)
{
    tree *t = state_of(round);
    if (round->mean->rank == machine_of(t, 1))
        memcpy(t->code, t->own[t->leaves > 1], t->bytes);
    t->level = 1;
    return send_down(round, xfer);
}

static coset_status tree_next(coset_round *round, coset_xfer *xfer)
{
    tree *t = state_of(round);
    coset_status status;
    switch (t->at) {
    case AT_START: t->level = t->depth; return send_level(round, xfer);
    case AT_UP:
        status = take_level(round);
        if (status)
            return status;
        return --t->level > 0 ? send_level(round, xfer) : start_down(round, xfer);
    case AT_DOWN:
        status = check_relay(round);
        if (status)
            return status;
        return ++t->level <= depth_of(round->mean->size) ? send_down(round, xfer) : conclude(round);
    default: return COSET_OK;
    }
}

static coset_status tree_configure(coset_mean *mean, const coset_mean_options *o, coset_error *why)
{
    tree_settings *settings = calloc(1, sizeof *settings);
    mean->settings = settings;
    if (!settings)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory");
    settings->y = cst_known_distance(o, mean->size);
    if (!(settings->y > 0))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "protocol tree needs y, a bound on the distance of any two vectors, or sigma");
    if (mean->plan.exact || !(mean->plan.rules.may & CST_MAY_Z))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "protocol tree has the codecs lattice and lattice:z");
    const int largest = 40; /* 40^3 < 2^16 */
    int m = o->parameter > 0 ? o->parameter : mean->size < 4 ? 4 : mean->size > largest ? largest : mean->size;
    double q = o->bits > 0 ? floor(cst_exp2(o->bits)) : (double)m * m * m;
    if (m < 2 || q > 65536 || q < depth_of(2 * m - 1) + 4)
        return cst_fail(
            why, COSET_ERR_ARGUMENT, -1,
            "protocol tree: m = %d with q = %g; m from 2, q from %d (the tree's depth and 4) to 65536 (q is m^3 unless "
            "bits are given)",
            m, q, depth_of(2 * m - 1) + 4);
    settings->m = m;
    settings->q = (uint32_t)q;
    return COSET_OK;
}

static void tree_destroy(coset_mean *mean)
{
    free(mean->settings);
    mean->settings = NULL;
}

const cst_protocol cst_tree = {
    .name = "tree",
    .configure = tree_configure,
    .begin = tree_begin,
    .next = tree_next,
    .end = tree_end,
    .destroy = tree_destroy,
};
