/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who moves operations on.
 *
 * Whoever holds the driver bit drives: a blocking caller, a thread that waits for or tests a request, or the progress
 * thread when nobody else does. Collectives run one at a time, in the order of their numbers; sends and receives all at
 * once beside them, since each rank may post its own in another order.
 *
 * A blocking call on an idle communicator takes the driver bit and a number, and runs on its own stack: no queue, no
 * lock, no hand-off (a hand-off to another thread costs 20 to 50 us, a small all-reduce a fraction of one).
 */
#include "base/clock.h"
#include "comm/comm.h"
#include "comm/queue.h"
#include "comm/request.h"

/* Longest sleep between looks at deaths, aborts and lateness: well under the five seconds that docs promise. */
#define BREATH_MS 50
/* Operations below this size are over before a clock could be read usefully. */
#define TIMED_BYTES ((size_t)64 << 10)
/* A piece of a pipeline takes tens of microseconds, and waking a sleeper as long again (docs/performance.md); half a
 * millisecond of spinning covers the largest. Not where ranks share cores: there a spinner keeps the worker from working. */
#define SPINS_FOR_WORK 50000
/* Sends under way at once to one rank; later ones wait for these, whose receives are posted before theirs anyway. Transports
 * have room for so many beside the messages of collectives, which must not wait for receives to be posted. */
#define SENDS_AT_ONCE 8

static int take_driver(coset_comm *c)
{
    return !cst_driven(c) && !(atomic_fetch_or(&c->queue.ticket, CST_TICKET_DRIVER) & CST_TICKET_DRIVER);
}

static void ring_turn(coset_comm *c)
{
    if (atomic_load(&c->queue.sleepers))
        cst_bell_ring(&c->queue.turn);
}

/* Sequentially consistent, so that a thread about to sleep sees the driver gone or is seen sleeping. */
static void leave_driver(coset_comm *c)
{
    atomic_fetch_sub(&c->queue.ticket, CST_TICKET_DRIVER);
    ring_turn(c);
}

static void begin(coset_comm *c, cst_operation *op)
{
    op->began = 1;
    op->entry = cst_entry_make(&op->call, op->sequence);
    if (cst_is_pairwise(op))
        return;
    cst_comm_remember(c, op);
    int timed = cst_call_block_bytes(&op->call) >= TIMED_BYTES;
    op->record = cst_recorder_begin(&c->recorder, &op->call, op->sequence, timed);
}

static void conclude(coset_comm *c, cst_operation *op, coset_status status)
{
    if (op->class->finish)
        op->class->finish(c, op);
    if (op->record)
        cst_recorder_end(op->record, status);
    if (status != COSET_OK && op->began && c->control && !cst_is_pairwise(op))
        cst_shared_withdraw(c, op);
    if (status == COSET_OK)
        /* only the driver counts; others may read */
        atomic_store_explicit(&c->operations, atomic_load_explicit(&c->operations, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

/* Sleeps until what the operation waits for may have come, then looks after the group. */
static coset_status wait_for(coset_comm *c, cst_operation *op)
{
    cst_patience patience = c->patience;
    if (op->wait.working && c->core_each)
        patience.spins = SPINS_FOR_WORK;
    if (op->moved || (op->wait.word && cst_flag_poll(op->wait.word, op->wait.value, patience)))
        return COSET_OK;
    uint64_t before = cst_now_ns();
    coset_status moved = c->transport->ops->progress(c->transport);
    coset_status status = cst_comm_watch(c);
    /* a peer may have come and, in a later operation, failed, while this rank was not looking: this one is complete */
    if (status != COSET_OK && op->wait.word && cst_flag_reached(op->wait.word, op->wait.value))
        return COSET_OK;
    if (status != COSET_OK || (moved == COSET_OK && !op->wait.word))
        return status; /* what has just moved may be what the operation waits for: no sleep before it has looked */
    if (op->wait.word)
        cst_flag_sleep(op->wait.word, op->wait.value, BREATH_MS);
    else
        c->transport->ops->idle(c->transport, BREATH_MS);
    atomic_fetch_add_explicit(&c->wait_ns, cst_now_ns() - before, memory_order_relaxed);
    status = cst_comm_check_wait(c, op);
    return status == COSET_IN_PROGRESS ? COSET_OK : status;
}

coset_status cst_comm_breathe(coset_comm *c)
{
    if (c->transport->ops->progress(c->transport) == COSET_IN_PROGRESS)
        c->transport->ops->idle(c->transport, BREATH_MS);
    return cst_comm_watch(c);
}

static coset_status drive_to_end(coset_comm *c, cst_operation *op)
{
    begin(c, op);
    coset_status status;
    while ((status = op->class->step(c, op)) == COSET_IN_PROGRESS) {
        coset_status trouble = wait_for(c, op);
        if (trouble != COSET_OK) {
            status = trouble;
            break;
        }
    }
    conclude(c, op, status);
    return status;
}

/* If nothing is queued and nobody drives: drives, with the next number. */
static int take_idle(coset_comm *c, cst_operation *op)
{
    uint64_t ticket = atomic_load_explicit(&c->queue.ticket, memory_order_relaxed);
    do {
        if (ticket & (CST_TICKET_QUEUED | CST_TICKET_DRIVER))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&c->queue.ticket, &ticket,
                                                    ticket + CST_TICKET_STEP + CST_TICKET_DRIVER, memory_order_acq_rel,
                                                    memory_order_relaxed));
    op->sequence = ticket / CST_TICKET_STEP;
    return 1;
}

coset_status cst_comm_run(coset_comm *c, cst_operation *op)
{
    coset_status status = cst_poison_status(&c->poison);
    if (status != COSET_OK)
        return status;
    if (!cst_is_pairwise(op) && take_idle(c, op)) {
        status = drive_to_end(c, op);
        leave_driver(c);
        return status;
    }
    coset_request *request;
    status = cst_queue_add(c, op, &request);
    if (status != COSET_OK)
        return status;
    status = cst_request_wait(request, CST_NEVER);
    cst_request_free(request);
    return status;
}

/* ---- operations that are queued ---- */

static void *progress_main(void *arg);

/* The thread starts with the first asynchronous operation: programs that only block never have it. */
static void ring_progress_thread(coset_comm *c)
{
    if (c->settings.progress == COSET_PROGRESS_CALLER)
        return;
    pthread_mutex_lock(&c->queue.lock);
    if (!c->progress.running)
        c->progress.running = pthread_create(&c->progress.thread, NULL, progress_main, c) == 0;
    pthread_mutex_unlock(&c->queue.lock);
    cst_bell_ring(&c->progress.bell);
}

coset_status cst_comm_queue(coset_comm *c, const cst_operation *op, coset_request **out)
{
    coset_status status = cst_poison_status(&c->poison);
    return status == COSET_OK ? cst_queue_add(c, op, out) : status;
}

coset_status cst_comm_start(coset_comm *c, const cst_operation *op, coset_request **out)
{
    coset_status status = cst_comm_queue(c, op, out);
    if (status == COSET_OK)
        ring_progress_thread(c);
    return status;
}

static void end_request(coset_comm *c, coset_request *r, coset_status status)
{
    conclude(c, &r->op, status);
    cst_queue_hand_over(c, r, status);
    ring_turn(c);
}

/* One step of an operation, begun if it has not been. */
static coset_status advance(coset_comm *c, cst_operation *op, coset_status trouble)
{
    if (trouble != COSET_OK)
        return trouble;
    if (!op->began)
        begin(c, op);
    return op->class->step(c, op);
}

static void drive_collectives(coset_comm *c, coset_status trouble)
{
    cst_operation *op;
    while ((op = cst_queue_head(c))) {
        coset_status status = advance(c, op, trouble);
        if (status == COSET_IN_PROGRESS)
            status = cst_comm_check_wait(c, op);
        if (status == COSET_IN_PROGRESS)
            return;
        cst_queue_drop_head(c);
        end_request(c, op->request, status);
        trouble = cst_poison_status(&c->poison);
    }
}

static coset_status advance_pairwise(coset_comm *c, cst_operation *op, coset_status trouble)
{
    int *under_way = op->call.kind == CST_SEND ? &c->pair_sending[op->call.root] : NULL, began = op->began;
    if (under_way && !began && *under_way >= SENDS_AT_ONCE && trouble == COSET_OK)
        return COSET_IN_PROGRESS;
    coset_status status = advance(c, op, trouble);
    if (under_way)
        *under_way += (status == COSET_IN_PROGRESS) - began;
    return status;
}

static void drive_pairwise(coset_comm *c, coset_status trouble)
{
    cst_operation *op = cst_queue_next_pairwise(c, NULL);
    while (op) {
        cst_operation *next = cst_queue_next_pairwise(c, op);
        coset_status status = advance_pairwise(c, op, trouble);
        if (status != COSET_IN_PROGRESS) {
            cst_queue_remove_pairwise(c, op);
            end_request(c, op->request, status);
        }
        op = next;
    }
}

/* The driver's pass over everything. */
static void drive_pass(coset_comm *c)
{
    c->transport->ops->progress(c->transport);
    coset_status trouble = cst_comm_watch(c);
    drive_pairwise(c, trouble);
    drive_collectives(c, trouble);
}

/* A pass does a bounded amount of work: is there more that waits for no message? */
static int more_at_once(coset_comm *c)
{
    cst_operation *op = cst_queue_head(c);
    int more = op && op->moved;
    for (op = cst_queue_next_pairwise(c, NULL); op && !more; op = cst_queue_next_pairwise(c, op))
        more = op->moved;
    c->transport->ops->arm(c->transport); /* may answer for the wake that this pass was made for */
    return more || c->transport->ops->arm(c->transport) == COSET_OK;
}

int cst_comm_drive_once(coset_comm *c)
{
    if (cst_queued(c) && take_driver(c)) {
        drive_pass(c);
        if (atomic_load(&c->polled) && cst_queued(c) && more_at_once(c))
            c->transport->ops->wake(c->transport);
        leave_driver(c);
    }
    return cst_queued(c);
}

/* As the driver, with operations under way: sleeps until one may move on. */
static void rest(coset_comm *c)
{
    cst_operation *head = cst_queue_head(c);
    coset_status status = COSET_OK;
    if (head && head->record) {
        /* pairwise messages would not be seen while sleeping on a flag: short sleeps then */
        if (head->wait.word && cst_queue_next_pairwise(c, NULL)) {
            cst_flag_poll(head->wait.word, head->wait.value, c->patience);
            c->transport->ops->idle(c->transport, 1);
        } else {
            status = wait_for(c, head);
        }
    } else if (c->transport->ops->progress(c->transport) == COSET_IN_PROGRESS) {
        c->transport->ops->idle(c->transport, BREATH_MS);
    }
    if (status != COSET_OK)
        drive_pass(c); /* poisoned: everything ends */
}

/* Until the driver has left, or `r`, which may be NULL, has ended. */
static void sleep_for_turn(coset_comm *c, coset_request *r, cst_deadline deadline)
{
    atomic_fetch_add(&c->queue.sleepers, 1);
    uint32_t seen = cst_bell_read(&c->queue.turn);
    if (!(r && atomic_load(&r->ended)) && cst_driven(c))
        cst_bell_sleep(&c->queue.turn, seen, cst_deadline_left(deadline, BREATH_MS));
    atomic_fetch_sub(&c->queue.sleepers, 1);
}

coset_status cst_request_wait(coset_request *r, cst_deadline deadline)
{
    coset_comm *c = r->comm;
    while (!atomic_load(&r->ended)) {
        if (cst_deadline_passed(deadline))
            return COSET_IN_PROGRESS;
        if (!take_driver(c)) {
            sleep_for_turn(c, r, deadline);
            continue;
        }
        drive_pass(c);
        if (!atomic_load(&r->ended) && (deadline == CST_NEVER || cst_deadline_left(deadline, BREATH_MS) >= BREATH_MS))
            rest(c);
        else if (!atomic_load(&r->ended))
            c->transport->ops->idle(c->transport, cst_deadline_left(deadline, 1));
        leave_driver(c);
    }
    return r->status;
}

void cst_comm_hold(coset_comm *c)
{
    while (!take_driver(c)) {
        c->transport->ops->wake(c->transport);
        sleep_for_turn(c, NULL, CST_NEVER);
    }
    drive_pass(c);
}

void cst_comm_release(coset_comm *c)
{
    leave_driver(c);
}

static void *progress_main(void *arg)
{
    coset_comm *c = arg;
    while (!atomic_load(&c->progress.stop)) {
        uint32_t seen = cst_bell_read(&c->progress.bell);
        if (!cst_queued(c)) {
            cst_bell_sleep(&c->progress.bell, seen, -1);
            continue;
        }
        if (!take_driver(c)) {
            /* a caller drives; it may leave operations behind that nobody waits for */
            cst_bell_sleep(&c->progress.bell, seen, BREATH_MS / 10);
            continue;
        }
        drive_pass(c);
        if (cst_queued(c) && !atomic_load(&c->progress.stop))
            rest(c);
        leave_driver(c);
    }
    return NULL;
}

int cst_comm_cancel_all(coset_comm *c, coset_status status)
{
    int some = cst_queued(c) > 0;
    if (c->progress.running) {
        atomic_store(&c->progress.stop, 1);
        cst_bell_ring(&c->progress.bell);
        c->transport->ops->wake(c->transport);
        pthread_join(c->progress.thread, NULL);
        c->progress.running = 0;
    }
    if (!take_driver(c))
        return some; /* a caller still drives: destroying under it is the user's error, but nothing is freed twice */
    drive_pairwise(c, status);
    drive_collectives(c, status);
    cst_queue_drop_requests(c);
    leave_driver(c);
    return some;
}
