/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"
#include "base/clock.h"
#include "comm/request.h"

coset_status coset_test(coset_request *request, int *done)
{
    if (!request || !done)
        return COSET_ERR_ARGUMENT;
    coset_status status = cst_check_comm(request->comm);
    if (status != COSET_OK)
        return status;
    if (!atomic_load(&request->ended))
        cst_comm_drive_once(request->comm);
    *done = atomic_load(&request->ended);
    return COSET_OK;
}

coset_status coset_wait(coset_request **request, int timeout_ms)
{
    if (!request || !*request)
        return COSET_ERR_ARGUMENT;
    coset_request *r = *request;
    coset_status status = cst_check_comm(r->comm);
    if (status != COSET_OK)
        return status;
    status = cst_request_wait(r, cst_deadline_in(timeout_ms));
    if (!atomic_load(&r->ended))
        return COSET_IN_PROGRESS;
    cst_request_free(r);
    *request = NULL;
    return status;
}

coset_status coset_request_on_complete(coset_request *request, void (*fn)(void *ctx, coset_status status), void *ctx)
{
    if (!request || !fn)
        return COSET_ERR_ARGUMENT;
    coset_status status = cst_check_comm(request->comm);
    if (status != COSET_OK)
        return status;
    pthread_mutex_lock(&request->comm->queue.lock);
    int concluded = request->concluded;
    int taken = request->callback != NULL;
    if (!concluded && !taken) {
        request->callback = fn;
        request->callback_ctx = ctx;
    }
    pthread_mutex_unlock(&request->comm->queue.lock);
    if (taken)
        return cst_comm_note(request->comm, COSET_ERR_ARGUMENT, "the request has a completion callback already");
    if (concluded)
        fn(ctx, request->status);
    return COSET_OK;
}

coset_status coset_progress(coset_comm *comm, int *active)
{
    coset_status status = cst_check_comm(comm);
    if (status != COSET_OK)
        return status;
    int left = cst_comm_drive_once(comm);
    if (active)
        *active = left;
    return COSET_OK;
}
