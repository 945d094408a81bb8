/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small harness for kernels, after the pattern of dav1d's checkasm: run the reference and a variant on the same
 * random and extreme input, compare every byte, name the first difference with its parameters.
 *
 *     int main(int argc, char **argv)
 *     {
 *         ca_begin(argc, argv);
 *         for (cst_cpu level = 0; level < CST_CPU_COUNT; level++)
 *             if (ca_level(level))   // announces it, forces it; false if this machine lacks it
 *                 ... run the scalar kernel (ca_use_scalar), run the variant (ca_use_variant), ca_same(...)
 *         return ca_end();
 *     }
 *
 * Plain C with an exit status, so that the same program runs under an emulator. Options: --seed N (default 1), --quick
 * (fewer random cases: ca_quick()). Buffers lie between pages without access and canary bytes: a read one byte past
 * the end that is flush with the page is a fault, a write outside is seen by ca_intact.
 */
#ifndef CST_TESTS_CHECKASM_H
#define CST_TESTS_CHECKASM_H
#include "cpu/cpu.h"
#include "cpu/fpmode.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    uint64_t random;
    bool quick;
    cst_cpu variant;
    long cases, failures;
} ca;

/* --- random numbers: splitmix64, the same on every machine --- */
static inline uint64_t ca_random(void)
{
    uint64_t z = (ca.random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [0, n); n at least 1. */
static inline size_t ca_below(size_t n)
{
    return (size_t)(ca_random() % n);
}

/* --- running --- */
static inline void ca_begin(int argc, char **argv)
{
    ca.random = 1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick"))
            ca.quick = true;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            ca.random = strtoull(argv[++i], NULL, 0);
        else {
            fprintf(stderr, "usage: %s [--quick] [--seed N]\n", argv[0]);
            exit(2);
        }
    }
}

static inline bool ca_quick(void)
{
    return ca.quick;
}

static inline void ca_use_scalar(void)
{
    cst_cpu_set_for_test(CST_CPU_SCALAR);
}

static inline void ca_use_variant(void)
{
    cst_cpu_set_for_test(ca.variant);
}

/* Makes `level` the variant under test, and the level in force. False, with a line, if the machine lacks it. */
static inline bool ca_level(cst_cpu level)
{
    if (!cst_cpu_has(level)) {
        printf("%-7s not on this machine\n", cst_cpu_name(level));
        return false;
    }
    ca.variant = level;
    ca_use_variant();
    printf("%-7s\n", cst_cpu_name(level));
    fflush(stdout);
    return true;
}

/* Counts a failure and prints it, the first hundred. */
__attribute__((format(printf, 1, 2))) static inline void ca_fail(const char *format, ...)
{
    if (++ca.failures > 100)
        return;
    va_list args;
    va_start(args, format);
    printf("FAILED (%s): ", cst_cpu_name(ca.variant));
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

/* Exact comparison of n elements of `size` bytes; `what` describes the case. */
static inline bool ca_same(const void *expected, const void *got, size_t n, size_t size, const char *what)
{
    ca.cases++;
    if (!memcmp(expected, got, n * size))
        return true;
    const unsigned char *e = expected, *g = got;
    size_t i = 0;
    while (e[i] == g[i])
        i++;
    i -= i % size;
    char text[2][33] = {{0}};
    for (size_t b = 0; b < size && b < 16; b++) { /* most significant byte first */
        snprintf(text[0] + 2 * b, 3, "%02x", e[i + size - 1 - b]);
        snprintf(text[1] + 2 * b, 3, "%02x", g[i + size - 1 - b]);
    }
    ca_fail("%s: element %zu of %zu: expected %s, got %s", what, i / size, n, text[0], text[1]);
    return false;
}

/* A fact that must hold at the level in force. */
static inline void ca_expect(bool fact, const char *what)
{
    ca.cases++;
    if (!fact)
        ca_fail("%s", what);
}

/* The exit status. */
static inline int ca_end(void)
{
    printf("%ld cases, %ld failures\n", ca.cases, ca.failures);
    return ca.failures || !ca.cases ? 1 : 0;
}

/* --- buffers --- */
#define CA_CANARY 0xa5
enum { CA_ZONE = 128 }; /* canary bytes before and after the data */

typedef struct {
    char *room; /* `bytes` of memory, a page without access on either side */
    size_t bytes;
    char *data; /* set by ca_place */
    size_t length;
} ca_buffer;

static inline ca_buffer ca_open(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + 4 * CA_ZONE + page - 1) / page * page;
    char *map = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + page, bytes, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        exit(2);
    }
    return (ca_buffer){.room = map + page, .bytes = bytes};
}

/* Puts `length` bytes of data so that they end `before_end` bytes before the forbidden page; canaries around them. */
static inline char *ca_place(ca_buffer *b, size_t length, size_t before_end)
{
    b->length = length;
    b->data = b->room + b->bytes - before_end - length;
    memset(b->data - CA_ZONE, CA_CANARY, CA_ZONE);
    memset(b->data + length, CA_CANARY, before_end < CA_ZONE ? before_end : CA_ZONE);
    return b->data;
}

/* Are the canaries around the data untouched? */
static inline bool ca_intact(const ca_buffer *b)
{
    unsigned char whole[CA_ZONE];
    memset(whole, CA_CANARY, sizeof whole);
    const size_t after = (size_t)(b->room + b->bytes - b->data) - b->length;
    return !memcmp(b->data - CA_ZONE, whole, CA_ZONE) &&
           !memcmp(b->data + b->length, whole, after < CA_ZONE ? after : CA_ZONE);
}

/* --- floating-point mode --- */
/* The mode without the flags that operations leave. */
static inline uint64_t ca_fpmode(void)
{
    return cst_fpmode_read() & ~(uint64_t)CST_FPMODE_FLAGS;
}

/* Sets a mode that no kernel may notice: rounding towards zero, denormals flushed. Returns what is then in force, since
 * an emulator may not have all of it. */
static inline uint64_t ca_set_odd_fpmode(void)
{
#if defined(COSET_HAVE_X86)
    cst_fpmode_write(0x1f80 | 0x6000 | 0x8000 | 0x0040);
#elif defined(COSET_HAVE_NEON)
    cst_fpmode_write(3u << 22 | 1u << 24 | 1u << 25);
#endif
    return ca_fpmode();
}

static inline void ca_set_default_fpmode(void)
{
    cst_fpmode_write(CST_FPMODE_DEFAULT);
}
#endif
