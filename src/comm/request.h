/* SPDX-License-Identifier: Apache-2.0 */
/* What a coset_request is: an operation in the heap with its outcome. */
#ifndef CST_COMM_REQUEST_H
#define CST_COMM_REQUEST_H
#include "comm/operation.h"

struct coset_request {
    coset_comm *comm;
    coset_request *next, **link; /* of all requests that have not been freed; under the queue's lock */
    cst_operation op;
    _Atomic int ended; /* 1 when status is final */
    coset_status status;
    /* under the queue's lock */
    int concluded; /* status is final, the callback is being or has been called */
    void (*callback)(void *ctx, coset_status status);
    void *callback_ctx;
};

/* Waits until the request has ended or the deadline has passed; drives meanwhile. Frees nothing. */
coset_status cst_request_wait(coset_request *r, uint64_t deadline);
void cst_request_free(coset_request *r);
#endif
