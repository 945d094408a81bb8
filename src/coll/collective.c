/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/collective.h"

#include "base/error.h"
#include "coll/build.h"
#include "coll/bulk.h"
#include "coll/hier.h"
#include "coll/shared.h"
#include "kernels/reduce/reduce.h"

#include <stdio.h>
#include <string.h>

/* The life of a collective on this rank. Over messages it begins at SCHEDULE, where ranks share memory at ENTER. */
enum { START, ENTERED, LEAVE, BULK, SCHEDULE };

static cst_plan plan_of(const coset_comm *c, const cst_call *call)
{
    return (cst_plan){.call = *call,
                      .rank = c->rank,
                      .size = c->size,
                      .segment_bytes = c->caps.segment_bytes,
                      .max_message = c->caps.max_message,
                      .rank_order = c->settings.rank_order != 0,
                      .hosts = cst_hier_possible(c),
                      .network = c->nodes.nodes > 1};
}

/* ---- one rank ---- */

static coset_status alone(const cst_call *call)
{
    size_t bytes = cst_call_recv_bytes(call, 0, 1);
    if (!bytes || call->kind == CST_BARRIER)
        return COSET_OK;
    if (call->kind == CST_ALLREDUCE || call->kind == CST_REDUCE || call->kind == CST_REDUCE_SCATTER)
        cst_reduce(call->dtype, call->op, (void *const[]){call->recv}, 1, (const void *const[]){call->send}, 1,
                   call->count, 1, 0);
    else if (call->send != call->recv)
        memcpy(call->recv, call->send, bytes);
    return COSET_OK;
}

/* ---- messages ---- */

static coset_status schedule_begin(coset_comm *c, cst_operation *op)
{
    cst_plan plan = plan_of(c, &op->call);
    coset_error why = COSET_ERROR_INIT;
    cst_schedule *s = cst_schedule_create();
    if (!s)
        return cst_comm_fail(c, COSET_ERR_MEMORY, -1, op->sequence, "no memory for a schedule");
    op->state = s;
    coset_status status = cst_build(s, &plan, cst_select(&plan, (cst_algo)op->call.algorithm), &why);
    if (status == COSET_OK && !c->control && op->call.kind != CST_SEND && op->call.kind != CST_RECV)
        status = cst_comm_check_heard(c, op);
    if (status == COSET_OK)
        status = cst_schedule_start(s, c->transport, op->sequence, &op->entry);
    if (status == COSET_ERR_MEMORY || status == COSET_ERR_UNSUPPORTED)
        /* the others have begun: the group cannot go on without this rank */
        return cst_comm_fail(c, status, -1, op->sequence, "rank %d cannot take part: %s", c->rank,
                             why.text[0] ? why.text : coset_strerror(status));
    return status;
}

static coset_status schedule_failed(coset_comm *c, const cst_operation *op, coset_status status)
{
    cst_schedule *s = op->state;
    /* the notice that explains it may be waiting: it has the better text */
    c->transport->ops->progress(c->transport);
    if (cst_comm_watch(c) != COSET_OK)
        return cst_poison_status(&c->poison);
    int failed = cst_schedule_failed(s);
    int peer = failed >= 0 ? s->step[failed].peer : -1;
    return cst_comm_fail(c, status, peer, op->sequence, "operation %llu (%s) failed with rank %d: %s",
                         (unsigned long long)op->sequence, cst_kind_name((int)op->call.kind), peer,
                         coset_strerror(status));
}

static coset_status schedule_step(coset_comm *c, cst_operation *op)
{
    coset_status status = cst_schedule_step(op->state);
    op->wait = (cst_wait){NULL, 0, -1, 0};
    op->moved = cst_schedule_moved(op->state);
    if (status == COSET_IN_PROGRESS || status == COSET_OK)
        return status;
    return schedule_failed(c, op, status);
}

/* ---- shared memory ---- */

/* While peers' private memory is touched, its owner must be able to see it (cst_comm_wait_for_writers). IN_PROGRESS: one is
 * leaving, and the reason will be heard. */
static coset_status touch_begin(coset_comm *c, cst_operation *op)
{
    if (!(c->caps.flags & (COSET_CAN_MAP_ANY | COSET_CAN_GET_PUT)))
        return COSET_OK;
    cst_flag *busy = &c->control[c->rank]->busy;
    cst_flag_post(&busy->word, cst_flag_value(&busy->word) + 1);
    atomic_thread_fence(memory_order_seq_cst);
    for (int r = 0; r < c->size; r++)
        if (cst_flag_value(&c->control[r]->leaving.word)) {
            op->wait = (cst_wait){NULL, 0, r, 0};
            return COSET_IN_PROGRESS;
        }
    return COSET_OK;
}

static void touch_end(coset_comm *c)
{
    cst_flag *busy = &c->control[c->rank]->busy;
    if (cst_flag_value(&busy->word) & 1)
        cst_flag_post(&busy->word, cst_flag_value(&busy->word) + 1);
}

static coset_status leave(coset_comm *c, cst_operation *op)
{
    cst_shared_done(c);
    op->phase = LEAVE;
    return cst_shared_all_done(c, op);
}

static coset_status direct(coset_comm *c, cst_operation *op)
{
    coset_status status = touch_begin(c, op);
    if (status == COSET_OK)
        status = cst_direct_work(c, op);
    touch_end(c);
    return status == COSET_OK ? leave(c, op) : status;
}

static coset_status bulk(coset_comm *c, cst_operation *op)
{
    if (cst_bulk_by_copying(c, op)) {
        coset_status status = touch_begin(c, op);
        if (status == COSET_OK)
            status = cst_bulk_copy_work(c, op);
        touch_end(c);
        return status == COSET_OK ? leave(c, op) : status;
    }
    coset_status status = cst_bulk_begin(c, op);
    op->phase = BULK;
    return status == COSET_OK ? cst_bulk_step(c, op) : status;
}

static coset_status take_path(coset_comm *c, cst_operation *op)
{
    int published;
    coset_status status = cst_shared_entered(c, op, &published);
    if (status != COSET_OK)
        return status;
    if (published)
        return cst_flat_work(c, op);
    switch (cst_shared_path(c, op)) {
    case CST_PATH_FLAT: return cst_flat_work(c, op);
    case CST_PATH_DIRECT: return direct(c, op);
    case CST_PATH_BULK: return bulk(c, op);
    default: break;
    }
    status = schedule_begin(c, op);
    op->phase = SCHEDULE;
    return status == COSET_OK ? schedule_step(c, op) : status;
}

static coset_status start(coset_comm *c, cst_operation *op)
{
    if (c->size == 1)
        return alone(&op->call);
    if (c->control) {
        coset_status entered = cst_shared_begin(c, op);
        if (entered != COSET_OK)
            return entered;
        op->phase = ENTERED;
        return take_path(c, op);
    }
    if (cst_hier_wanted(c, &op->call)) {
        coset_status heard = cst_comm_check_heard(c, op);
        return heard == COSET_OK ? cst_hier_run(c, op) : heard;
    }
    coset_status status = schedule_begin(c, op);
    op->phase = SCHEDULE;
    return status == COSET_OK ? schedule_step(c, op) : status;
}

static coset_status next_step(coset_comm *c, cst_operation *op)
{
    switch (op->phase) {
    case START: return start(c, op);
    case ENTERED: return take_path(c, op);
    case LEAVE: return cst_shared_all_done(c, op);
    case BULK: return cst_bulk_step(c, op);
    default: return schedule_step(c, op);
    }
}

/* Whatever went wrong here alone (memory, mostly), the others have begun and would wait for this rank. */
static coset_status collective_step(coset_comm *c, cst_operation *op)
{
    coset_status status = next_step(c, op);
    if (status == COSET_OK || status == COSET_IN_PROGRESS || cst_poison_status(&c->poison) != COSET_OK)
        return status;
    return cst_comm_fail(c, status, -1, op->sequence, "rank %d cannot take part: %s", c->rank, coset_strerror(status));
}

static void collective_finish(coset_comm *c, cst_operation *op)
{
    (void)c;
    if (op->phase == BULK)
        cst_bulk_end(op);
    else if (op->state)
        cst_schedule_destroy(op->state);
    op->state = NULL;
}

static int collective_describe(const cst_operation *op, char *text, size_t size)
{
    cst_schedule *s = op->phase == SCHEDULE ? op->state : NULL;
    int step = s ? cst_schedule_current(s) : -1;
    text[0] = 0;
    if (step < 0)
        return op->wait.peer;
    cst_schedule_describe(s, step, text, size);
    return s->step[step].kind == CST_STEP_SEND || s->step[step].kind == CST_STEP_RECV ? s->step[step].peer : -1;
}

static const cst_operation_class collective = {collective_step, collective_finish, collective_describe};

/* ---- send and receive: messages whatever the transport, numbered within the pair ---- */

#define PAIR_OP (UINT64_C(1) << 63)

static coset_status pair_step(coset_comm *c, cst_operation *op)
{
    if (op->phase == START) {
        op->sequence |= PAIR_OP;
        op->entry = cst_entry_make(&op->call, op->sequence);
        coset_status status = schedule_begin(c, op);
        if (status != COSET_OK)
            return status;
        op->phase = SCHEDULE;
    }
    return schedule_step(c, op);
}

static const cst_operation_class pairwise = {pair_step, collective_finish, collective_describe};

void cst_coll_prepare(coset_comm *c, const cst_call *call, cst_operation *op)
{
    int pair = call->kind == CST_SEND || call->kind == CST_RECV;
    cst_operation_init(op, pair ? &pairwise : &collective, call);
    op->call.algorithm = call->kind == CST_ALLREDUCE ? c->settings.algorithm : CST_ALGO_AUTO;
}

coset_status cst_coll_supported(coset_comm *c, const cst_call *call)
{
    if (call->kind != CST_ALLREDUCE || c->settings.algorithm == CST_ALGO_AUTO)
        return COSET_OK;
    cst_plan plan = plan_of(c, call);
    coset_error why = COSET_ERROR_INIT;
    coset_status status = cst_algo_check((cst_algo)c->settings.algorithm, &plan, &why);
    return status == COSET_OK ? status : cst_comm_note(c, status, "%s", why.text);
}

/* ---- a call with wrong arguments ---- */

static coset_status bad_step(coset_comm *c, cst_operation *op)
{
    if (c->size > 1 && c->control)
        return cst_shared_enter(c, op, 0, 0);
    if (c->size > 1) {
        coset_notice n = {.kind = COSET_NOTICE_MISMATCH,
                          .about = c->rank,
                          .status = COSET_ERR_MISMATCH,
                          .peer = c->rank,
                          .op = op->sequence};
        snprintf(n.text, sizeof n.text, "rank %d made operation %llu with wrong arguments", c->rank,
                 (unsigned long long)op->sequence);
        c->transport->ops->announce(c->transport, &n);
    }
    return COSET_OK;
}

static const cst_operation_class bad_class = {bad_step, NULL, NULL};

void cst_coll_announce_bad_call(coset_comm *c, const cst_call *call)
{
    cst_call bad = {.kind = CST_BAD_CALL, .root = -1};
    (void)call;
    cst_operation op;
    cst_operation_init(&op, &bad_class, &bad);
    cst_comm_run(c, &op);
}
