/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    int *fds;
    size_t count, capacity;
} guarded = {PTHREAD_ONCE_INIT, PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};
static _Atomic unsigned generation;

static void before(void)
{
    pthread_mutex_lock(&guarded.lock);
}

static void after_in_parent(void)
{
    pthread_mutex_unlock(&guarded.lock);
}

static void after_in_child(void)
{
    atomic_fetch_add(&generation, 1);
    for (size_t i = 0; i < guarded.count; i++)
        close(guarded.fds[i]);
    guarded.count = 0;
    pthread_mutex_unlock(&guarded.lock);
}

static void install(void)
{
    pthread_atfork(before, after_in_parent, after_in_child);
}

unsigned cst_fork_generation(void)
{
    pthread_once(&guarded.once, install); /* who remembers a generation may never guard a descriptor */
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

coset_status cst_fork_guard(int fd)
{
    coset_status status = COSET_OK;
    pthread_once(&guarded.once, install);
    pthread_mutex_lock(&guarded.lock);
    if (guarded.count == guarded.capacity) {
        size_t wanted = guarded.capacity ? 2 * guarded.capacity : 64;
        int *grown = realloc(guarded.fds, wanted * sizeof *grown);
        if (grown) {
            guarded.fds = grown;
            guarded.capacity = wanted;
        }
    }
    if (guarded.count < guarded.capacity)
        guarded.fds[guarded.count++] = fd;
    else
        status = COSET_ERR_MEMORY;
    pthread_mutex_unlock(&guarded.lock);
    return status;
}

void cst_fork_unguard(int fd)
{
    pthread_mutex_lock(&guarded.lock);
    for (size_t i = 0; i < guarded.count; i++)
        if (guarded.fds[i] == fd) {
            guarded.fds[i] = guarded.fds[--guarded.count];
            break;
        }
    pthread_mutex_unlock(&guarded.lock);
}
