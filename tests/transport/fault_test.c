/* SPDX-License-Identifier: Apache-2.0 */
/* The fault transport: its grammar, each fault, and nothing at all without rules (the conformance suite). */
#include "transport/conformance.h"
#include "transport/drive.h"
#include "transport/fault/rules.h"
#include "unit.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static void test_good_rules(void **state)
{
    (void)state;
    cst_fault_rules r;
    assert_int_equal(cst_fault_parse(NULL, &r, NULL), COSET_OK);
    assert_int_equal(r.count, 0);
    assert_int_equal(cst_fault_parse("rank=1,op=3,after=2,do=kill;peer=4,times=0,at=progress,do=delay:50", &r, NULL),
                     COSET_OK);
    assert_int_equal(r.count, 2);
    assert_int_equal(r.rule[0].rank, 1);
    assert_int_equal(r.rule[0].op, 3);
    assert_int_equal(r.rule[0].after, 2);
    assert_int_equal(r.rule[0].times, 1);
    assert_int_equal(r.rule[0].at, CST_AT_ISEND);
    assert_int_equal(r.rule[0].action, CST_DO_KILL);
    assert_int_equal(r.rule[1].peer, 4);
    assert_int_equal(r.rule[1].times, 0);
    assert_int_equal(r.rule[1].at, CST_AT_PROGRESS);
    assert_int_equal(r.rule[1].amount, 50);
}

static void test_bad_rules(void **state)
{
    static const char *const bad[] = {
        "",
        ";",
        "do=kill;",
        ",do=kill",
        "rank=1",
        "do",
        "do=",
        "do=die",
        "do=delay",
        "do=delay:x",
        "do=delay:-1",
        "do=kill,",
        "rank=-1,do=kill",
        "rank=1x,do=kill",
        "at=nowhere,do=kill",
        "at=irecv,do=drop",
        "color=1,do=kill",
        "do=exit:",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cst_fault_rules r;
        coset_error why = COSET_ERROR_INIT;
        if (cst_fault_parse(bad[i], &r, &why) != COSET_ERR_ARGUMENT || strncmp(why.text, "COSET_FAULT", 11))
            fail_msg("'%s' was taken (%s)", bad[i], why.text);
    }
    cst_fault_rules r;
    char text[2000] = "do=kill";
    for (int i = 1; i < CST_FAULT_RULES; i++)
        strcat(text, ";do=kill");
    assert_int_equal(cst_fault_parse(text, &r, NULL), COSET_OK);
    strcat(text, ";do=kill"); /* one too many */
    assert_int_equal(cst_fault_parse(text, &r, NULL), COSET_ERR_ARGUMENT);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_int_equal(cst_fault_parse(text, &r, NULL), COSET_ERR_ARGUMENT);
}

/* The rule happens at the named calls and no others. */
static void test_due(void **state)
{
    (void)state;
    cst_fault_rules r;
    long amount;
    assert_int_equal(cst_fault_parse("rank=1,op=3,peer=2,after=2,times=2,do=drop", &r, NULL), COSET_OK);
    assert_int_equal(cst_fault_due(&r, CST_AT_ISEND, 0, 2, 3, &amount), CST_DO_NOTHING);
    assert_int_equal(cst_fault_due(&r, CST_AT_ISEND, 1, 1, 3, &amount), CST_DO_NOTHING);
    assert_int_equal(cst_fault_due(&r, CST_AT_ISEND, 1, 2, 4, &amount), CST_DO_NOTHING);
    assert_int_equal(cst_fault_due(&r, CST_AT_IRECV, 1, 2, 3, &amount), CST_DO_NOTHING);
    for (int i = 0; i < 6; i++)
        assert_int_equal(cst_fault_due(&r, CST_AT_ISEND, 1, 2, 3, &amount),
                         i == 2 || i == 3 ? CST_DO_DROP : CST_DO_NOTHING);
}

static void create_with(rank_env *e, const char *rules)
{
    rank_barrier(e);
    if (!e->rank)
        setenv("COSET_FAULT", rules, 1);
    rank_barrier(e);
    rank_create(e);
}

/* Rank 0 sends two messages of 100 bytes to rank 1; the statuses of the receives, the first one's data in p[0]. */
static void two_messages(rank_env *e, parcel *p, coset_status *first, coset_status *second)
{
    for (uint32_t k = 0; k < 2; k++) {
        parcel_init(&p[k], !e->rank, 5 + k, 0, 100, NULL);
        if (!e->rank)
            parcel_fill(&p[k], 0, 1);
        if (e->rank)
            receive_parcel(e, &p[k]);
        else
            send_parcel(e, &p[k]);
    }
    *second = wait_msg(e, &p[1].msg);
    for (int i = 0; i < 20; i++)
        e->ops->progress(e->t);
    *first = p[0].msg.status;
}

static void finish(rank_env *e, parcel *p)
{
    rank_barrier(e);
    for (int k = 0; k < 2; k++) {
        if (p[k].msg.status == COSET_IN_PROGRESS)
            e->ops->cancel(e->t, &p[k].msg);
        parcel_free(&p[k]);
    }
    rank_destroy(e);
}

static void body_drop(rank_env *e)
{
    parcel p[2];
    coset_status first, second;
    create_with(e, "rank=0,op=5,do=drop");
    two_messages(e, p, &first, &second);
    CHECK_INT(second, COSET_OK);
    CHECK_INT(first, e->rank ? COSET_IN_PROGRESS : COSET_OK);
    finish(e, p);
}

static void body_truncate(rank_env *e)
{
    parcel p[2];
    coset_status first, second;
    create_with(e, "rank=0,op=5,do=truncate:7");
    two_messages(e, p, &first, &second);
    CHECK_INT(second, COSET_OK);
    CHECK_INT(first, e->rank ? COSET_ERR_MISMATCH : COSET_OK);
    finish(e, p);
}

static void body_entry(rank_env *e)
{
    parcel p[2];
    coset_status first, second;
    create_with(e, "rank=0,op=6,do=entry");
    two_messages(e, p, &first, &second);
    CHECK_INT(first, COSET_OK);
    CHECK_INT(second, e->rank ? COSET_ERR_MISMATCH : COSET_OK);
    finish(e, p);
}

static void body_corrupt(rank_env *e)
{
    parcel p[2];
    coset_status first, second;
    create_with(e, "rank=0,op=5,do=corrupt:9");
    two_messages(e, p, &first, &second);
    CHECK_INT(first, COSET_OK);
    if (e->rank)
        p[0].data[9] ^= 1;
    parcel_check(&p[0], 0, 1);
    parcel_check(&p[1], 0, 1);
    finish(e, p);
}

static void body_delay(rank_env *e)
{
    parcel p[2];
    coset_status first, second;
    create_with(e, "rank=0,op=5,do=delay:300");
    cst_deadline early = cst_deadline_in(250);
    two_messages(e, p, &first, &second);
    CHECK_INT(second, COSET_OK); /* overtakes */
    if (e->rank && !cst_deadline_passed(early))
        CHECK_INT(first, COSET_IN_PROGRESS);
    CHECK_INT(wait_msg(e, &p[0].msg), COSET_OK);
    parcel_check(&p[0], 0, 1);
    finish(e, p);
}

/* A delayed and a dropped message can be cancelled. */
static void body_cancel(rank_env *e)
{
    parcel p[2];
    create_with(e, "rank=0,op=5,do=delay:100000;rank=0,op=6,do=drop");
    for (uint32_t k = 0; k < 2; k++) {
        parcel_init(&p[k], !e->rank, 5 + k, 0, 100, NULL);
        if (!e->rank)
            send_parcel(e, &p[k]);
    }
    if (!e->rank)
        for (int k = 0; k < 2; k++) {
            e->ops->cancel(e->t, &p[k].msg);
            CHECK_INT(p[k].msg.status, COSET_ERR_ABORTED);
        }
    p[0].msg.status = p[1].msg.status = COSET_OK;
    finish(e, p);
}

static void body_bad_environment(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    rank_barrier(e);
    if (!e->rank)
        setenv("COSET_FAULT", "do=nonsense", 1);
    rank_barrier(e);
    CHECK_INT(e->ops->create(&e->oob, &e->config, &e->t, &why), COSET_ERR_ARGUMENT);
}

/* Dies inside the second isend of operation 1. Processes only. */
static void body_kill(rank_env *e)
{
    parcel p[2];
    setenv("COSET_FAULT", "rank=1,op=1,after=1,do=kill", 1);
    rank_create(e);
    if (e->rank == 1)
        atomic_store(&e->shared->doomed[1], 1);
    for (uint32_t k = 0; k < 2; k++) {
        parcel_init(&p[k], !e->rank, 1, k, 10, NULL);
        if (e->rank)
            send_parcel(e, &p[k]);
        else
            receive_parcel(e, &p[k]);
    }
    CHECK_INT(e->rank, 0);
    wait_notice_of(e, COSET_NOTICE_DEATH, 1, 5000);
    CHECK_INT(wait_msg(e, &p[0].msg), COSET_OK);
    CHECK_INT(wait_msg(e, &p[1].msg), COSET_ERR_PEER);
    parcel_free(&p[0]);
    parcel_free(&p[1]);
    rank_destroy(e);
}

static const rank_test on_threads[] = {
    {"drop", body_drop, true, NULL},
    {"truncate", body_truncate, true, NULL},
    {"entry", body_entry, true, NULL},
    {"corrupt", body_corrupt, true, NULL},
    {"delay", body_delay, true, NULL},
    {"fault_cancel", body_cancel, true, NULL},
    {"bad_environment", body_bad_environment, true, NULL},
    {NULL, NULL, false, NULL},
};
static const rank_test on_shm[] = {{"kill", body_kill, true, NULL}, {NULL, NULL, false, NULL}};

int main(int argc, char **argv)
{
    const struct CMUnitTest rules[] = {
        cmocka_unit_test(test_good_rules),
        cmocka_unit_test(test_bad_rules),
        cmocka_unit_test(test_due),
    };
    int failed = cmocka_run_group_tests_name("rules", rules, NULL, NULL);
    failed += conformance_main(
        &(conformance_target){.transport = "fault:threads", .processes = false, .more = on_threads}, argc, argv);
    const char *only[] = {argv[0], "kill"};
    return failed + conformance_main(&(conformance_target){.transport = "fault:shm", .processes = true, .more = on_shm},
                                     2, (char **)only);
}
