/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: messages arrive whole, whatever their size, order, memory and number. */
#include "transport/conformance.h"
#include "transport/drive.h"

#include <stdlib.h>
#include <string.h>

void test_create_destroy(rank_env *e)
{
    rank_create(e);
    CHECK_INT(e->t->rank, e->rank);
    CHECK_INT(e->t->size, e->size);
    CHECK(e->t->ops == e->ops);
    CHECK_INT(e->ops->abi, COSET_TRANSPORT_ABI);
    const coset_transport_caps *caps = e->ops->caps(e->t);
    CHECK(caps->segment_bytes > 0);
    CHECK(caps->flags & COSET_CAN_SLEEP ? e->ops->fd(e->t) >= 0 : e->ops->fd(e->t) == -1);
    rank_destroy(e);
    /* and again, with the same job: nothing of the first one is in the way */
    rank_create(e);
    rank_destroy(e);
}

static void check_counters(rank_env *e, uint64_t sent, uint64_t received)
{
    coset_transport_counters c;
    e->ops->counters(e->t, &c);
    CHECK_INT(c.sent_bytes, sent);
    CHECK_INT(c.received_bytes, received);
    CHECK(c.wire_sent_bytes >= sent && c.wire_received_bytes >= received);
}

enum { FIRST_SEND = 1, FROM_SEGMENT = 2, TO_SEGMENT = 4, ORDERS = 8 };

/* Everybody to the next rank, from the one before. */
static void shift(rank_env *e, uint64_t op, size_t bytes, int how, char *own)
{
    int next = (e->rank + 1) % e->size, before = (e->rank + e->size - 1) % e->size;
    parcel out, in;
    parcel_init(&out, next, op, 3, bytes, how & FROM_SEGMENT ? own : NULL);
    parcel_init(&in, before, op, 3, bytes, how & TO_SEGMENT ? own + (2 << 20) : NULL);
    parcel_fill(&out, e->rank, next);
    memset(in.data, 0xee, bytes);
    if (how & FIRST_SEND)
        send_parcel(e, &out);
    receive_parcel(e, &in);
    if (!(how & FIRST_SEND))
        send_parcel(e, &out);
    wait_both(e, &out, &in);
    parcel_check(&in, before, e->rank);
    if (!(how & FROM_SEGMENT))
        parcel_free(&out);
    if (!(how & TO_SEGMENT))
        parcel_free(&in);
}

void test_sizes(rank_env *e)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 65536, 131072, 131073, (1 << 20) + 7};
    bool can_map = e->ops->caps(e->t)->flags & COSET_CAN_MAP;
    coset_error why = COSET_ERROR_INIT;
    void *own = NULL;
    if (can_map)
        CHECK_INT(e->ops->alloc(e->t, &e->oob, 4 << 20, &own, &why), COSET_OK);
    uint64_t op = 0, bytes = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < ORDERS; how++) {
            if (!can_map && how & (FROM_SEGMENT | TO_SEGMENT))
                continue;
            shift(e, op++, sizes[i], how, own);
            bytes += sizes[i];
        }
    check_counters(e, bytes, bytes);
    if (can_map)
        CHECK_INT(e->ops->release(e->t, &e->oob, own, &why), COSET_OK);
}

/* All pairs, many tags of one operation at once, received in another order than sent. */
void test_many_tags(rank_env *e)
{
    enum { TAGS = 100 };
    parcel *out = calloc((size_t)e->size * TAGS, sizeof *out), *in = calloc((size_t)e->size * TAGS, sizeof *in);
    CHECK(out && in);
    for (int r = 0; r < e->size; r++)
        for (uint32_t k = 0; k < TAGS && r != e->rank; k++) {
            parcel *p = &out[(uint32_t)r * TAGS + k];
            parcel_init(p, r, 5, k, k * 97, NULL);
            parcel_fill(p, e->rank, r);
            send_parcel(e, p);
        }
    for (int r = 0; r < e->size; r++)
        for (uint32_t k = 0; k < TAGS && r != e->rank; k++) {
            uint32_t tag = (k * 37 + 11) % TAGS; /* 37 and TAGS have no common factor: every tag once */
            parcel *p = &in[(uint32_t)r * TAGS + k];
            parcel_init(p, r, 5, tag, tag * 97, NULL);
            receive_parcel(e, p);
        }
    for (int r = 0; r < e->size; r++)
        for (uint32_t k = 0; k < TAGS && r != e->rank; k++) {
            uint32_t i = (uint32_t)r * TAGS + k;
            wait_both(e, &out[i], &in[i]);
            parcel_check(&in[i], r, e->rank);
            parcel_free(&out[i]);
            parcel_free(&in[i]);
        }
    free(out);
    free(in);
}

static size_t random_size(uint32_t *state)
{
    uint32_t kind = next_random(state) % 8;
    return next_random(state) % (kind < 4 ? 200 : kind < 6 ? 10000 : kind < 7 ? 200000 : 600000);
}

/* Both sides draw the same plan from a seed per pair; each posts its half in an order of its own. */
static void random_round(rank_env *e, uint32_t round)
{
    enum { EACH = 12 };
    int total = 2 * EACH * (e->size - 1), n = 0;
    parcel *all = calloc((size_t)total, sizeof *all);
    int *order = calloc((size_t)total, sizeof *order);
    CHECK(all && order);
    for (int r = 0; r < e->size; r++)
        for (int way = 0; way < 2 && r != e->rank; way++) {
            int from = way ? r : e->rank, to = way ? e->rank : r;
            uint32_t seed = 1u + round * 1000003u + (uint32_t)from * 211u + (uint32_t)to * 7919u;
            for (uint32_t k = 0; k < EACH; k++, n++) {
                parcel_init(&all[n], r, round, k, random_size(&seed), NULL);
                if (!way)
                    parcel_fill(&all[n], from, to);
                order[n] = n;
            }
        }
    uint32_t own = 77u + round * 13u + (uint32_t)e->rank * 1009u;
    for (int i = total - 1; i > 0; i--) {
        int j = (int)(next_random(&own) % (uint32_t)(i + 1)), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
    for (int i = 0; i < total; i++) {
        bool receives = (order[i] / EACH) & 1;
        if (receives)
            receive_parcel(e, &all[order[i]]);
        else
            send_parcel(e, &all[order[i]]);
        if (next_random(&own) % 3 == 0)
            e->ops->progress(e->t);
    }
    for (int i = 0; i < total; i++) {
        CHECK_INT(wait_msg(e, &all[i].msg), COSET_OK);
        if ((i / EACH) & 1)
            parcel_check(&all[i], all[i].msg.peer, e->rank);
    }
    for (int i = 0; i < total; i++)
        parcel_free(&all[i]);
    free(all);
    free(order);
}

void test_random(rank_env *e)
{
    enum { ROUNDS = 6 };
    for (uint32_t round = 0; round < ROUNDS; round++)
        random_round(e, round);
}

/* Memory in many pieces of odd sizes, cut differently on the two sides. */
static void cut(parcel *p, struct iovec *pieces, int count, uint32_t seed)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        size_t left = p->bytes - at, n = next_random(&seed) % (2 * p->bytes / (size_t)count + 1);
        n = i == count - 1 || n > left ? left : n;
        pieces[i] = (struct iovec){p->data + at, n};
        at += n;
    }
    p->msg.iov = pieces;
    p->msg.iovcnt = count;
}

void test_pieces(rank_env *e)
{
    static const size_t sizes[] = {0, 5, 3000, 50000, 1000003};
    static const int counts[] = {1, 2, 17, 300};
    int next = (e->rank + 1) % e->size, before = (e->rank + e->size - 1) % e->size;
    struct iovec a[300], b[300];
    uint64_t op = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < 16; k++, op++) {
            parcel out, in;
            parcel_init(&out, next, op, 0, sizes[i], NULL);
            parcel_init(&in, before, op, 0, sizes[i], NULL);
            parcel_fill(&out, e->rank, next);
            cut(&out, a, counts[k % 4], (uint32_t)op * 2 + 1);
            cut(&in, b, counts[k / 4], (uint32_t)op * 2 + 2);
            send_parcel(e, &out);
            receive_parcel(e, &in);
            wait_both(e, &out, &in);
            parcel_check(&in, before, e->rank);
            parcel_free(&out);
            parcel_free(&in);
        }
}

/* Far more early messages than a transport keeps: the sender waits, nothing is lost, and later operations are not in
 * the way of what the receiver asks for first. */
void test_flood(rank_env *e)
{
    enum { MESSAGES = 3000 };
    int next = (e->rank + 1) % e->size, before = (e->rank + e->size - 1) % e->size;
    parcel *out = calloc(MESSAGES, sizeof *out);
    CHECK(out);
    for (uint32_t k = 0; k < MESSAGES; k++) {
        parcel_init(&out[k], next, k, 9, k % 300, NULL);
        parcel_fill(&out[k], e->rank, next);
        send_parcel(e, &out[k]);
    }
    for (uint32_t k = 0; k < MESSAGES; k++) {
        parcel in;
        parcel_init(&in, before, k, 9, k % 300, NULL);
        receive_parcel(e, &in);
        CHECK_INT(wait_msg(e, &in.msg), COSET_OK);
        parcel_check(&in, before, e->rank);
        parcel_free(&in);
    }
    for (uint32_t k = 0; k < MESSAGES; k++) {
        CHECK_INT(wait_msg(e, &out[k].msg), COSET_OK);
        parcel_free(&out[k]);
    }
    free(out);
}

/* A rank sends, completes, and leaves in good order; what it sent is there for a receive that is posted later. */
void test_early_then_gone(rank_env *e)
{
    rank_create(e);
    if (e->rank == 0) {
        for (int r = 1; r < e->size; r++) {
            parcel p;
            parcel_init(&p, r, 1, 2, 1000, NULL);
            parcel_fill(&p, 0, r);
            send_parcel(e, &p);
            CHECK_INT(wait_msg(e, &p.msg), COSET_OK);
            parcel_free(&p);
        }
        rank_destroy(e);
        return;
    }
    wait_notice_of(e, COSET_NOTICE_GOODBYE, 0, STEP_MS);
    parcel p, never;
    parcel_init(&p, 0, 1, 2, 1000, NULL);
    receive_parcel(e, &p);
    CHECK_INT(wait_msg(e, &p.msg), COSET_OK);
    parcel_check(&p, 0, e->rank);
    parcel_free(&p);
    /* what it has not sent will never come, and nothing can be sent to it */
    parcel_init(&never, 0, 2, 2, 10, NULL);
    never.msg.iov = &never.iov;
    CHECK_INT(e->ops->irecv(e->t, &never.msg), COSET_ERR_PEER);
    CHECK_INT(never.msg.status, COSET_ERR_PEER);
    CHECK_INT(e->ops->isend(e->t, &never.msg), COSET_ERR_PEER);
    CHECK_INT(never.msg.status, COSET_ERR_PEER);
    parcel_free(&never);
    rank_destroy(e);
}

/* Calls that are wrong are refused at once. */
void test_refusals(rank_env *e)
{
    struct iovec huge[2] = {{e, SIZE_MAX}, {e, 2}};
    const int peers[] = {-1, e->size, e->rank};
    for (int i = 0; i < 3; i++) {
        coset_msg m = {.peer = peers[i]};
        CHECK_INT(e->ops->isend(e->t, &m), COSET_ERR_ARGUMENT);
        CHECK_INT(e->ops->irecv(e->t, &m), COSET_ERR_ARGUMENT);
    }
    if (e->size > 1) {
        coset_msg m = {.peer = !e->rank, .iov = huge, .iovcnt = 2};
        CHECK_INT(e->ops->isend(e->t, &m), COSET_ERR_ARGUMENT);
        CHECK_INT(e->ops->irecv(e->t, &m), COSET_ERR_ARGUMENT);
    }
}
