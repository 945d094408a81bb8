/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a test on several ranks at once, apart from the test program: as threads of one child process, or as one child
 * process each. A rank that fails, hangs or dies is seen by its parent, and cannot take the other tests with it.
 */
#ifndef CST_TESTS_RANKS_H
#define CST_TESTS_RANKS_H
#include "transport/shared_oob.h"

#include <coset_transport.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { RANKS_MAX = 16 };

/* Memory that all ranks of one run and their parent share; zeroed. */
typedef struct {
    _Atomic uint32_t word[64];          /* the test's own */
    _Atomic uint32_t doomed[RANKS_MAX]; /* 1: this rank's process dies by SIGKILL, as the test wants */
} ranks_shared;

typedef struct rank_env {
    int rank, size;
    coset_oob oob;
    coset_oob second; /* another oob, for tests that need one after ranks have died */
    ranks_shared *shared;
    const char *transport; /* its name */
    const coset_transport_ops *ops;
    coset_transport_config config;
    coset_transport *t;   /* created before the body runs and destroyed after it, unless the test says `bare` */
    const void *argument; /* the test's own */
} rank_env;

typedef struct {
    const char *name;
    void (*body)(rank_env *e);
    bool bare; /* the body creates the transport itself */
    const void *argument;
} rank_test;

/* Fails the rank's test: says where on standard error and ends the process. */
void rank_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4), noreturn));
#define CHECK(condition)      ((condition) ? (void)0 : rank_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_INT(have, want) check_int(__FILE__, __LINE__, #have, (long long)(have), (long long)(want))
static inline void check_int(const char *file, int line, const char *what, long long have, long long want)
{
    if (have != want)
        rank_fail(file, line, "%s is %lld, not %lld", what, have, want);
}

/* Runs `test` on `size` ranks; true if all of them succeeded within timeout_s. */
bool ranks_run(const char *transport, bool processes, int size, const rank_test *test, int timeout_s);
/* Runs it as this process's rank of a job that exists already (an MPI job). */
void ranks_run_here(const coset_transport_ops *ops, const coset_oob *oob, const rank_test *test);

/* Config as every test of `size` ranks on this host starts from: short deadlines, 4 KiB of control area. */
coset_transport_config ranks_config(int size);
/* Creates e->t; fails the test if that fails. */
void rank_create(rank_env *e);
void rank_destroy(rank_env *e);
/* A rendezvous of all ranks, by the oob. */
void rank_barrier(rank_env *e);
/* Dies by SIGKILL, as announced. */
void rank_die(rank_env *e) __attribute__((noreturn));
#endif
