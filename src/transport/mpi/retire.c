/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi/retire.h"

#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

/* What MPI_Finalize waits for goodbyes: ranks come to it at about the same time. */
enum { FINALIZE_MS = 1000 };

typedef struct retired {
    struct retired *next;
    cst_mpi_engine *engine;
} retired;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static retired *first;
static int key = MPI_KEYVAL_INVALID;

static void free_engine(cst_mpi_engine *e)
{
    cst_mpi_engine_close(e);
    free(e);
}

/* Frees the quiet ones, or all. */
static void look(bool all)
{
    for (retired **at = &first; *at;) {
        retired *r = *at;
        if (!all)
            cst_mpi_engine_move(r->engine);
        if (all || cst_mpi_engine_quiet(r->engine)) {
            *at = r->next;
            free_engine(r->engine);
            free(r);
        } else {
            at = &r->next;
        }
    }
}

void cst_mpi_retired_look(void)
{
    pthread_mutex_lock(&lock);
    look(false);
    pthread_mutex_unlock(&lock);
}

/* The attribute of MPI_COMM_SELF goes first of all in MPI_Finalize, while MPI still works. */
static int at_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    cst_deadline end = cst_deadline_in(FINALIZE_MS);
    pthread_mutex_lock(&lock);
    look(false);
    while (first && !cst_deadline_passed(end)) {
        nanosleep(&(struct timespec){0, 100000}, NULL);
        look(false);
    }
    look(true);
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

static void watch_finalize(void)
{
    if (key != MPI_KEYVAL_INVALID)
        return;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

void cst_mpi_retire(cst_mpi_engine *e)
{
    retired *r = malloc(sizeof *r);
    pthread_mutex_lock(&lock);
    watch_finalize();
    if (r) {
        *r = (retired){first, e};
        first = r;
    }
    look(false);
    pthread_mutex_unlock(&lock);
}
