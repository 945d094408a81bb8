/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 200 };

/* Runs `check` in a child; its result is the child's exit status. */
static int in_child(int (*check)(void *), void *ctx)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(check(ctx));
    assert_true(pid > 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

static int count_open(void *ctx)
{
    const int *fds = ctx;
    int open_count = 0;
    for (int i = 0; i < MANY; i++)
        open_count += is_open(fds[i]);
    return open_count;
}

static void a_child_holds_no_guarded_descriptor(void **state)
{
    (void)state;
    int fds[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fds[i] >= 0);
        assert_int_equal(cst_fork_guard(fds[i]), COSET_OK);
    }
    assert_int_equal(in_child(count_open, fds), 0);
    assert_int_equal(count_open(fds), MANY); /* the parent keeps them */
    for (int i = 0; i < MANY; i += 2)
        cst_fork_unguard(fds[i]);
    assert_int_equal(in_child(count_open, fds), MANY / 2);
    for (int i = 0; i < MANY; i++) {
        cst_fork_unguard(fds[i]);
        close(fds[i]);
    }
}

static int generation_differs(void *ctx)
{
    return cst_fork_generation() != *(unsigned *)ctx;
}

static void a_child_can_tell_that_it_is_one(void **state)
{
    (void)state;
    unsigned mine = cst_fork_generation();
    assert_int_equal(in_child(generation_differs, &mine), 1);
    assert_int_equal(cst_fork_generation(), mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_can_tell_that_it_is_one), /* first: no descriptor has been guarded yet */
        cmocka_unit_test(a_child_holds_no_guarded_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
