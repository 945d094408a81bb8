/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floating-point mode of codecs: round to nearest even, exceptions masked, denormal inputs and outputs taken as
 * zero. It is state of the thread that its program may have changed, and both bits and speed depend on it: results must
 * agree between ranks, and denormals cost 30 to 40 % of a kernel's speed. (Collectives keep denormals: cpu/fpmode.h.)
 *
 *     cst_flush_mode saved = cst_flush_enter();
 *     ... codec kernels ...
 *     cst_flush_leave(saved);
 *
 * Some 10 ns: once per call of the codec, not per block. No code of the user's may run between the two.
 */
#ifndef CST_KERNELS_FLUSH_H
#define CST_KERNELS_FLUSH_H
#include <stdint.h>

typedef struct {
    uint64_t control;
} cst_flush_mode;

static inline cst_flush_mode cst_flush_enter(void)
{
    cst_flush_mode saved = {0};
#if defined(__x86_64__)
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x40, ALL_MASKED = 0x1f80 };
    saved.control = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(FLUSH_TO_ZERO | DENORMALS_ARE_ZERO | ALL_MASKED);
#elif defined(__aarch64__)
    const uint64_t flush_to_zero = 1u << 24;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(saved.control));
    __asm__ __volatile__("msr fpcr, %0" : : "r"(flush_to_zero) : "memory");
#endif
    return saved;
}

static inline void cst_flush_leave(cst_flush_mode saved)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((unsigned)saved.control);
#elif defined(__aarch64__)
    __asm__ __volatile__("msr fpcr, %0" : : "r"(saved.control) : "memory");
#else
    (void)saved;
#endif
}
#endif
