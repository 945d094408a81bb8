/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu.h"

#include "base/env.h"
#include "base/error.h"

#include <stdatomic.h>
#include <string.h>
#ifdef COSET_HAVE_X86
#include <cpuid.h>
#endif

static const char *const names[CST_CPU_COUNT] = {
    [CST_CPU_SCALAR] = "scalar", [CST_CPU_AVX2] = "avx2", [CST_CPU_AVX512] = "avx512", [CST_CPU_NEON] = "neon"};

/* -1: not found out yet. Every thread that finds it out finds the same, so a race is harmless. */
static _Atomic int current = -1;

#ifdef COSET_HAVE_X86
/* Not every compiler's __builtin_cpu_supports knows f16c. The operating system saves its registers if it saves AVX's. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* The builtin also asks XGETBV whether the operating system saves the wide registers. */
static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

bool cst_cpu_has(cst_cpu level)
{
    switch (level) {
    case CST_CPU_SCALAR: return true;
#ifdef COSET_HAVE_X86
    case CST_CPU_AVX2: return has_avx2();
    case CST_CPU_AVX512: return has_avx512();
#endif
#ifdef COSET_HAVE_NEON
    case CST_CPU_NEON: return true;
#endif
    default: return false;
    }
}

static cst_cpu best(void)
{
    if (cst_cpu_has(CST_CPU_NEON))
        return CST_CPU_NEON;
    if (cst_cpu_has(CST_CPU_AVX512))
        return CST_CPU_AVX512;
    return cst_cpu_has(CST_CPU_AVX2) ? CST_CPU_AVX2 : CST_CPU_SCALAR;
}

/* The level that COSET_CPU names, or -1. */
static int named(const char *text)
{
    for (int i = 0; i < CST_CPU_COUNT; i++)
        if (!strcmp(text, names[i]))
            return i;
    return -1;
}

static cst_cpu find_out(void)
{
    const char *text = cst_env("COSET_CPU");
    int level = text ? named(text) : -1;
    return level >= 0 && cst_cpu_has((cst_cpu)level) ? (cst_cpu)level : best();
}

cst_cpu cst_cpu_level(void)
{
    int level = atomic_load_explicit(&current, memory_order_relaxed);
    if (level < 0) {
        level = (int)find_out();
        atomic_store_explicit(&current, level, memory_order_relaxed);
    }
    return (cst_cpu)level;
}

const char *cst_cpu_name(cst_cpu level)
{
    return (unsigned)level < CST_CPU_COUNT ? names[level] : "?";
}

coset_status cst_cpu_check(coset_error *why)
{
    const char *text = cst_env("COSET_CPU");
    if (!text)
        return COSET_OK;
    int level = named(text);
    if (level < 0)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_CPU=%s: expected scalar, avx2, avx512 or neon", text);
    if (!cst_cpu_has((cst_cpu)level))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_CPU=%s: this processor cannot run it; its best level is %s",
                        text, names[best()]);
    return COSET_OK;
}

void cst_cpu_set_for_test(cst_cpu level)
{
    atomic_store_explicit(&current, (int)level, memory_order_relaxed);
}
