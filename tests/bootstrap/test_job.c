/* SPDX-License-Identifier: Apache-2.0 */
/* What the variables of each launcher mean, and what half or wrong ones are answered with. */
#include "bootstrap/job.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Sets exactly these variables: "NAME=value", ended by NULL. */
static cst_job job;
static coset_error why;
static coset_status with(const char *const *variables)
{
    clearenv();
    for (; *variables; variables++)
        putenv((char *)(uintptr_t)*variables);
    why = (coset_error)COSET_ERROR_INIT;
    return cst_job_from_env(&job, &why);
}
#define WITH(...) with((const char *const[]){__VA_ARGS__, NULL})
#define REFUSED(words, ...)                                                                                            \
    do {                                                                                                               \
        assert_int_equal(WITH(__VA_ARGS__), COSET_ERR_ARGUMENT);                                                       \
        assert_non_null(strstr(why.text, words));                                                                      \
    } while (0)

static void own_variables(void **state)
{
    (void)state;
    assert_int_equal(WITH("COSET_RANK=2", "COSET_SIZE=4", "COSET_ROOT=node7:1234", "COSET_JOB=j"), COSET_OK);
    assert_int_equal(job.rank, 2);
    assert_int_equal(job.size, 4);
    assert_string_equal(job.host, "node7");
    assert_int_equal(job.port, 1234);
    assert_string_equal(job.name, "j");
    assert_int_equal(WITH("COSET_RANK=0", "COSET_SIZE=2", "COSET_JOB=j"), COSET_OK);
    assert_string_equal(job.host, "");
    assert_non_null(strstr(job.local, "-j"));
    assert_int_equal(WITH("COSET_RANK=0", "COSET_SIZE=1"), COSET_OK); /* one rank needs no place to meet */
    assert_int_equal(
        WITH("COSET_RANK=0", "COSET_SIZE=2", "COSET_LOCAL_SIZE=2", "COSET_JOB=j", "MASTER_ADDR=x", "MASTER_PORT=1"),
        COSET_OK);
    assert_string_equal(job.host, ""); /* all ranks are here, so MASTER_ADDR is meant for another library */
    assert_int_equal(
        WITH("COSET_RANK=0", "COSET_SIZE=4", "COSET_LOCAL_SIZE=2", "COSET_JOB=j", "MASTER_ADDR=x", "MASTER_PORT=1"),
        COSET_OK);
    assert_string_equal(job.host, "x");
    /* ours are believed before the others' */
    assert_int_equal(WITH("COSET_RANK=0", "COSET_SIZE=1", "RANK=1", "WORLD_SIZE=2", "PMI_RANK=5", "PMI_SIZE=6"),
                     COSET_OK);
    assert_int_equal(job.rank, 0);
}

static void torchrun(void **state)
{
    (void)state;
    assert_int_equal(WITH("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=fd00::1", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=r",
                          "TORCHELASTIC_RESTART_COUNT=3"),
                     COSET_OK);
    assert_string_equal(job.host, "fd00::1");
    assert_int_equal(job.port, 29501); /* torch holds MASTER_PORT itself */
    assert_string_equal(job.name, "r.3");
    REFUSED("MASTER_PORT", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a");
    REFUSED("MASTER_PORT", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65535");
    REFUSED("MASTER_PORT=x", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=x");
}

static void mpi_launchers(void **state)
{
    (void)state;
    assert_int_equal(
        WITH("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=4711"),
        COSET_OK);
    assert_non_null(strstr(job.local, "-4711."));
    REFUSED("COSET_ROOT", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
            "PMIX_NAMESPACE=1");
    assert_int_equal(WITH("PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALNRANKS=2", "COSET_JOB=x"), COSET_OK);
    REFUSED("COSET_JOB", "PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALNRANKS=2");
    REFUSED("COSET_JOB", "PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALNRANKS=2", "PMI_FD=999");
}

static void slurm(void **state)
{
    (void)state;
    assert_int_equal(WITH("SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_JOB_ID=123456", "SLURM_STEP_ID=0",
                          "SLURM_JOB_NODELIST=node[07-09],gpu1"),
                     COSET_OK);
    assert_int_equal(job.rank, 3);
    assert_string_equal(job.host, "node07");
    assert_int_equal(job.port, 20000 + 123456 % 10000);
    assert_string_equal(job.name, "123456.0");
    REFUSED("node list", "SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=node[07");
    REFUSED("SLURM_JOB_ID", "SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_JOB_NODELIST=a");
    /* inside a Slurm job, but started by something else: the node list does not say where that one's rank 0 is */
    REFUSED("COSET_ROOT", "RANK=1", "WORLD_SIZE=2", "SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=a");
}

static void node_lists(void **state)
{
    (void)state;
    static const struct {
        const char *list, *first;
    } row[] = {
        {"a", "a"},
        {"a,b", "a"},
        {"a[1-3,5]", "a1"},
        {"n[003,007-009]", "n003"},
        {"r[1-2]n[03-04],x", "r1n03"},
        {"[5-6]", "5"},
        {"a[", NULL},
        {"a]", NULL},
        {"", NULL},
        {",a", NULL},
        {"a[[1]]", NULL},
    };
    char host[CST_HOST_TEXT];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_int_equal(cst_slurm_first_host(row[i].list, host), row[i].first ? 0 : -1);
        if (row[i].first)
            assert_string_equal(host, row[i].first);
    }
    char longer[1000];
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(cst_slurm_first_host(longer, host), -1);
}

static void bad_variables(void **state)
{
    (void)state;
    REFUSED("coset run", "HOME=/");
    REFUSED("COSET_SIZE", "COSET_RANK=0");
    REFUSED("COSET_RANK", "COSET_SIZE=2", "RANK=0", "WORLD_SIZE=1");
    REFUSED("WORLD_SIZE", "RANK=0");
    REFUSED("COSET_RANK=x", "COSET_RANK=x", "COSET_SIZE=2");
    REFUSED("COSET_RANK=-1", "COSET_RANK=-1", "COSET_SIZE=2");
    REFUSED("COSET_SIZE=0", "COSET_RANK=0", "COSET_SIZE=0");
    REFUSED("COSET_RANK=2", "COSET_RANK=2", "COSET_SIZE=2");
    REFUSED("COSET_SIZE=99999999999", "COSET_RANK=2", "COSET_SIZE=99999999999");
    REFUSED("COSET_ROOT", "COSET_RANK=0", "COSET_SIZE=2");
    REFUSED("COSET_ROOT=here", "COSET_RANK=0", "COSET_SIZE=2", "COSET_ROOT=here");
    REFUSED("COSET_ROOT=a:0", "COSET_RANK=0", "COSET_SIZE=2", "COSET_ROOT=a:0");
    REFUSED("COSET_LOCAL_SIZE", "COSET_RANK=0", "COSET_SIZE=2", "COSET_LOCAL_SIZE=x", "COSET_JOB=j");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_variables), cmocka_unit_test(torchrun),   cmocka_unit_test(mpi_launchers),
        cmocka_unit_test(slurm),         cmocka_unit_test(node_lists), cmocka_unit_test(bad_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
