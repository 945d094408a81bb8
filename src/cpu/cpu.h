/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels this processor may run: named levels, so that nobody tests single feature bits.
 *
 * The level is found once, at first use: the best that both the processor and the operating system support, or the
 * lower one that COSET_CPU asks for. Every kernel gives the same bits at every level, so the level is only a matter of
 * speed, and ranks may differ in it.
 */
#ifndef CST_CPU_CPU_H
#define CST_CPU_CPU_H
#include <coset.h>
#include <stdbool.h>

typedef enum {
    CST_CPU_SCALAR = 0, /* plain C, the definition of every result */
    CST_CPU_AVX2,       /* AVX2, FMA, F16C */
    CST_CPU_AVX512,     /* F, BW, VL, DQ, and all of AVX2's */
    CST_CPU_NEON        /* AArch64, always there */
} cst_cpu;
#define CST_CPU_COUNT 4

/* The level in force. Any thread; a few instructions. */
cst_cpu cst_cpu_level(void);
/* Can this machine run `level`? Not affected by COSET_CPU. */
bool cst_cpu_has(cst_cpu level);
/* "scalar", "avx2", "avx512", "neon"; a constant string. */
const char *cst_cpu_name(cst_cpu level);
/* COSET_OK, or ARGUMENT when COSET_CPU has a value that is no level or one that this machine lacks. (cst_cpu_level then
 * ignores COSET_CPU; who creates a communicator calls this first.) */
coset_status cst_cpu_check(coset_error *why);
/* For tests: forces a level that the machine has; no other thread may be inside a kernel. */
void cst_cpu_set_for_test(cst_cpu level);
#endif
