/* SPDX-License-Identifier: Apache-2.0 */
/* The five ways to make a communicator: each finds the other ranks in its own way, then joins them alike. */
#include "api/settings.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const coset_transport_ops *plugin_of(const coset_comm_options *o)
{
    size_t needed = offsetof(coset_comm_options, plugin) + sizeof o->plugin;
    return o && o->struct_size >= needed ? o->plugin : NULL;
}

/* The bootstrap knows more about a failed exchange than the status that its oob could return. */
static coset_status join_and_close(cst_bootstrap *b, const cst_settings *settings, const coset_transport_ops *plugin,
                                   coset_comm **comm, coset_error *why)
{
    cst_settings found = *settings;
    snprintf(found.address, sizeof found.address, "%s", cst_bootstrap_address(b));
    coset_status status = cst_comm_create(cst_bootstrap_oob(b), &found, plugin, comm, why);
    if (status == COSET_ERR_LATE || status == COSET_ERR_PEER) {
        coset_error cause = COSET_ERROR_INIT;
        cst_bootstrap_why(b, &cause);
        if (cause.status != COSET_OK)
            cst_error_copy(why, &cause);
    }
    cst_bootstrap_close(b);
    return status;
}

coset_status coset_unique_id_create(coset_unique_id *id)
{
    return id ? cst_unique_id_create(id, NULL) : COSET_ERR_ARGUMENT;
}

coset_status coset_comm_create_env(const coset_comm_options *options, coset_comm **comm, coset_error *why)
{
    cst_settings settings;
    cst_bootstrap *b;
    cst_error_clear(why);
    coset_status status =
        comm ? cst_settings_from(options, &settings, why) : cst_fail(why, COSET_ERR_ARGUMENT, -1, "comm is NULL");
    if (status == COSET_OK)
        status = cst_bootstrap_env(settings.late_ms, &b, why);
    return status == COSET_OK ? join_and_close(b, &settings, plugin_of(options), comm, why) : status;
}

coset_status coset_comm_create_id(const coset_unique_id *id, int rank, int size, const coset_comm_options *options,
                                  coset_comm **comm, coset_error *why)
{
    cst_settings settings;
    cst_bootstrap *b;
    cst_error_clear(why);
    coset_status status = id && comm ? cst_settings_from(options, &settings, why)
                                     : cst_fail(why, COSET_ERR_ARGUMENT, -1, "id or comm is NULL");
    if (status == COSET_OK)
        status = cst_bootstrap_id(id, rank, size, settings.late_ms, &b, why);
    return status == COSET_OK ? join_and_close(b, &settings, plugin_of(options), comm, why) : status;
}

coset_status coset_comm_create_file(const char *path, int rank, int size, const coset_comm_options *options,
                                    coset_comm **comm, coset_error *why)
{
    cst_settings settings;
    cst_bootstrap *b;
    cst_error_clear(why);
    coset_status status = path && comm ? cst_settings_from(options, &settings, why)
                                       : cst_fail(why, COSET_ERR_ARGUMENT, -1, "path or comm is NULL");
    if (status == COSET_OK)
        status = cst_bootstrap_file(path, rank, size, settings.late_ms, &b, why);
    return status == COSET_OK ? join_and_close(b, &settings, plugin_of(options), comm, why) : status;
}

coset_status coset_comm_create_oob(const coset_oob *oob, const coset_comm_options *options, coset_comm **comm,
                                   coset_error *why)
{
    cst_settings settings;
    cst_error_clear(why);
    coset_status status = oob && comm ? cst_settings_from(options, &settings, why)
                                      : cst_fail(why, COSET_ERR_ARGUMENT, -1, "oob or comm is NULL");
    return status == COSET_OK ? cst_comm_create(oob, &settings, plugin_of(options), comm, why) : status;
}

/* ---- all ranks of one process ---- */

/* More is a mistake, not a group of ranks. */
#define MOST_THREADS 1024

typedef struct {
    pthread_t thread;
    cst_bootstrap *bootstrap;
    const cst_settings *settings;
    const coset_transport_ops *plugin;
    coset_comm *comm;
    coset_status status;
    coset_error why;
} creator;

static void *create_one(void *arg)
{
    creator *me = arg;
    me->status = join_and_close(me->bootstrap, me->settings, me->plugin, &me->comm, &me->why);
    return NULL;
}

/* Creation is collective, so each rank needs a thread of its own until it is over. */
static coset_status create_all(creator *creators, int size, coset_error *why)
{
    int started = 0;
    while (started < size && pthread_create(&creators[started].thread, NULL, create_one, &creators[started]) == 0)
        started++;
    coset_status status = COSET_OK;
    if (started < size)
        status = cst_fail(why, COSET_ERR_SYSTEM, -1, "could not start %d threads (ulimit -u, ulimit -v)", size);
    for (int r = started; r < size; r++)
        cst_bootstrap_close(creators[r].bootstrap); /* so that the others' exchange ends */
    for (int r = 0; r < started; r++)
        pthread_join(creators[r].thread, NULL);
    for (int r = 0; r < started && status == COSET_OK; r++)
        if (creators[r].status != COSET_OK) {
            status = creators[r].status;
            cst_error_copy(why, &creators[r].why);
        }
    return status;
}

coset_status coset_comm_create_threads(int size, const coset_comm_options *options, coset_comm *comms[],
                                       coset_error *why)
{
    cst_settings settings;
    cst_error_clear(why);
    if (!comms || size < 1 || size > MOST_THREADS)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "comms is NULL or size is not in 1..%d", MOST_THREADS);
    coset_status status = cst_settings_from(options, &settings, why);
    if (status != COSET_OK)
        return status;
    if (!settings.transport[0])
        strcpy(settings.transport, "threads");
    creator *creators = calloc((size_t)size, sizeof *creators);
    cst_bootstrap **bootstraps = calloc((size_t)size, sizeof(cst_bootstrap *));
    status = creators && bootstraps ? cst_bootstrap_threads(size, bootstraps, why)
                                    : cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %d ranks", size);
    if (status == COSET_OK) {
        for (int r = 0; r < size; r++) {
            const coset_error none = COSET_ERROR_INIT;
            creators[r] =
                (creator){.bootstrap = bootstraps[r], .settings = &settings, .plugin = plugin_of(options), .why = none};
        }
        status = create_all(creators, size, why);
        for (int r = 0; r < size; r++)
            if (status == COSET_OK)
                comms[r] = creators[r].comm;
            else if (creators[r].comm)
                cst_comm_destroy(creators[r].comm);
    }
    free(creators);
    free(bootstraps);
    return status;
}
