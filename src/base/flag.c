/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flag.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void futex_wait(_Atomic uint32_t *word, uint32_t expected, int timeout_ms)
{
    struct timespec t = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    /* not FUTEX_PRIVATE: the word may be shared by processes */
    syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ms < 0 ? NULL : &t, NULL, 0);
}

void cst_flag_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Measured (docs/performance.md): two ranks on two cores gain from a long spin; four ranks on two cores lose
 * milliseconds to one, since the kernel may not preempt the spinner for a tick. */
cst_patience cst_patience_for(bool core_each)
{
    return core_each ? (cst_patience){2000, 10} : (cst_patience){20, 10};
}

/* A pause takes tens of cycles: a flag that is about to be raised would be seen late. */
#define EAGER_POLLS 20

bool cst_flag_poll(const _Atomic uint32_t *word, uint32_t sequence, cst_patience patience)
{
    for (int i = 0; i < patience.spins; i++) {
        if (cst_flag_reached(word, sequence))
            return true;
        if (i >= EAGER_POLLS)
            cst_pause();
    }
    for (int i = 0; i < patience.yields; i++) {
        if (cst_flag_reached(word, sequence))
            return true;
        sched_yield();
    }
    return cst_flag_reached(word, sequence);
}

bool cst_flag_sleep(_Atomic uint32_t *word, uint32_t sequence, int timeout_ms)
{
    uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
    if ((int32_t)((seen & ~1u) - (sequence << 1)) >= 0)
        return true;
    /* The poster looks at bit 0 of what it replaces; if the word changes between here and the futex call, the call
     * returns at once, since it compares. */
    if (!(seen & 1u) && !atomic_compare_exchange_strong(word, &seen, seen | 1u))
        return cst_flag_reached(word, sequence);
    futex_wait(word, seen | 1u, timeout_ms);
    return cst_flag_reached(word, sequence);
}

uint32_t cst_bell_read(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire) & ~1u;
}

void cst_bell_ring(_Atomic uint32_t *word)
{
    uint32_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(word, &old, (old & ~1u) + 2u, memory_order_acq_rel,
                                                  memory_order_relaxed))
        ;
    if (old & 1u)
        cst_flag_wake(word);
}

void cst_bell_sleep(_Atomic uint32_t *word, uint32_t seen, int timeout_ms)
{
    uint32_t now = atomic_load_explicit(word, memory_order_acquire);
    if ((now & ~1u) != seen)
        return;
    if (!(now & 1u) && !atomic_compare_exchange_strong(word, &now, now | 1u))
        return;
    futex_wait(word, now | 1u, timeout_ms);
}
