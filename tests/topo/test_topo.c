/* SPDX-License-Identifier: Apache-2.0 */
/* Host identity, usable cores, and who shares a host, for every way to put up to five ranks on hosts. */
#include "topo/hosts.h"
#include "topo/machine.h"
#include "topo/place.h"
#include "unit.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void identity_is_stable_and_can_be_set(void **state)
{
    (void)state;
    char a[CST_HOST_ID_BYTES], b[CST_HOST_ID_BYTES], name[64];
    unsetenv("COSET_HOSTID");
    assert_string_equal(cst_host_identity(a), cst_host_identity(b));
    assert_non_null(strstr(a, cst_host_name(name)));
    setenv("COSET_HOSTID", "rack7", 1);
    assert_string_equal(cst_host_identity(a), "rack7");
    char longer[1000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    setenv("COSET_HOSTID", longer, 1);
    assert_int_equal(strlen(cst_host_identity(a)), CST_HOST_ID_BYTES - 1);
    unsetenv("COSET_HOSTID");
}

/* A network namespace is a host: where this user may make one, the identity changes inside. */
static void a_namespace_is_another_host(void **state)
{
    (void)state;
    char outside[CST_HOST_ID_BYTES], inside[CST_HOST_ID_BYTES];
    cst_host_identity(outside);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNET))
            _exit(77);
        _exit(strcmp(outside, cst_host_identity(inside)) ? 0 : 1);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    if (WEXITSTATUS(code) == 77) {
        print_message("skipped: this user may not make network namespaces\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(code), 0);
}

static void cores(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int cores;
    } row[] = {
        {"max 100000", 0}, {"200000 100000", 2},   {"150000 100000", 1},       {"50000 100000", 1},
        {"-1 100000", 0},  {"400000 100000\n", 4}, {"99999999999999 1", 8192}, {"", -1},
        {"0 100000", -1},  {"100000", -1},         {"100000 0", -1},           {"x y", -1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_int_equal(cst_cores_of_quota(row[i].line), row[i].cores);
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int usable = cst_cores_usable();
    assert_in_range(usable, 1, CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cst_cores_usable(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* Ranks 0..n-1 on hosts by `digits` in base n: every assignment is visited. */
static void check_assignment(int n, int digits)
{
    cst_place place[5] = {{{0}, {0}, 0, 0}};
    int wanted_host[5], on[5];
    memset(place, 0, sizeof place);
    for (int r = 0; r < n; r++, digits /= n) {
        on[r] = digits % n;
        snprintf(place[r].host, sizeof place[r].host, "host%d", on[r]);
    }
    int count = 0;
    for (int r = 0; r < n; r++) {
        wanted_host[r] = -1;
        for (int q = 0; q < r; q++)
            if (on[q] == on[r])
                wanted_host[r] = wanted_host[q];
        if (wanted_host[r] < 0)
            wanted_host[r] = count++;
    }
    cst_hosts h;
    assert_int_equal(cst_hosts_build(&h, place, n), 0);
    assert_int_equal(h.count, count);
    bool uniform = true, blocks = true;
    for (int r = 0; r < n; r++) {
        int local = 0, total = 0, leader = -1;
        for (int q = 0; q < n; q++) {
            local += q < r && on[q] == on[r];
            total += on[q] == on[r];
            leader = leader < 0 && on[q] == on[r] ? q : leader;
        }
        assert_int_equal(h.host[r], wanted_host[r]);
        assert_int_equal(h.local[r], local);
        assert_int_equal(h.local_size[h.host[r]], total);
        assert_int_equal(h.leader[h.host[r]], leader);
        uniform = uniform && total * count == n;
        blocks = blocks && leader + local == r;
    }
    assert_int_equal(h.uniform, uniform);
    assert_int_equal(h.blocks, blocks);
    cst_hosts_free(&h);
}

static void every_assignment(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) {
        int assignments = 1;
        for (int r = 0; r < n; r++)
            assignments *= n;
        for (int k = 0; k < assignments; k++)
            check_assignment(n, k);
    }
}

static void identities_without_an_end(void **state)
{
    (void)state;
    cst_place place[2];
    cst_hosts h;
    memset(place, 'x', sizeof place);
    assert_int_equal(cst_hosts_build(&h, place, 2), 0);
    assert_int_equal(h.count, 1);
    cst_hosts_free(&h);
    place[1].host[CST_HOST_ID_BYTES - 1] = 'y';
    assert_int_equal(cst_hosts_build(&h, place, 2), 0);
    assert_int_equal(h.count, 2);
    cst_hosts_free(&h);
}

static void machine(void **state)
{
    (void)state;
    cst_machine m;
    cst_machine_look(&m);
    assert_non_null(m.source);
    assert_true(m.threads >= 1);
    assert_true(m.numa_node >= -1);
    cst_place self;
    cst_place_self(&self);
    assert_int_equal(self.pid, getpid());
    assert_true(self.cores >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_is_stable_and_can_be_set),
        cmocka_unit_test(a_namespace_is_another_host),
        cmocka_unit_test(cores),
        cmocka_unit_test(every_assignment),
        cmocka_unit_test(identities_without_an_end),
        cmocka_unit_test(machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
