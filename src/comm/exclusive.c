/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/exclusive.h"

typedef struct {
    coset_status (*body)(coset_comm *c, uint64_t sequence, void *arg);
    void *arg;
} exclusive;

enum { ENTER, ENTERED };

static coset_status step(coset_comm *c, cst_operation *op)
{
    exclusive *e = op->state;
    coset_status status = COSET_OK;
    if (op->phase == ENTER && c->size > 1) {
        status = c->control ? cst_shared_enter(c, op, 0, 0) : cst_comm_check_heard(c, op);
        if (status != COSET_OK)
            return status;
        op->phase = ENTERED;
    }
    int published;
    if (c->control && c->size > 1)
        status = cst_shared_entered(c, op, &published);
    if (status != COSET_OK)
        return status;
    op->wait = (cst_wait){NULL, 0, -1, 0};
    return e->body(c, op->sequence, e->arg);
}

static const cst_operation_class exclusive_class = {step, NULL, NULL};

coset_status cst_comm_exclusive(coset_comm *c, cst_kind kind, size_t count,
                                coset_status (*body)(coset_comm *c, uint64_t sequence, void *arg), void *arg)
{
    exclusive e = {body, arg};
    cst_call call = {.kind = kind, .dtype = COSET_U8, .root = -1, .count = count};
    cst_operation op;
    cst_operation_init(&op, &exclusive_class, &call);
    op.state = &e;
    return cst_comm_run(c, &op);
}
