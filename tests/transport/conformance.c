/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/conformance.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY = 1, PROCESSES = 2 }; /* who can run it */
typedef struct {
    rank_test test;
    int who;
    const char *sizes; /* digits: the numbers of ranks */
} row;

static const row rows[] = {
    {{"create_destroy", test_create_destroy, true, NULL}, EVERY, "123458"},
    {{"sizes", test_sizes, false, NULL}, EVERY, "2358"},
    {{"many_tags", test_many_tags, false, NULL}, EVERY, "24"},
    {{"random", test_random, false, NULL}, EVERY, "2345"},
    {{"pieces", test_pieces, false, NULL}, EVERY, "23"},
    {{"flood", test_flood, false, NULL}, EVERY, "23"},
    {{"early_then_gone", test_early_then_gone, true, NULL}, EVERY, "23"},
    {{"refusals", test_refusals, false, NULL}, EVERY, "12"},
    {{"mismatch", test_mismatch, false, NULL}, EVERY, "23"},
    {{"on_entry", test_on_entry, true, NULL}, EVERY, "3"},
    {{"cancel", test_cancel, false, NULL}, EVERY, "23"},
    {{"cancel_frees_memory", test_cancel_frees_memory, false, NULL}, EVERY, "2"},
    {{"notices", test_notices, false, NULL}, EVERY, "24"},
    {{"abort_wakes", test_abort_wakes, false, NULL}, EVERY, "24"},
    {{"wake", test_wake, false, NULL}, EVERY, "12"},
    {{"goodbye", test_goodbye, true, NULL}, EVERY, "24"},
    {{"sleep_by_descriptor", test_sleep_by_descriptor, false, NULL}, EVERY, "23"},
    {{"control", test_control, false, NULL}, EVERY, "124"},
    {{"segments", test_segments, false, NULL}, EVERY, "1238"},
    {{"release_errors", test_release_errors, false, NULL}, EVERY, "23"},
    {{"get_put", test_get_put, false, NULL}, EVERY, "23"},
    {{"leftovers", test_leftovers, true, NULL}, EVERY, "3"},
    {{"fork", test_fork, false, NULL}, PROCESSES, "3"},
    {{"late_create", test_late_create, true, NULL}, EVERY, "3"},
    {{"death_idle", test_death_idle, true, NULL}, PROCESSES, "235"},
    {{"death_send", test_death_send, true, NULL}, PROCESSES, "24"},
    {{"death_receive", test_death_receive, true, NULL}, PROCESSES, "24"},
    {{"death_alloc", test_death_alloc, true, NULL}, PROCESSES, "3"},
    {{"death_create", test_death_create, true, NULL}, PROCESSES, "3"},
    {{"death_of_two", test_death_of_two, true, NULL}, PROCESSES, "5"},
    {{"stopped_is_not_dead", test_stopped_is_not_dead, false, NULL}, PROCESSES, "3"},
};
enum { ROWS = sizeof rows / sizeof *rows, TIMEOUT_S = 150, CASES = 256 };

typedef struct {
    char name[96];
    const conformance_target *target;
    const rank_test *test;
    int size;
} one_case;

static void run_case(void **state)
{
    const one_case *c = *state;
    if (!ranks_run(c->target->transport, c->target->processes, c->size, c->test, TIMEOUT_S))
        fail_msg("%s", c->name);
}

static void add_case(one_case *c, struct CMUnitTest *t, const conformance_target *target, const rank_test *test,
                     int size)
{
    *c = (one_case){.target = target, .test = test, .size = size};
    snprintf(c->name, sizeof c->name, "%s.%s.%d", target->transport, test->name, size);
    *t = (struct CMUnitTest){c->name, run_case, NULL, NULL, c};
}

int conformance_main(const conformance_target *target, int argc, char **argv)
{
    static one_case cases[CASES];
    static struct CMUnitTest tests[CASES];
    const char *only = argc > 1 ? argv[1] : "";
    size_t n = 0;
    for (int i = 0; i < ROWS; i++)
        for (const char *s = rows[i].sizes; *s && strstr(rows[i].test.name, only); s++)
            if (target->processes || rows[i].who == EVERY)
                add_case(&cases[n], &tests[n], target, &rows[i].test, *s - '0'), n++;
    for (const rank_test *t = target->more; t && t->name; t++)
        if (strstr(t->name, only))
            add_case(&cases[n], &tests[n], target, t, 2), n++;
    for (const rank_test *t = target->more_of_three; t && t->name; t++)
        if (strstr(t->name, only))
            add_case(&cases[n], &tests[n], target, t, 3), n++;
    return _cmocka_run_group_tests(target->transport, tests, n, NULL, NULL);
}

void conformance_here(const coset_transport_ops *ops, const coset_oob *oob, const char *only)
{
    for (int i = 0; i < ROWS; i++) {
        const rank_test *test = &rows[i].test;
        if (rows[i].who != EVERY || !strchr(rows[i].sizes, '0' + oob->size) || !strstr(test->name, only))
            continue;
        if (!oob->rank)
            printf("%s.%s.%d\n", ops->name, test->name, oob->size);
        fflush(stdout);
        ranks_run_here(ops, oob, test);
    }
}
