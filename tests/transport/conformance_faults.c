/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: deaths, late ranks, forks, and what is left behind. */
#include "transport/conformance.h"
#include "transport/drive.h"

#include "base/clock.h"
#include "base/fork.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A death is known everywhere within this time. */
enum { DEATH_MS = 5000 };

static int count_entries(const char *directory)
{
    int n = 0;
    DIR *d = opendir(directory);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Abstract sockets of ours. */
static int count_sockets(const rank_env *e)
{
    char line[512], name[40];
    snprintf(name, sizeof name, "@coset-%016llx", (unsigned long long)e->config.job);
    int n = 0;
    FILE *f = fopen("/proc/net/unix", "re");
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, name) != NULL;
    if (f)
        fclose(f);
    return n;
}

/* Descriptors, files in /dev/shm and abstract sockets are as before. With threads all ranks share the descriptors, so
 * rank 0 counts while the others wait. */
void test_leftovers(rank_env *e)
{
    int files = 0, shm = 0, sockets = 0;
    rank_barrier(e);
    for (int turn = 0; turn < 3; turn++) {
        rank_barrier(e);
        if (!e->rank && !turn) {
            files = count_entries("/proc/self/fd");
            shm = count_entries("/dev/shm");
            sockets = count_sockets(e);
        }
        rank_barrier(e);
        rank_create(e);
        coset_error why = COSET_ERROR_INIT;
        void *ptr;
        if (e->ops->caps(e->t)->flags & COSET_CAN_MAP)
            CHECK_INT(e->ops->alloc(e->t, &e->oob, 100000, &ptr, &why), COSET_OK);
        sync_by_messages(e, 1);
        rank_destroy(e);
        rank_barrier(e);
        if (!e->rank) {
            CHECK_INT(count_entries("/proc/self/fd"), files);
            CHECK_INT(count_entries("/dev/shm"), shm);
            CHECK_INT(count_sockets(e), sockets);
        }
    }
}

/* A child of fork that lives on hides neither a goodbye nor a death, and disturbs nothing. */
void test_fork(rank_env *e)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        poll(NULL, 0, 60000); /* it would keep the sockets open, were they not closed in children */
        _exit(0);
    }
    sync_by_messages(e, 1);
    if (!e->rank) {
        atomic_store(&e->shared->word[0], (uint32_t)child);
        sync_by_messages(e, 2);
        rank_die(e);
    }
    sync_by_messages(e, 2);
    wait_notice_of(e, COSET_NOTICE_DEATH, 0, DEATH_MS);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (e->rank == 1) /* the child of the dead rank is nobody's */
        kill((pid_t)atomic_load(&e->shared->word[0]), SIGKILL);
    CHECK(cst_fork_generation() == 0);
}

/* A rank that does not come: the others are told, in time, and nothing hangs. */
void test_late_create(rank_env *e)
{
    e->config.late_ms = 300;
    if (e->rank == 1)
        return;
    coset_error why = COSET_ERROR_INIT;
    cst_deadline end = cst_deadline_in(STEP_MS);
    coset_status status = e->ops->create(&e->oob, &e->config, &e->t, &why);
    CHECK_INT(status, COSET_ERR_LATE);
    CHECK(strlen(why.text) > 10);
    CHECK(!e->t);
    CHECK(!cst_deadline_passed(end));
}

/* After rank 1's death: everybody else hears of it, once; messages with it end; messages among the others do not. */
static void check_death(rank_env *e, coset_msg *pending, int count)
{
    coset_notice n = wait_notice_of(e, COSET_NOTICE_DEATH, 1, DEATH_MS);
    CHECK_INT(n.status, COSET_ERR_PEER);
    CHECK_INT(n.peer, 1);
    for (int i = 0; i < count; i++)
        CHECK_INT(wait_msg(e, &pending[i]), COSET_ERR_PEER);
    parcel p;
    parcel_init(&p, 1, 99, 0, 10, NULL);
    p.msg.iov = &p.iov;
    CHECK_INT(e->ops->isend(e->t, &p.msg), COSET_ERR_PEER);
    CHECK_INT(e->ops->irecv(e->t, &p.msg), COSET_ERR_PEER);
    parcel_free(&p);
    for (int r = 0; r < e->size; r++)
        if (r != e->rank && r != 1) {
            parcel out, in;
            parcel_init(&out, r, 100, 0, 200000, NULL);
            parcel_init(&in, r, 100, 0, 200000, NULL);
            parcel_fill(&out, e->rank, r);
            send_parcel(e, &out);
            receive_parcel(e, &in);
            wait_both(e, &out, &in);
            parcel_check(&in, r, e->rank);
            parcel_free(&out);
            parcel_free(&in);
        }
}

/* Nobody talks to the rank that dies: it is asleep, they are too. */
void test_death_idle(rank_env *e)
{
    rank_create(e);
    sync_by_messages(e, 1);
    if (e->rank == 1)
        rank_die(e);
    check_death(e, NULL, 0);
    rank_destroy(e);
}

enum { PENDING = 3, PENDING_BYTES = 3000000 };

/* Rank 1 dies with messages under way in both directions, before it has driven them or in the middle. */
static void die_with_messages(rank_env *e, bool victim_sends)
{
    parcel p[PENDING];
    coset_msg pending[PENDING];
    rank_create(e);
    /* between hosts a send may be done when the system has taken it: its memory is free, whoever receives it */
    bool in_buffers = !victim_sends && !(e->ops->caps(e->t)->flags & COSET_CAN_CONTROL);
    for (uint32_t k = 0; k < PENDING; k++) {
        parcel_init(&p[k], e->rank == 1 ? 0 : 1, 7, k, PENDING_BYTES, NULL);
        memset(p[k].data, 1, p[k].bytes);
    }
    sync_by_messages(e, 1);
    if (e->rank == 1) {
        for (uint32_t k = 0; k < PENDING; k++) {
            if (victim_sends)
                send_parcel(e, &p[k]);
            else
                receive_parcel(e, &p[k]);
            e->ops->progress(e->t);
        }
        rank_die(e);
    }
    /* more than it will ever answer: the last one is on its way to or from nobody */
    for (uint32_t k = 0; k < PENDING; k++) {
        p[k].msg.tag = e->rank ? 1000 + k : 10 * k;
        p[k].msg.iov = &p[k].iov;
        p[k].msg.entry = &p[k].entry;
        coset_status status = victim_sends ? e->ops->irecv(e->t, &p[k].msg) : e->ops->isend(e->t, &p[k].msg);
        CHECK(status == COSET_OK || status == COSET_ERR_PEER); /* its death may be known already */
    }
    coset_notice n = wait_notice_of(e, COSET_NOTICE_DEATH, 1, DEATH_MS);
    CHECK_INT(n.status, COSET_ERR_PEER);
    for (uint32_t k = 0; k < PENDING; k++) {
        coset_status status = wait_msg(e, &p[k].msg);
        CHECK(status == COSET_ERR_PEER || (status == COSET_OK && (k == 0 || e->rank || in_buffers)));
        pending[k] = p[k].msg;
        parcel_free(&p[k]);
    }
    if (!in_buffers)
        CHECK_INT(pending[PENDING - 1].status, COSET_ERR_PEER);
    coset_msg again = {.peer = 1};
    CHECK_INT(e->ops->isend(e->t, &again), COSET_ERR_PEER);
    rank_destroy(e);
}

void test_death_send(rank_env *e)
{
    die_with_messages(e, true);
}

void test_death_receive(rank_env *e)
{
    die_with_messages(e, false);
}

/* Two at once, of which one must not hide the other. */
void test_death_of_two(rank_env *e)
{
    rank_create(e);
    sync_by_messages(e, 1);
    if (e->rank == 1 || e->rank == 3)
        rank_die(e);
    bool seen[2] = {false, false};
    while (!seen[0] || !seen[1]) {
        coset_notice n = wait_notice(e, DEATH_MS);
        if (n.kind == COSET_NOTICE_GOODBYE) /* another survivor that has seen both already */
            continue;
        CHECK_INT(n.kind, COSET_NOTICE_DEATH);
        CHECK(n.about == 1 || n.about == 3);
        seen[n.about / 2] = true;
    }
    rank_destroy(e);
}

/* Dies inside the oob's call number `fuse`: between the steps of create or alloc. */
typedef struct {
    rank_env *e;
    coset_oob inner;
    int fuse;
} dying_oob;

static coset_status gather_or_die(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    dying_oob *d = ctx;
    if (d->e->rank == 1 && d->fuse-- == 0)
        rank_die(d->e);
    return d->inner.allgather(d->inner.ctx, send, recv, bytes, timeout_ms);
}

static coset_oob dying(dying_oob *d, rank_env *e, int fuse)
{
    *d = (dying_oob){e, e->oob, fuse};
    return (coset_oob){sizeof(coset_oob), e->rank, e->size, d, gather_or_die};
}

void test_death_alloc(rank_env *e)
{
    dying_oob d;
    coset_error why = COSET_ERROR_INIT;
    void *ptr = NULL;
    e->config.late_ms = 2000; /* creation has to be through in this time, too */
    rank_create(e);
    if (!(e->ops->caps(e->t)->flags & COSET_CAN_MAP)) {
        rank_destroy(e);
        return;
    }
    coset_oob oob = dying(&d, e, 1);
    cst_deadline end = cst_deadline_in(DEATH_MS);
    coset_status status = e->ops->alloc(e->t, &oob, 1000, &ptr, &why);
    CHECK(status == COSET_ERR_LATE || status == COSET_ERR_PEER);
    CHECK(!ptr && !cst_deadline_passed(end));
    wait_notice_of(e, COSET_NOTICE_DEATH, 1, DEATH_MS);
    rank_destroy(e);
}

/* Whatever step of create it dies in, the others fail in time. */
void test_death_create(rank_env *e)
{
    dying_oob d;
    coset_error why = COSET_ERROR_INIT;
    e->config.late_ms = 500;
    coset_oob oob = dying(&d, e, 1);
    cst_deadline end = cst_deadline_in(DEATH_MS);
    coset_status status = e->ops->create(&oob, &e->config, &e->t, &why);
    CHECK(status == COSET_ERR_LATE || status == COSET_ERR_PEER);
    CHECK(strlen(why.text) > 10);
    CHECK(!cst_deadline_passed(end));
}

/* A rank that is stopped for a while is late, not dead. */
void test_stopped_is_not_dead(rank_env *e)
{
    enum { STOP_MS = 700 };
    atomic_store(&e->shared->word[e->rank], (uint32_t)getpid());
    sync_by_messages(e, 1);
    if (e->rank == 0) {
        pid_t victim = (pid_t)atomic_load(&e->shared->word[1]);
        kill(victim, SIGSTOP);
        cst_deadline end = cst_deadline_in(STOP_MS);
        coset_notice n;
        while (!cst_deadline_passed(end)) {
            drive(e);
            CHECK(!e->ops->poll_notice(e->t, &n));
        }
        kill(victim, SIGCONT);
    }
    sync_by_messages(e, 2);
}
