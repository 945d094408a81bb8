/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: entries, cancelling, notices, sleeping. */
#include "transport/conformance.h"
#include "transport/drive.h"

#include "base/clock.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DIFFERENT_SIZE, DIFFERENT_ENTRY, DIFFERENCES };

/* A message that is not the one expected ends its receive with MISMATCH, and the sender is not stuck. */
void test_mismatch(rank_env *e)
{
    static const size_t sizes[] = {10, 4096, 100000, 1000000};
    int next = (e->rank + 1) % e->size, before = (e->rank + e->size - 1) % e->size;
    uint64_t op = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 2 * DIFFERENCES; how++, op++) {
            parcel out, in;
            bool size = how % DIFFERENCES == DIFFERENT_SIZE, early = how >= DIFFERENCES;
            parcel_init(&out, next, op, 1, sizes[i], NULL);
            parcel_init(&in, before, op, 1, sizes[i] + (size ? 1 : 0), NULL);
            if (!size)
                in.entry.bytes[31] ^= 1;
            memset(out.data, 1, out.bytes);
            memset(in.data, 2, in.bytes);
            if (early)
                send_parcel(e, &out);
            receive_parcel(e, &in);
            if (!early)
                send_parcel(e, &out);
            CHECK_INT(wait_msg(e, &in.msg), COSET_ERR_MISMATCH);
            CHECK_INT(in.data[0], 2);
            wait_msg(e, &out.msg);
            parcel_free(&out);
            parcel_free(&in);
        }
}

typedef struct {
    int count[RANKS_MAX];
    bool wrong;
} seen_entries;

static void note_entry(void *ctx, int peer, uint64_t op, const coset_entry *entry)
{
    seen_entries *s = ctx;
    coset_entry want = entry_of(op);
    s->wrong |= memcmp(entry, &want, sizeof want) != 0;
    s->count[peer]++;
}

/* Every message is told once, with its entry, although nobody has posted a receive. */
void test_on_entry(rank_env *e)
{
    static const size_t sizes[] = {0, 100, 50000, 1000000};
    enum { MESSAGES = sizeof sizes / sizeof *sizes };
    seen_entries seen = {{0}, false};
    e->config.on_entry = note_entry;
    e->config.ctx = &seen;
    rank_create(e);
    parcel out[RANKS_MAX][MESSAGES], in;
    for (int r = 0; r < e->size; r++)
        for (uint32_t k = 0; k < MESSAGES && r != e->rank; k++) {
            parcel_init(&out[r][k], r, 10 + k, k, sizes[k], NULL);
            parcel_fill(&out[r][k], e->rank, r);
            send_parcel(e, &out[r][k]);
        }
    cst_deadline end = cst_deadline_in(STEP_MS);
    for (int r = 0; r < e->size; r++)
        while (r != e->rank && seen.count[r] < MESSAGES) {
            drive(e);
            CHECK(!cst_deadline_passed(end));
        }
    for (int r = 0; r < e->size; r++)
        for (uint32_t k = 0; k < MESSAGES && r != e->rank; k++) {
            parcel_init(&in, r, 10 + k, k, sizes[k], NULL);
            receive_parcel(e, &in);
            CHECK_INT(wait_msg(e, &in.msg), COSET_OK);
            parcel_check(&in, r, e->rank);
            parcel_free(&in);
        }
    for (int r = 0; r < e->size; r++) {
        CHECK_INT(seen.count[r], r == e->rank ? 0 : MESSAGES);
        for (uint32_t k = 0; k < MESSAGES && r != e->rank; k++) {
            CHECK_INT(wait_msg(e, &out[r][k].msg), COSET_OK);
            parcel_free(&out[r][k]);
        }
    }
    CHECK(!seen.wrong);
    rank_destroy(e);
}

/* A cancelled message ends at once, and the next ones are not disturbed. */
void test_cancel(rank_env *e)
{
    static const size_t sizes[] = {100, 100000, 3000000};
    int next = (e->rank + 1) % e->size, before = (e->rank + e->size - 1) % e->size;
    for (uint32_t k = 0; k < 3; k++) {
        parcel out, in;
        parcel_init(&in, before, 1000 + k, 0, sizes[k], NULL);
        receive_parcel(e, &in);
        e->ops->progress(e->t);
        e->ops->cancel(e->t, &in.msg); /* its message is never sent */
        CHECK_INT(in.msg.status, COSET_ERR_ABORTED);
        parcel_init(&out, next, 2000 + k, 0, sizes[k], NULL);
        parcel_fill(&out, e->rank, next);
        send_parcel(e, &out); /* nobody receives it */
        for (int i = 0; i < 10; i++)
            e->ops->progress(e->t);
        if (out.msg.status == COSET_IN_PROGRESS) {
            e->ops->cancel(e->t, &out.msg);
            CHECK_INT(out.msg.status, COSET_ERR_ABORTED);
        }
        parcel_free(&in);
        parcel_free(&out);
    }
    sync_by_messages(e, 3000);
    for (uint32_t k = 0; k < 3; k++) {
        parcel out, in;
        parcel_init(&out, next, 4000 + k, 0, sizes[k], NULL);
        parcel_init(&in, before, 4000 + k, 0, sizes[k], NULL);
        parcel_fill(&out, e->rank, next);
        send_parcel(e, &out);
        receive_parcel(e, &in);
        wait_both(e, &out, &in);
        parcel_check(&in, before, e->rank);
        parcel_free(&in);
        parcel_free(&out);
    }
}

/* After a cancel the memory may vanish: nobody touches it any more, also while the peer drives at full speed. */
void test_cancel_frees_memory(rank_env *e)
{
    enum { ROUNDS = 60, BYTES = 300000 };
    for (uint64_t op = 0; op < ROUNDS; op++) {
        parcel p;
        void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        parcel_init(&p, !e->rank, op, 0, BYTES, memory);
        bool sender = (op & 1) == (uint64_t)e->rank;
        if (sender)
            send_parcel(e, &p);
        else
            receive_parcel(e, &p);
        for (uint64_t i = 0; i < op % 7 && p.msg.status == COSET_IN_PROGRESS; i++)
            e->ops->progress(e->t);
        if (p.msg.status == COSET_IN_PROGRESS)
            e->ops->cancel(e->t, &p.msg);
        CHECK(p.msg.status == COSET_OK || p.msg.status == COSET_ERR_ABORTED);
        munmap(memory, BYTES);
        e->ops->progress(e->t);
    }
    sync_by_messages(e, ROUNDS);
}

static coset_notice make_notice(coset_notice_kind kind, int about, const char *text)
{
    coset_notice n = {.kind = kind, .about = about, .status = COSET_ERR_MISMATCH, .peer = about, .op = 42};
    snprintf(n.text, sizeof n.text, "%s", text);
    return n;
}

/* Every rank announces; every other gets all of it, whole. */
void test_notices(rank_env *e)
{
    coset_notice mine = make_notice(COSET_NOTICE_MISMATCH, e->rank, "");
    memset(mine.text, 'a' + e->rank, sizeof mine.text - 1);
    CHECK_INT(e->ops->announce(e->t, &mine), COSET_OK);
    unsigned seen = 1u << e->rank;
    while (seen != (1u << e->size) - 1) {
        coset_notice n = wait_notice(e, STEP_MS);
        CHECK_INT(n.kind, COSET_NOTICE_MISMATCH);
        CHECK(n.about >= 0 && n.about < e->size && !(seen & 1u << n.about));
        CHECK_INT(n.status, COSET_ERR_MISMATCH);
        CHECK_INT(n.peer, n.about);
        CHECK_INT(n.op, 42);
        CHECK_INT(strlen(n.text), sizeof n.text - 1);
        CHECK_INT(n.text[100], 'a' + n.about);
        seen |= 1u << n.about;
    }
    rank_barrier(e);
}

/* A rank that sleeps hears of an abort in far less than the time it was ready to sleep. */
void test_abort_wakes(rank_env *e)
{
    coset_notice n;
    if (!e->rank) {
        rank_barrier(e);
        coset_notice abort_now = make_notice(COSET_NOTICE_ABORT, 0, "enough");
        CHECK_INT(e->ops->announce(e->t, &abort_now), COSET_OK);
        rank_barrier(e);
        return;
    }
    rank_barrier(e);
    cst_deadline end = cst_deadline_in(STEP_MS);
    while (!e->ops->poll_notice(e->t, &n)) {
        e->ops->progress(e->t);
        e->ops->idle(e->t, 2 * STEP_MS);
        CHECK(!cst_deadline_passed(end));
    }
    CHECK_INT(n.kind, COSET_NOTICE_ABORT);
    CHECK(!strcmp(n.text, "enough"));
    rank_barrier(e);
}

typedef struct {
    rank_env *e;
    _Atomic bool stop;
} waker;

static void *keep_waking(void *argument)
{
    waker *w = argument;
    while (!atomic_load(&w->stop)) {
        w->e->ops->wake(w->e->t);
        poll(NULL, 0, 1);
    }
    return NULL;
}

/* wake() from another thread ends idle(), and a wake before idle() is not lost. */
void test_wake(rank_env *e)
{
    cst_deadline end = cst_deadline_in(STEP_MS);
    e->ops->wake(e->t);
    e->ops->idle(e->t, 2 * STEP_MS);
    /* nor is it lost when progress comes in between: what the waker wants may have been looked for before */
    e->ops->wake(e->t);
    for (int i = 0; i < 5; i++) {
        poll(NULL, 0, 12);
        e->ops->progress(e->t);
    }
    e->ops->idle(e->t, 2 * STEP_MS);
    waker w = {e, false};
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, keep_waking, &w), 0);
    for (int i = 0; i < 50; i++)
        e->ops->idle(e->t, 2 * STEP_MS);
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    CHECK(!cst_deadline_passed(end));
    rank_barrier(e);
}

/* Leaving in good order is no death. */
void test_goodbye(rank_env *e)
{
    rank_create(e);
    if (e->rank == 0) {
        rank_destroy(e);
        rank_barrier(e);
        return;
    }
    coset_notice n = wait_notice(e, STEP_MS);
    CHECK_INT(n.kind, COSET_NOTICE_GOODBYE);
    CHECK_INT(n.about, 0);
    CHECK_INT(n.status, COSET_OK);
    rank_barrier(e); /* rank 0 is away, its sockets closed */
    for (int i = 0; i < 5; i++) {
        e->ops->progress(e->t);
        e->ops->idle(e->t, 10);
        CHECK(!e->ops->poll_notice(e->t, &n) || n.kind == COSET_NOTICE_GOODBYE);
    }
    rank_destroy(e);
}

/* fd() and arm(): sleeping in poll() misses nothing. */
void test_sleep_by_descriptor(rank_env *e)
{
    enum { ROUNDS = 50 };
    if (!(e->ops->caps(e->t)->flags & COSET_CAN_SLEEP))
        return;
    int next = (e->rank + 1) % e->size, before = (e->rank + e->size - 1) % e->size;
    cst_deadline end = cst_deadline_in(STEP_MS);
    for (uint64_t op = 0; op < ROUNDS; op++) {
        parcel out, in;
        parcel_init(&out, next, op, 0, op * 9000, NULL);
        parcel_init(&in, before, op, 0, op * 9000, NULL);
        parcel_fill(&out, e->rank, next);
        send_parcel(e, &out);
        receive_parcel(e, &in);
        while (in.msg.status == COSET_IN_PROGRESS || out.msg.status == COSET_IN_PROGRESS) {
            struct pollfd p = {e->ops->fd(e->t), POLLIN, 0};
            if (e->ops->progress(e->t) == COSET_IN_PROGRESS && e->ops->arm(e->t) == COSET_IN_PROGRESS)
                CHECK_INT(poll(&p, 1, STEP_MS), 1);
            CHECK(!cst_deadline_passed(end));
        }
        CHECK_INT(in.msg.status, COSET_OK);
        CHECK_INT(out.msg.status, COSET_OK);
        parcel_check(&in, before, e->rank);
        parcel_free(&in);
        parcel_free(&out);
    }
}
