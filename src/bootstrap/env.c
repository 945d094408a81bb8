/* SPDX-License-Identifier: Apache-2.0 */
/* Meeting where the environment says: at an address of rank 0's host, or at a local socket. */
#include "base/error.h"
#include "bootstrap/job.h"
#include "bootstrap/star.h"
#include "net/iface.h"
#include "net/resolve.h"
#include "net/socket.h"
#include "net/unix.h"

#include <string.h>

static coset_status find_by_job(void *ctx, cst_deadline deadline, cst_routes *routes, cst_token *token,
                                coset_error *why)
{
    const cst_job *job = ctx;
    *token = cst_token_from_text(job->name);
    if (!job->host[0]) {
        strcpy(routes->local, job->local);
        return COSET_OK;
    }
    return cst_resolve(job->host, job->port, deadline, routes->addr, CST_ROUTES, &routes->count, why);
}

/* The root's name may stand for another address here than elsewhere (127.0.1.1 in many hosts files), so rank 0
 * listens on every address, unless COSET_IFNAME says which. */
static coset_status listen_for(const cst_job *job, int *listener, coset_error *why)
{
    const cst_ports any = {0, 0};
    cst_addr list[CST_IFACE_MAX];
    int count;
    if (!job->host[0])
        return cst_unix_listen(job->local, listener, why);
    if (!cst_iface_asked())
        return cst_listen_everywhere(job->port, any, listener, NULL, why);
    coset_status status = cst_iface_addresses(list, CST_IFACE_MAX, &count, why);
    if (status)
        return status;
    if (count > 1)
        return cst_listen_everywhere(job->port, any, listener, NULL, why);
    cst_addr_set_port(&list[0], job->port);
    return cst_listen(&list[0], any, listener, NULL, why);
}

static coset_status as_root(const cst_job *job, cst_deadline deadline, cst_bootstrap **out, coset_error *why)
{
    cst_token token = cst_token_from_text(job->name);
    coset_error obstacle = COSET_ERROR_INIT;
    int listener;
    coset_status status = listen_for(job, &listener, &obstacle);
    if (!status)
        return cst_star_root(listener, &token, job->size, deadline, NULL, NULL, out, why);
    if (job->host[0])
        return cst_fail(why, status, -1, "%.160s (the port comes from %s): free it or set COSET_ROOT=host:port",
                        obstacle.text, job->from);
    return cst_fail(why, status, -1, "%.160s: is another job named so? set COSET_JOB to a name of this job's own",
                    obstacle.text);
}

coset_status cst_bootstrap_env(int timeout_ms, cst_bootstrap **out, coset_error *why)
{
    cst_job job;
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    coset_status status = cst_job_from_env(&job, why);
    if (status)
        return status;
    if (job.size == 1)
        return cst_bootstrap_alone(out, why);
    if (job.rank == 0)
        return as_root(&job, deadline, out, why);
    return cst_star_join(find_by_job, &job, job.rank, job.size, deadline, out, why);
}
