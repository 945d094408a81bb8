/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One set of tests for every transport: each promise of coset_transport.h. A transport joins with a program of a few
 * lines:
 *
 *     int main(int argc, char **argv)
 *     {
 *         return conformance_main(&(conformance_target){.transport = "shm", .processes = true}, argc, argv);
 *     }
 *
 * Arguments: a part of a test's name runs only those tests.
 */
#ifndef CST_TESTS_CONFORMANCE_H
#define CST_TESTS_CONFORMANCE_H
#include "transport/ranks.h"

typedef struct {
    const char *transport;          /* in the registry */
    bool processes;                 /* ranks are processes; else threads */
    const rank_test *more;          /* the transport's own tests, or NULL; ends with a name of NULL */
    const rank_test *more_of_three; /* the same on three ranks */
} conformance_target;

int conformance_main(const conformance_target *target, int argc, char **argv);

/* For a transport whose ranks were started by somebody else (mpirun): every test for so many ranks that needs no deaths
 * and whose name contains `only`, on this rank. A failure ends the process. The last one spoils the oob. */
void conformance_here(const coset_transport_ops *ops, const coset_oob *oob, const char *only);

/* The tests, by file. */
void test_create_destroy(rank_env *e);
void test_sizes(rank_env *e);
void test_many_tags(rank_env *e);
void test_random(rank_env *e);
void test_pieces(rank_env *e);
void test_flood(rank_env *e);
void test_early_then_gone(rank_env *e);
void test_refusals(rank_env *e);

void test_mismatch(rank_env *e);
void test_on_entry(rank_env *e);
void test_cancel(rank_env *e);
void test_cancel_frees_memory(rank_env *e);

void test_notices(rank_env *e);
void test_abort_wakes(rank_env *e);
void test_wake(rank_env *e);
void test_goodbye(rank_env *e);
void test_sleep_by_descriptor(rank_env *e);

void test_control(rank_env *e);
void test_segments(rank_env *e);
void test_release_errors(rank_env *e);
void test_get_put(rank_env *e);

void test_leftovers(rank_env *e);
void test_fork(rank_env *e);
void test_late_create(rank_env *e);

void test_death_idle(rank_env *e);
void test_death_send(rank_env *e);
void test_death_receive(rank_env *e);
void test_death_alloc(rank_env *e);
void test_death_create(rank_env *e);
void test_death_of_two(rank_env *e);
void test_stopped_is_not_dead(rank_env *e);
#endif
