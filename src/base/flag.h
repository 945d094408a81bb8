/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flag: a number, possibly in memory shared by processes, that one side raises and others wait for, and how many of
 * them sleep. Numbers compare modulo 2^32.
 *
 * Who raises it must afterwards wake the sleepers. Between the two lies a full fence, so that a waiter about to sleep
 * either sees the number or is seen asleep. The fence waits until the other cores have given up the line, a third of a
 * small all-reduce (docs/performance.md): so raising and waking are two steps, and who has something better to do in
 * between, such as looking for the others' flags, does that first.
 *
 * Waiting goes through three stages: spin, sched_yield, futex. With at most as many ranks as cores spinning is right;
 * on an oversubscribed host a spinning rank keeps the core from the very rank it waits for, so it yields soon.
 */
#ifndef CST_BASE_FLAG_H
#define CST_BASE_FLAG_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    _Atomic uint32_t number, asleep;
} cst_flag;
/* On its own pair of cache lines: processors prefetch lines in pairs. */
typedef struct {
    _Alignas(128) cst_flag flag;
} cst_flag_line;

/* How long each stage lasts; cst_patience_for chooses. */
typedef struct {
    int spins, yields;
} cst_patience;
/* Before anything else is done: a pause takes tens of cycles, and a flag that is about to be raised would be seen late. */
#define CST_FLAG_EAGER ((cst_patience){20, 0})
cst_patience cst_patience_for(int ranks_on_host);

static inline bool cst_flag_reached(const cst_flag *flag, uint32_t number)
{
    return (int32_t)(atomic_load_explicit(&flag->number, memory_order_acquire) - number) >= 0;
}
static inline uint32_t cst_flag_value(const cst_flag *flag)
{
    return atomic_load_explicit(&flag->number, memory_order_acquire);
}
/* Raises the flag: everything written before is visible to who sees it raised. Sleepers sleep on. */
static inline void cst_flag_raise(cst_flag *flag, uint32_t number)
{
    atomic_store_explicit(&flag->number, number, memory_order_release);
}
void cst_flag_wake_all(cst_flag *flag);
/* Wakes who sleeps on a flag that has been raised. For a caller who has made a full fence since. */
static inline void cst_flag_wake(cst_flag *flag)
{
    if (atomic_load_explicit(&flag->asleep, memory_order_relaxed))
        cst_flag_wake_all(flag);
}
/* Raises and wakes. */
static inline void cst_flag_post(cst_flag *flag, uint32_t number)
{
    cst_flag_raise(flag, number);
    atomic_thread_fence(memory_order_seq_cst);
    cst_flag_wake(flag);
}
static inline void cst_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}
/* Spins and yields, without sleeping. True when the flag has been reached. */
bool cst_flag_poll(const cst_flag *flag, uint32_t number, cst_patience patience);
/* Sleeps until the flag is raised or timeout_ms have passed (may return early). True when reached. */
bool cst_flag_sleep(cst_flag *flag, uint32_t number, int timeout_ms);

/* A doorbell: a counter that anybody rings and one side sleeps on, for "something has changed". */
uint32_t cst_bell_read(const _Atomic uint32_t *word);                       /* before looking for work */
void cst_bell_ring(_Atomic uint32_t *word);                                 /* after making work */
void cst_bell_sleep(_Atomic uint32_t *word, uint32_t seen, int timeout_ms); /* returns at once if rung since `seen` */
#endif
