/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "bootstrap/object.h"

#include <stdlib.h>
#include <string.h>

const coset_oob *cst_bootstrap_oob(const cst_bootstrap *b)
{
    return &b->oob;
}

void cst_bootstrap_why(const cst_bootstrap *b, coset_error *out)
{
    cst_error_copy(out, &b->error);
}

const char *cst_bootstrap_address(const cst_bootstrap *b)
{
    return b->address;
}

void cst_bootstrap_close(cst_bootstrap *b)
{
    if (b)
        b->close(b);
}

coset_status cst_bootstrap_check_rank(int rank, int size, coset_error *why)
{
    if (size < 1)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "size is %d: a job has at least one rank", size);
    if (rank < 0 || rank >= size)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "rank is %d: with size %d it must be 0 to %d", rank, size,
                        size - 1);
    return COSET_OK;
}

static coset_status gather_own(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    (void)ctx;
    (void)timeout_ms;
    if (bytes)
        memmove(recv, send, bytes);
    return COSET_OK;
}

static void close_alone(cst_bootstrap *b)
{
    free(b);
}

coset_status cst_bootstrap_alone(cst_bootstrap **out, coset_error *why)
{
    cst_bootstrap *b = calloc(1, sizeof *b);
    if (!b)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    b->oob = (coset_oob){sizeof b->oob, 0, 1, b, gather_own};
    b->error = (coset_error)COSET_ERROR_INIT;
    b->close = close_alone;
    *out = b;
    return COSET_OK;
}
