/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env.h"
#include "base/error.h"
#include "base/host.h"
#include "transport/agree.h"
#include "transport/mpi/mpi.h"
#include "transport/mpi/oob.h"

#include <coset_mpi.h>
#include <stdbool.h>
#include <string.h>

/* As the library's own (docs/environment.md), for what happens before it has read its options. */
enum { LATE_MS_DEFAULT = 600000, DAY_MS = 86400000 };

static coset_status check_mpi(MPI_Comm mpi, coset_comm **comm, coset_error *why)
{
    int initialized = 0, finalized = 0, inter = 0, level = MPI_THREAD_SINGLE, is_main = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return cst_fail(why, COSET_ERR_UNSUPPORTED, -1, "MPI %s",
                        finalized ? "is finalised already" : "is not initialised: call MPI_Init_thread first");
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&is_main);
    if (level <= MPI_THREAD_FUNNELED && !is_main)
        return cst_fail(why, COSET_ERR_UNSUPPORTED, -1,
                        "MPI was initialised for calls from one thread only, and this is another one: ask "
                        "MPI_Init_thread for more, or call from that thread");
    if (!comm || mpi == MPI_COMM_NULL)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "%s",
                        comm ? "the MPI communicator is MPI_COMM_NULL" : "comm is NULL");
    MPI_Comm_test_inter(mpi, &inter);
    if (inter)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "the MPI communicator is an intercommunicator: merge it first (MPI_Intercomm_merge)");
    return COSET_OK;
}

/* Communicators made from this one look for their ranks in MPI_COMM_WORLD. */
static coset_status check_world(MPI_Comm mpi, coset_error *why)
{
    MPI_Group world, group, common;
    int size, found;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(mpi, &group);
    MPI_Group_intersection(group, world, &common);
    MPI_Group_size(group, &size);
    MPI_Group_size(common, &found);
    MPI_Group_free(&common);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    if (found == size)
        return COSET_OK;
    return cst_fail(why, COSET_ERR_UNSUPPORTED, -1,
                    "%d of %d ranks are not in this MPI_COMM_WORLD (MPI_Comm_spawn): use coset_comm_create_oob with "
                    "transport tcp",
                    size - found, size);
}

static coset_status choose_late_ms(const coset_comm_options *options, int *late_ms, coset_error *why)
{
    const size_t needed = offsetof(coset_comm_options, late_ms) + sizeof options->late_ms;
    *late_ms = LATE_MS_DEFAULT;
    coset_status status = cst_env_int("COSET_LATE_MS", 1, DAY_MS, late_ms, why);
    if (options && options->struct_size >= needed && options->late_ms > 0)
        *late_ms = options->late_ms;
    return status;
}

static coset_status one_host(const coset_oob *oob, int late_ms, bool *same, coset_error *why)
{
    char mine[CST_HOST_ID_BYTES] = {0};
    cst_room room;
    char(*all)[CST_HOST_ID_BYTES] = cst_room_open(&room, oob->size, sizeof *all);
    if (!all)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %d ranks", oob->size);
    cst_host_identity(mine);
    coset_status status = oob->allgather(oob->ctx, mine, all, sizeof mine, late_ms);
    if (status)
        cst_fail(why, status, -1, "ranks could not tell each other their hosts: %s", coset_strerror(status));
    *same = true;
    for (int r = 0; r < oob->size && !status; r++)
        *same = *same && !memcmp(all[r], all[0], sizeof mine);
    cst_room_close(&room);
    return status;
}

/* Whether MPI is to carry the bytes; transport: the option, NULL if it is not set. */
static coset_status carries(const coset_oob *oob, const char *transport, int late_ms, bool *by_mpi, coset_error *why)
{
    const char *asked = transport ? transport : cst_env("COSET_TRANSPORT");
    bool same = true;
    coset_status status = one_host(oob, late_ms, &same, why);
    *by_mpi = asked ? !strcmp(asked, "mpi") : !same;
    return status;
}

static coset_status create(cst_mpi_oob *o, const coset_comm_options *options, int late_ms, coset_comm **comm,
                           coset_error *why)
{
    coset_oob oob = cst_mpi_oob_make(o);
    coset_comm_options chosen = COSET_COMM_OPTIONS_INIT;
    bool by_mpi;
    if (options)
        memcpy(&chosen, options, options->struct_size < sizeof chosen ? options->struct_size : sizeof chosen);
    coset_status status = carries(&oob, chosen.transport, late_ms, &by_mpi, why);
    if (status)
        return status;
    if (by_mpi && !chosen.plugin) {
        chosen.transport = "mpi";
        chosen.plugin = &cst_transport_mpi;
    }
    chosen.struct_size = sizeof chosen;
    return coset_comm_create_oob(&oob, &chosen, comm, why);
}

coset_status coset_comm_from_mpi(MPI_Comm mpi, const coset_comm_options *options, coset_comm **comm, coset_error *why)
{
    cst_mpi_oob o = {.comm = MPI_COMM_NULL};
    int late_ms;
    cst_error_clear(why);
    if (options && (options->struct_size < sizeof options->struct_size || options->struct_size > 4096))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "options.struct_size is not set: use COSET_COMM_OPTIONS_INIT");
    coset_status status = check_mpi(mpi, comm, why);
    if (!status)
        status = check_world(mpi, why);
    if (!status)
        status = choose_late_ms(options, &late_ms, why);
    if (!status)
        status = cst_mpi_duplicate(mpi, late_ms, &o.comm, why);
    if (status)
        return status;
    status = create(&o, options, late_ms, comm, why);
    if (!o.spoiled) /* else something may still arrive there */
        MPI_Comm_free(&o.comm);
    return status;
}
