/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/star.h"

#include "base/error.h"
#include "bootstrap/root.h"
#include "net/descriptors.h"
#include "net/socket.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a rank waits beyond its own deadline for the root's report, which names who is missing. */
#define REPORT_MS 3000
/* How often a rank looks for other addresses of a root that it cannot reach: names move, files change. */
#define RECHECK_MS 5000

typedef struct {
    cst_bootstrap base;
    cst_root *root; /* rank 0 */
    int fd;         /* others: the line to the root */
    uint32_t number;
} star;

static void close_star(cst_bootstrap *b)
{
    star *s = (star *)b;
    cst_root_free(s->root);
    cst_close(s->fd);
    free(s);
}

static star *star_new(int rank, int size, coset_status (*gather)(void *, const void *, void *, size_t, int))
{
    star *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->base.oob = (coset_oob){sizeof s->base.oob, rank, size, s, gather};
    s->base.error = (coset_error)COSET_ERROR_INIT;
    s->base.close = close_star;
    s->fd = -1;
    return s;
}

static void set_address(star *s, const cst_addr *own)
{
    if (own->length) {
        cst_addr plain = *own;
        cst_addr_set_port(&plain, 0);
        cst_addr_format(&plain, s->base.address);
    }
}

/* -------- rank 0 -------- */

static coset_status gather_root(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    star *s = ctx;
    cst_error_clear(&s->base.error);
    s->base.error.rank = 0;
    return cst_root_gather(s->root, send, recv, bytes, cst_deadline_in(timeout_ms), &s->base.error);
}

coset_status cst_star_root(int listener, const cst_token *token, int size, cst_deadline deadline,
                           void (*joined)(void *ctx), void *ctx, cst_bootstrap **out, coset_error *why)
{
    star *s = star_new(0, size, gather_root);
    if (!s) {
        cst_close(listener);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    }
    s->root = cst_root_new(size, listener, token);
    coset_status status = s->root ? cst_root_admit(s->root, deadline, why)
                                  : cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory for %d ranks", size);
    if (joined)
        joined(ctx);
    if (!status)
        status = cst_root_welcome(s->root, deadline, why);
    if (status) {
        close_star(&s->base);
        return status;
    }
    cst_addr own = cst_root_address(s->root);
    set_address(s, &own);
    *out = &s->base;
    return COSET_OK;
}

/* -------- the others -------- */

static coset_status root_lost(coset_status status, coset_error *why)
{
    if (status == COSET_ERR_PEER)
        return cst_fail(why, status, 0, "rank 0 went away while the job was starting");
    if (status == COSET_ERR_LATE)
        return cst_fail(why, status, 0, "rank 0 has not answered in time");
    return status;
}

/* Reads the root's next frame, which must be `wanted` or a failure. */
static coset_status expect(star *s, const cst_frame *wanted, void *body, cst_deadline deadline, coset_error *why)
{
    uint8_t head[CST_FRAME_BYTES], failure[CST_FAILURE_BYTES];
    cst_frame frame;
    if (deadline != CST_NEVER)
        deadline += REPORT_MS * 1000000ull;
    coset_status status = cst_recv_all(s->fd, head, sizeof head, deadline, why);
    if (status)
        return root_lost(status, why);
    if (!cst_frame_read(head, &frame))
        return cst_fail(why, COSET_ERR_CORRUPT, 0, "rank 0 sent something that is no frame");
    if (frame.kind == CST_FRAME_FAILURE && frame.bytes == sizeof failure) {
        status = cst_recv_all(s->fd, failure, sizeof failure, deadline, why);
        if (status)
            return root_lost(status, why);
        return cst_failure_read(failure, why)
                   ? why->status
                   : cst_fail(why, COSET_ERR_CORRUPT, 0, "rank 0 sent a report that makes no sense");
    }
    if (frame.kind != wanted->kind || frame.number != wanted->number || frame.bytes != wanted->bytes)
        return cst_fail(why, COSET_ERR_CORRUPT, 0, "rank 0 sent a frame that does not belong here");
    status = cst_recv_all(s->fd, body, frame.bytes, deadline, why);
    return status ? root_lost(status, why) : COSET_OK;
}

static coset_status gather_member(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    star *s = ctx;
    coset_error *why = &s->base.error;
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    uint8_t head[CST_FRAME_BYTES];
    const cst_frame part = {CST_FRAME_PART, s->number, bytes};
    const cst_frame all = {CST_FRAME_ALL, s->number, bytes * (size_t)s->base.oob.size};
    s->number++;
    cst_error_clear(why);
    why->rank = s->base.oob.rank;
    cst_frame_write(&part, head);
    coset_status status = cst_send_all(s->fd, head, sizeof head, deadline, why);
    if (!status)
        status = cst_send_all(s->fd, send, bytes, deadline, why);
    /* a root that hung up may have said why: hear it before giving up */
    if (status && status != COSET_ERR_PEER)
        return root_lost(status, why);
    return expect(s, &all, recv, deadline, why);
}

static coset_status connect_root(cst_find find, void *ctx, star *s, cst_deadline deadline, coset_error *why)
{
    cst_hello hello = {.version = COSET_WIRE_VERSION,
                       .purpose = CST_PURPOSE_BOOTSTRAP,
                       .rank = (uint32_t)s->base.oob.rank,
                       .size = (uint32_t)s->base.oob.size,
                       .pid = (uint32_t)getpid()};
    coset_status status;
    coset_error obstacle = COSET_ERROR_INIT;
    cst_descriptors line;
    status = cst_descriptors_hold(&line, 1, "the way to rank 0", why);
    if (status)
        return status; /* else it would be tried again and again until the deadline */
    cst_descriptors_free(&line);
    do {
        cst_routes routes = {0};
        cst_error_clear(&obstacle);
        status = find(ctx, deadline, &routes, &hello.token, &obstacle);
        if (!status)
            status = cst_race_run(&routes, &hello, deadline, cst_deadline_in(RECHECK_MS), &s->fd, &obstacle);
    } while (status == COSET_IN_PROGRESS);
    if (status == COSET_ERR_LATE)
        return cst_fail(why, status, 0, "cannot reach rank 0 in time: %.180s",
                        obstacle.text[0] ? obstacle.text : "no answer");
    if (status)
        cst_error_copy(why, &obstacle);
    return status;
}

coset_status cst_star_join(cst_find find, void *ctx, int rank, int size, cst_deadline deadline, cst_bootstrap **out,
                           coset_error *why)
{
    coset_error error = COSET_ERROR_INIT; /* `why` may be NULL, and what a root reports is read back from it */
    star *s = star_new(rank, size, gather_member);
    if (!s)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    const cst_frame joined = {CST_FRAME_JOINED, 0, 0};
    coset_status status = connect_root(find, ctx, s, deadline, &error);
    if (!status)
        status = expect(s, &joined, NULL, deadline, &error);
    if (status) {
        cst_error_copy(why, &error);
        close_star(&s->base);
        return status;
    }
    cst_addr own = cst_socket_own(s->fd);
    set_address(s, &own);
    *out = &s->base;
    return COSET_OK;
}
