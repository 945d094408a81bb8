/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue.h"

#include <stdlib.h>
#include <unistd.h>

/* The ticket counts queued operations in 16 bits. */
#define MOST_QUEUED 60000

static void append(cst_queue *q, cst_operation *op)
{
    op->next = NULL;
    if (q->tail)
        q->tail->next = op;
    else
        q->head = op;
    q->tail = op;
}

static void number_pairwise(coset_comm *c, cst_operation *op)
{
    uint64_t *next = op->call.kind == CST_SEND ? &c->pair_sent[op->call.root] : &c->pair_received[op->call.root];
    op->sequence = (*next)++;
    op->next = NULL;
    /* at the end: messages of one pair keep their order */
    cst_operation **place = &c->queue.pairwise;
    while (*place)
        place = &(*place)->next;
    *place = op;
}

static void keep_request(cst_queue *q, coset_request *r)
{
    r->next = q->requests;
    r->link = &q->requests;
    if (r->next)
        r->next->link = &r->next;
    q->requests = r;
}

static void drop_request(coset_request *r)
{
    *r->link = r->next;
    if (r->next)
        r->next->link = r->link;
    free(r);
}

coset_status cst_queue_add(coset_comm *c, const cst_operation *op, coset_request **out)
{
    if (cst_queued(c) >= MOST_QUEUED)
        return cst_comm_note(c, COSET_ERR_MEMORY, "%d operations are queued already: wait for some", MOST_QUEUED);
    coset_request *r = calloc(1, sizeof *r);
    if (!r)
        return cst_comm_note(c, COSET_ERR_MEMORY, "no memory for a request");
    r->comm = c;
    r->op = *op;
    r->op.request = r;
    pthread_mutex_lock(&c->queue.lock);
    keep_request(&c->queue, r);
    if (cst_is_pairwise(op)) {
        atomic_fetch_add(&c->queue.ticket, 1);
        number_pairwise(c, &r->op);
    } else {
        r->op.sequence = atomic_fetch_add(&c->queue.ticket, CST_TICKET_STEP + 1) / CST_TICKET_STEP;
        append(&c->queue, &r->op);
    }
    pthread_mutex_unlock(&c->queue.lock);
    /* somebody may sleep as the driver: let it see the new operation */
    if (cst_driven(c))
        c->transport->ops->wake(c->transport);
    *out = r;
    return COSET_OK;
}

cst_operation *cst_queue_head(coset_comm *c)
{
    pthread_mutex_lock(&c->queue.lock);
    cst_operation *op = c->queue.head;
    pthread_mutex_unlock(&c->queue.lock);
    return op;
}

void cst_queue_drop_head(coset_comm *c)
{
    pthread_mutex_lock(&c->queue.lock);
    c->queue.head = c->queue.head->next;
    if (!c->queue.head)
        c->queue.tail = NULL;
    pthread_mutex_unlock(&c->queue.lock);
}

void cst_queue_remove_pairwise(coset_comm *c, cst_operation *op)
{
    pthread_mutex_lock(&c->queue.lock);
    cst_operation **place = &c->queue.pairwise;
    while (*place != op)
        place = &(*place)->next;
    *place = op->next;
    pthread_mutex_unlock(&c->queue.lock);
}

cst_operation *cst_queue_next_pairwise(coset_comm *c, const cst_operation *op)
{
    pthread_mutex_lock(&c->queue.lock);
    cst_operation *next = op ? op->next : c->queue.pairwise;
    pthread_mutex_unlock(&c->queue.lock);
    return next;
}

static void signal_uncollected(cst_queue *q, int change)
{
    q->uncollected += change;
    if (q->event_fd < 0)
        return;
    uint64_t value = 1;
    if (q->uncollected > 0 && change > 0)
        (void)!write(q->event_fd, &value, sizeof value);
    else if (q->uncollected == 0)
        (void)!read(q->event_fd, &value, sizeof value);
}

void cst_queue_hand_over(coset_comm *c, coset_request *r, coset_status status)
{
    pthread_mutex_lock(&c->queue.lock);
    void (*callback)(void *, coset_status) = r->callback;
    void *ctx = r->callback_ctx;
    r->status = status;
    r->concluded = 1;
    atomic_fetch_sub(&c->queue.ticket, 1);
    pthread_mutex_unlock(&c->queue.lock);
    if (callback)
        callback(ctx, status);
    atomic_store(&r->ended, 1); /* from here on the waiter may free it */
    pthread_mutex_lock(&c->queue.lock);
    signal_uncollected(&c->queue, 1);
    pthread_mutex_unlock(&c->queue.lock);
}

void cst_request_free(coset_request *r)
{
    cst_queue *q = &r->comm->queue;
    pthread_mutex_lock(&q->lock);
    signal_uncollected(q, -1);
    drop_request(r);
    pthread_mutex_unlock(&q->lock);
}

void cst_queue_drop_requests(coset_comm *c)
{
    while (c->queue.requests)
        drop_request(c->queue.requests);
}
