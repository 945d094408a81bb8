/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floating-point mode of the calling thread (rounding direction, flushing of denormals, trapping exceptions): MXCSR
 * on x86-64, FPCR on AArch64. Ranks whose callers run in different modes must still get the same bits, so every entry
 * to the kernels puts the mode to its default and back:
 *
 *     cst_fpmode saved = cst_fpmode_enter();
 *     ... kernels ...
 *     cst_fpmode_leave(saved);
 *
 * A mode that is the default already, the usual case, costs one read of the register and no write.
 */
#ifndef CST_CPU_FPMODE_H
#define CST_CPU_FPMODE_H
#include <stdint.h>
#ifdef COSET_HAVE_X86
#include <xmmintrin.h>
#endif

typedef uint64_t cst_fpmode;

#if defined(COSET_HAVE_X86)
/* Nearest even, denormals kept, all exceptions masked; the low six bits are flags that operations leave behind. */
#define CST_FPMODE_DEFAULT 0x1f80u
#define CST_FPMODE_FLAGS   0x3fu
static inline uint64_t cst_fpmode_read(void)
{
    return _mm_getcsr();
}
static inline void cst_fpmode_write(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
#elif defined(COSET_HAVE_NEON)
#define CST_FPMODE_DEFAULT 0u
#define CST_FPMODE_FLAGS   0u
static inline uint64_t cst_fpmode_read(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void cst_fpmode_write(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#else
#define CST_FPMODE_DEFAULT 0u
#define CST_FPMODE_FLAGS   0u
static inline uint64_t cst_fpmode_read(void)
{
    return CST_FPMODE_DEFAULT;
}
static inline void cst_fpmode_write(uint64_t mode)
{
    (void)mode;
}
#endif

static inline cst_fpmode cst_fpmode_enter(void)
{
    cst_fpmode saved = cst_fpmode_read();
    if ((saved & ~(uint64_t)CST_FPMODE_FLAGS) != CST_FPMODE_DEFAULT)
        cst_fpmode_write(CST_FPMODE_DEFAULT);
    return saved;
}

static inline void cst_fpmode_leave(cst_fpmode saved)
{
    if ((saved & ~(uint64_t)CST_FPMODE_FLAGS) != CST_FPMODE_DEFAULT)
        cst_fpmode_write(saved);
}
#endif
