/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "common/stats.h"
#include "common/supervise.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    _Atomic int ran[16];
    _Atomic int terminated;
} board;

static board *new_board(void)
{
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(b != MAP_FAILED);
    return b;
}

static int mark(int index, int count, void *ctx)
{
    board *b = ctx;
    atomic_fetch_add(&b->ran[index], 1);
    return count == 5 ? 0 : 99;
}

static void every_process_runs_once(void **state)
{
    (void)state;
    board *b = new_board();
    assert_int_equal(tool_supervise("test", 5, mark, b), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(b->ran[i], 1);
}

static int third_fails(int index, int count, void *ctx)
{
    (void)count;
    (void)ctx;
    return index == 2 ? 42 : 0;
}

static void the_status_of_a_failure_is_returned(void **state)
{
    (void)state;
    assert_int_equal(tool_supervise("test", 4, third_fails, NULL), 42);
}

static int second_kills_itself(int index, int count, void *ctx)
{
    (void)count;
    (void)ctx;
    if (index == 1)
        raise(SIGKILL);
    return 0;
}

static void a_signal_is_a_failure(void **state)
{
    (void)state;
    assert_int_equal(tool_supervise("test", 3, second_kills_itself, NULL), 128 + SIGKILL);
}

static int waits_to_be_told(int index, int count, void *ctx)
{
    board *b = ctx;
    (void)count;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    atomic_fetch_add(&b->ran[index], 1);
    int got;
    sigwait(&set, &got);
    atomic_fetch_add(&b->terminated, 1);
    return 0;
}

/* SIGTERM to the supervisor reaches the processes, and it returns 128 + SIGTERM. */
static void a_signal_is_passed_on(void **state)
{
    (void)state;
    board *b = new_board();
    pid_t supervisor = fork();
    if (supervisor == 0)
        _exit(tool_supervise("test", 3, waits_to_be_told, b));
    while (atomic_load(&b->ran[0]) + atomic_load(&b->ran[1]) + atomic_load(&b->ran[2]) < 3)
        sched_yield();
    kill(supervisor, SIGTERM);
    int status;
    assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
    assert_int_equal(b->terminated, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_process_runs_once),
        cmocka_unit_test(the_status_of_a_failure_is_returned),
        cmocka_unit_test(a_signal_is_a_failure),
        cmocka_unit_test(a_signal_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
