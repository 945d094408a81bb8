/* SPDX-License-Identifier: Apache-2.0 */
/* Everything about a communicator but its creation and its collectives. */
#include "api/check.h"
#include "base/error.h"
#include "base/fork.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

coset_status coset_comm_split(coset_comm *comm, int color, int key, coset_comm **sub)
{
    coset_status status = cst_check_comm(comm);
    if (status != COSET_OK)
        return status;
    return sub ? cst_comm_split(comm, color, key, sub)
               : cst_comm_note(comm, COSET_ERR_ARGUMENT, "coset_comm_split: sub is NULL");
}

coset_status coset_comm_shrink(coset_comm *comm, coset_comm **survivors)
{
    coset_status status = cst_check_comm(comm);
    if (status != COSET_OK)
        return status;
    return survivors ? cst_comm_shrink(comm, survivors)
                     : cst_comm_note(comm, COSET_ERR_ARGUMENT, "coset_comm_shrink: survivors is NULL");
}

coset_status coset_comm_abort(coset_comm *comm, const char *why)
{
    coset_status status = cst_check_comm(comm);
    if (status != COSET_OK)
        return status;
    cst_comm_fail(comm, COSET_ERR_ABORTED, -1, UINT64_MAX, "%s", why && *why ? why : "coset_comm_abort was called");
    comm->transport->ops->wake(comm->transport);
    return COSET_OK;
}

coset_status coset_comm_destroy(coset_comm *comm)
{
    if (comm)
        cst_comm_destroy(comm);
    return COSET_OK;
}

coset_status coset_last_error(const coset_comm *comm, coset_error *out)
{
    if (!comm || !out)
        return COSET_ERR_ARGUMENT;
    coset_comm *c = (coset_comm *)(uintptr_t)comm; /* the lock inside is not part of what const promises */
    pthread_mutex_lock(&c->poison.lock);
    coset_error e = c->poison.error.status != COSET_OK ? c->poison.error : c->last;
    pthread_mutex_unlock(&c->poison.lock);
    cst_error_copy(out, &e);
    return e.status;
}

int coset_comm_rank(const coset_comm *comm)
{
    return comm ? comm->rank : -1;
}

int coset_comm_size(const coset_comm *comm)
{
    return comm ? comm->size : -1;
}

const char *coset_comm_transport(const coset_comm *comm)
{
    return comm ? comm->transport->ops->name : "?";
}

/* The transport's own, for a caller that progresses itself. Where ranks share memory most of what operations wait for is
 * flags, which no descriptor tells of. */
static int fd_of_transport(coset_comm *c)
{
    if (c->control || !(c->caps.flags & COSET_CAN_SLEEP))
        return -1;
    atomic_store(&c->polled, true);
    return c->transport->ops->fd(c->transport);
}

/* In THREAD mode an eventfd that the driver raises. */
int coset_comm_fd(const coset_comm *comm)
{
    if (cst_check_comm(comm) != COSET_OK)
        return -1;
    coset_comm *c = (coset_comm *)(uintptr_t)comm;
    if (c->settings.progress == COSET_PROGRESS_CALLER)
        return fd_of_transport(c);
    pthread_mutex_lock(&c->queue.lock);
    if (c->queue.event_fd < 0) {
        int fd = eventfd(c->queue.uncollected > 0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd >= 0 && cst_fork_guard(fd) != COSET_OK) {
            close(fd);
            fd = -1;
        }
        c->queue.event_fd = fd;
    }
    int fd = c->queue.event_fd;
    pthread_mutex_unlock(&c->queue.lock);
    return fd;
}

static void add_stats(coset_stats *sum, const coset_comm *c)
{
    coset_transport_counters n;
    c->transport->ops->counters(c->transport, &n);
    sum->sent_bytes += n.sent_bytes + c->direct_sent;
    sum->received_bytes += n.received_bytes + c->direct_received;
    sum->wire_sent_bytes += n.wire_sent_bytes + c->direct_sent;
    sum->wire_received_bytes += n.wire_received_bytes + c->direct_received;
    sum->wait_s += (double)atomic_load(&c->wait_ns) * 1e-9;
}

coset_status coset_comm_stats(const coset_comm *comm, coset_stats *out)
{
    if (!comm || !out || out->struct_size < sizeof out->struct_size)
        return COSET_ERR_ARGUMENT;
    coset_stats s = {.struct_size = out->struct_size, .operations = atomic_load(&comm->operations)};
    const coset_comm *parts[] = {comm, comm->nodes.node, comm->nodes.cross};
    for (int i = 0; i < 3; i++)
        if (parts[i])
            add_stats(&s, parts[i]);
    memcpy(out, &s, out->struct_size < sizeof s ? out->struct_size : sizeof s);
    return COSET_OK;
}

coset_status coset_comm_flight(const coset_comm *comm, const char *path)
{
    if (!comm || !path)
        return COSET_ERR_ARGUMENT;
    coset_error why = COSET_ERROR_INIT;
    coset_last_error(comm, &why);
    FILE *out = fopen(path, "we");
    int bad = !out || cst_recorder_write(&comm->recorder, comm->rank, comm->size, &why, out);
    if (out)
        bad |= fclose(out);
    return bad ? COSET_ERR_SYSTEM : COSET_OK;
}

coset_status coset_alloc(coset_comm *comm, size_t bytes, void **ptr)
{
    coset_status status = cst_check_comm(comm);
    if (status != COSET_OK)
        return status;
    return ptr ? cst_comm_alloc(comm, bytes, ptr) : cst_comm_note(comm, COSET_ERR_ARGUMENT, "coset_alloc: ptr is NULL");
}

coset_status coset_free(coset_comm *comm, void *ptr)
{
    coset_status status = cst_check_comm(comm);
    return status == COSET_OK ? cst_comm_free(comm, ptr) : status;
}
