/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/clock.h"
#include "base/flag.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void sequence_numbers_compare_modulo_2_31(void **state)
{
    (void)state;
    const uint32_t starts[] = {0, 1, 0x3fffffff, 0x40000000, 0x7ffffffe, 0x7fffffff};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        _Atomic uint32_t word = 0;
        uint32_t now = starts[i];
        cst_flag_post(&word, now);
        assert_int_equal(cst_flag_value(&word), now & 0x7fffffff);
        assert_true(cst_flag_reached(&word, now));
        assert_true(cst_flag_reached(&word, now - 1));
        assert_true(cst_flag_reached(&word, now - 1000000));
        assert_false(cst_flag_reached(&word, now + 1));
        assert_false(cst_flag_reached(&word, now + 1000000));
    }
}

static void the_sleeper_bit_changes_no_comparison(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < 100; s++) {
        _Atomic uint32_t word = s << 1 | 1u;
        assert_true(cst_flag_reached(&word, s));
        assert_false(cst_flag_reached(&word, s + 1));
        assert_int_equal(cst_flag_value(&word), s);
    }
}

static void a_sleep_ends_at_its_timeout(void **state)
{
    (void)state;
    _Atomic uint32_t word = 0;
    uint64_t start = cst_now_ns();
    while (cst_now_ns() - start < 20000000u)
        assert_false(cst_flag_sleep(&word, 1, 5));
    /* and leaves the flag usable */
    cst_flag_post(&word, 1);
    assert_true(cst_flag_sleep(&word, 1, 0));
    assert_true(cst_flag_poll(&word, 1, (cst_patience){0, 0}));
}

enum { ROUNDS = 5000 };
typedef struct {
    cst_flag ping, pong;
    uint64_t sum; /* written by one side before it posts, read by the other after: the order that a flag promises */
} table;

static void wait_for(_Atomic uint32_t *word, uint32_t sequence, cst_patience patience)
{
    if (!cst_flag_poll(word, sequence, patience))
        while (!cst_flag_sleep(word, sequence, 1000))
            ;
}

static void play(table *t, int side, cst_patience patience)
{
    _Atomic uint32_t *mine = side ? &t->pong.word : &t->ping.word, *theirs = side ? &t->ping.word : &t->pong.word;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        if (side)
            wait_for(theirs, i, patience);
        t->sum += i;
        cst_flag_post(mine, i);
        if (!side)
            wait_for(theirs, i, patience);
    }
}

static const cst_patience patiences[] = {{0, 0}, {1, 0}, {0, 1}, {20, 10}};

static void *second_side(void *arg)
{
    for (size_t p = 0; p < sizeof patiences / sizeof *patiences; p++)
        play((table *)arg + p, 1, patiences[p]);
    return NULL;
}

static const uint64_t expected_sum = (uint64_t)ROUNDS * (ROUNDS + 1);

static void no_wake_is_lost_between_threads(void **state)
{
    (void)state;
    static table tables[sizeof patiences / sizeof *patiences];
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, second_side, tables), 0);
    for (size_t p = 0; p < sizeof patiences / sizeof *patiences; p++)
        play(&tables[p], 0, patiences[p]);
    pthread_join(other, NULL);
    for (size_t p = 0; p < sizeof patiences / sizeof *patiences; p++)
        assert_true(tables[p].sum == expected_sum);
}

static void no_wake_is_lost_between_processes(void **state)
{
    (void)state;
    table *tables = mmap(NULL, sizeof patiences / sizeof *patiences * sizeof *tables, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(tables != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        second_side(tables);
        _exit(0);
    }
    assert_true(child > 0);
    for (size_t p = 0; p < sizeof patiences / sizeof *patiences; p++)
        play(&tables[p], 0, patiences[p]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (size_t p = 0; p < sizeof patiences / sizeof *patiences; p++)
        assert_true(tables[p].sum == expected_sum);
}

typedef struct {
    _Atomic uint32_t bell;
    _Atomic uint32_t work;
} shop;

static void *ring_many(void *arg)
{
    shop *s = arg;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&s->work, 1);
        cst_bell_ring(&s->bell);
    }
    return NULL;
}

static void a_bell_rung_by_two_threads_misses_no_work(void **state)
{
    (void)state;
    shop s = {0, 0};
    pthread_t ringers[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&ringers[i], NULL, ring_many, &s), 0);
    uint32_t done = 0;
    while (done < 2 * ROUNDS) {
        uint32_t seen = cst_bell_read(&s.bell);
        uint32_t work = atomic_load(&s.work);
        if (work == done)
            cst_bell_sleep(&s.bell, seen, -1); /* for ever: a lost ring would hang the test */
        done = work;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(ringers[i], NULL);
    assert_int_equal(done, 2 * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequence_numbers_compare_modulo_2_31),
        cmocka_unit_test(the_sleeper_bit_changes_no_comparison),
        cmocka_unit_test(a_sleep_ends_at_its_timeout),
        cmocka_unit_test(no_wake_is_lost_between_threads),
        cmocka_unit_test(no_wake_is_lost_between_processes),
        cmocka_unit_test(a_bell_rung_by_two_threads_misses_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
