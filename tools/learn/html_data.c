/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers behind the page's moving figures and questions. */
#include "learn/figures.h"
#include "learn/html.h"
#include "learn/plane.h"
#include "learn/questions.h"
#include "learn/timeline.h"

/* The rings that a reader can choose from; more ranks do not fit on a phone. */
enum { MOST_RANKS = 8 };

static cJSON *bytes_pair(double bytes)
{
    learn_bytes_text text;
    cJSON *pair = cJSON_CreateArray();
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(bytes));
    cJSON_AddItemToArray(pair, cJSON_CreateString(learn_bytes(text, bytes)));
    return pair;
}

/* {"add": 1, "moves": [[to, chunk] per rank]} */
static cJSON *ring_step(int n, int k)
{
    cJSON *step = cJSON_CreateObject(), *moves = cJSON_AddArrayToObject(step, "moves");
    cJSON_AddBoolToObject(step, "add", learn_ring_move(n, k, 0).add);
    for (int rank = 0; rank < n; rank++) {
        learn_move m = learn_ring_move(n, k, rank);
        cJSON_AddItemToArray(moves, cJSON_CreateIntArray((int[]){m.to, m.chunk}, 2));
    }
    return step;
}

static cJSON *ring(int n, size_t bytes)
{
    cJSON *r = cJSON_CreateObject(), *steps = cJSON_AddArrayToObject(r, "steps");
    cJSON *sent = cJSON_AddArrayToObject(r, "sent"), *naive = cJSON_AddArrayToObject(r, "naive");
    cJSON_AddNumberToObject(r, "n", n);
    for (int k = 0; k < learn_ring_steps(n); k++)
        cJSON_AddItemToArray(steps, ring_step(n, k));
    for (int k = 0; k <= learn_ring_steps(n); k++) {
        cJSON_AddItemToArray(sent, bytes_pair((double)learn_ring_sent_after(n, k, 0, bytes)));
        cJSON_AddItemToArray(naive, bytes_pair((double)learn_naive_sent_after(n, k, bytes)));
    }
    cJSON_AddItemToObject(r, "chunk", bytes_pair((double)learn_chunk(bytes / LEARN_ELEMENT, n, 0) * LEARN_ELEMENT));
    return r;
}

static cJSON *timeline(const learn_plan *plan)
{
    learn_timeline t;
    learn_run(plan, &t);
    cJSON *line = cJSON_CreateObject(), *buckets = cJSON_AddArrayToObject(line, "buckets");
    cJSON_AddNumberToObject(line, "layers", LEARN_LAYERS);
    cJSON_AddNumberToObject(line, "backward", t.backward_s);
    cJSON_AddNumberToObject(line, "done", t.done_s);
    for (int b = 0; b < t.buckets; b++) {
        const learn_bucket *k = &t.bucket[b];
        double opened = b > 0 ? t.bucket[b - 1].full_s : 0;
        cJSON_AddItemToArray(buckets, cJSON_CreateDoubleArray((double[]){opened, k->full_s, k->start_s, k->done_s}, 4));
    }
    return line;
}

/* What the page's own decoder has to agree with: [own x, own y, k1, k2]. */
static cJSON *decodings(learn_point colour)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < 10 * LEARN_PLANE_WIDTH; i += 7)
        for (int j = 0; j < 10 * LEARN_PLANE_HEIGHT; j += 9) {
            learn_vector own = {i / 10.0, j / 10.0};
            learn_point got = learn_decode(colour, own, 1, LEARN_Q);
            cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){own.x, own.y, got.k1, got.k2}, 4));
        }
    return list;
}

static cJSON *vector(learn_vector v)
{
    return cJSON_CreateDoubleArray((double[]){v.x, v.y}, 2);
}

static cJSON *plane(void)
{
    learn_point z = learn_nearest(learn_sender, 1);
    learn_point colour = {learn_colour(z.k1, LEARN_Q), learn_colour(z.k2, LEARN_Q)};
    cJSON *p = cJSON_CreateObject();
    cJSON_AddNumberToObject(p, "q", LEARN_Q);
    cJSON_AddNumberToObject(p, "reach", learn_reach(1, LEARN_Q));
    cJSON_AddItemToObject(p, "size", cJSON_CreateIntArray((int[]){LEARN_PLANE_WIDTH, LEARN_PLANE_HEIGHT}, 2));
    cJSON_AddItemToObject(p, "sender", vector(learn_sender));
    cJSON_AddItemToObject(p, "receiver", vector(learn_near));
    cJSON_AddItemToObject(p, "point", cJSON_CreateIntArray((int[]){z.k1, z.k2}, 2));
    cJSON_AddItemToObject(p, "colour", cJSON_CreateIntArray((int[]){colour.k1, colour.k2}, 2));
    cJSON_AddItemToObject(p, "checksum", cJSON_CreateIntArray((int[]){LEARN_KEY1, LEARN_KEY2, LEARN_PRIME}, 3));
    cJSON_AddItemToObject(p, "decodings", decodings(colour));
    return p;
}

static cJSON *version(const learn_question *q, int variant)
{
    learn_posed posed;
    learn_pose(q, variant, &posed);
    cJSON *v = cJSON_CreateObject();
    cJSON_AddStringToObject(v, "text", posed.text);
    cJSON *options = cJSON_AddArrayToObject(v, "options");
    for (int i = 0; i < LEARN_OPTIONS; i++) {
        cJSON *pair = cJSON_CreateArray();
        cJSON_AddItemToArray(pair, cJSON_CreateString(posed.option[i]));
        cJSON_AddItemToArray(pair, cJSON_CreateString(posed.why[i]));
        cJSON_AddItemToArray(options, pair);
    }
    learn_posed_free(&posed);
    return v;
}

static cJSON *questions(void)
{
    cJSON *list = cJSON_CreateArray();
    for (int number = 1; number <= learn_question_count(); number++) {
        learn_topic topic;
        const learn_question *q = learn_question_at(number, &topic);
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "id", q->id);
        cJSON_AddNumberToObject(item, "topic", topic);
        cJSON *versions = cJSON_AddArrayToObject(item, "versions");
        for (int variant = 0; variant < learn_variants(q); variant++)
            cJSON_AddItemToArray(versions, version(q, variant));
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

cJSON *learn_html_data(const learn_choice *choice)
{
    cJSON *data = cJSON_CreateObject();
    cJSON_AddNumberToObject(data, "ranks", choice->ranks < MOST_RANKS ? choice->ranks : MOST_RANKS);
    cJSON_AddItemToObject(data, "bytes", bytes_pair((double)choice->bytes));
    cJSON *rings = cJSON_AddArrayToObject(data, "rings");
    for (int n = LEARN_MIN_RANKS; n <= MOST_RANKS; n++)
        cJSON_AddItemToArray(rings, ring(n, choice->bytes));
    cJSON *lines = cJSON_AddArrayToObject(data, "timelines");
    for (int i = 0; i < LEARN_PLANS; i++)
        cJSON_AddItemToArray(lines, timeline(&learn_plans[i]));
    cJSON_AddItemToObject(data, "plane", plane());
    cJSON *topics = cJSON_AddArrayToObject(data, "topics");
    for (int t = 0; t < LEARN_TOPICS; t++)
        cJSON_AddItemToArray(topics, cJSON_CreateString(learn_lessons[t].title));
    cJSON_AddItemToObject(data, "questions", questions());
    return data;
}
