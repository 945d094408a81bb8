/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flag: a 32-bit word, possibly in memory shared by processes, that one side raises and others wait for.
 *
 * The word holds a sequence number in its upper 31 bits and "somebody sleeps" in bit 0. The poster exchanges the word
 * and wakes sleepers only if bit 0 was set, so a post with nobody asleep costs one locked instruction (no measurable
 * difference from a plain store, docs/performance.md). Sequence numbers compare modulo 2^31.
 *
 * Waiting goes through three stages: spin, sched_yield, futex. With at most as many ranks as cores spinning is right;
 * on an oversubscribed host a spinning rank keeps the core from the very rank it waits for, so it yields soon.
 */
#ifndef CST_BASE_FLAG_H
#define CST_BASE_FLAG_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* On its own pair of cache lines: processors prefetch lines in pairs. */
typedef struct {
    _Alignas(128) _Atomic uint32_t word;
} cst_flag;

/* How long each stage lasts; cst_patience_for chooses. */
typedef struct {
    int spins, yields;
} cst_patience;
cst_patience cst_patience_for(bool core_each);

static inline bool cst_flag_reached(const _Atomic uint32_t *word, uint32_t sequence)
{
    uint32_t v = atomic_load_explicit(word, memory_order_acquire) & ~1u;
    return (int32_t)(v - (sequence << 1)) >= 0;
}
/* The sequence number now in the flag (31 bits). */
static inline uint32_t cst_flag_value(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire) >> 1;
}
void cst_flag_wake(_Atomic uint32_t *word);
/* Raises the flag to `sequence`; everything written before is visible to who sees it raised. */
static inline void cst_flag_post(_Atomic uint32_t *word, uint32_t sequence)
{
    if (atomic_exchange_explicit(word, sequence << 1, memory_order_acq_rel) & 1u)
        cst_flag_wake(word);
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
bool cst_flag_poll(const _Atomic uint32_t *word, uint32_t sequence, cst_patience patience);
/* Sleeps until the flag is raised or timeout_ms have passed (may return early). True when reached. */
bool cst_flag_sleep(_Atomic uint32_t *word, uint32_t sequence, int timeout_ms);

/* A doorbell: a counter that anybody rings and one side sleeps on, for "something has changed". */
uint32_t cst_bell_read(const _Atomic uint32_t *word);                       /* before looking for work */
void cst_bell_ring(_Atomic uint32_t *word);                                 /* after making work */
void cst_bell_sleep(_Atomic uint32_t *word, uint32_t seen, int timeout_ms); /* returns at once if rung since `seen` */
#endif
