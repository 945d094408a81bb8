/* SPDX-License-Identifier: Apache-2.0 */
/* Host identity, and what the machine is made of. */
#include "base/host.h"
#include "topo/machine.h"
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

static void machine(void **state)
{
    (void)state;
    cst_machine m;
    cst_machine_look(&m);
    assert_non_null(m.source);
    assert_true(m.threads >= 1);
    assert_true(m.numa_node >= -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_is_stable_and_can_be_set),
        cmocka_unit_test(a_namespace_is_another_host),
        cmocka_unit_test(machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
