/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/reach.h"

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "transport/agree.h"
#include "transport/iov.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>

coset_status cst_reach_method_from_env(cst_reach_method *method, coset_error *why)
{
    const char *text = cst_env("COSET_SHM_METHOD");
    *method = CST_REACH_AUTO;
    if (!text || !strcmp(text, "auto"))
        return COSET_OK;
    if (!strcmp(text, "cma"))
        *method = CST_REACH_CMA;
    else if (!strcmp(text, "staged"))
        *method = CST_REACH_STAGED;
    else
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_SHM_METHOD=%s: expected auto, cma or staged", text);
    return COSET_OK;
}

/* A word whose value only its owner can know, and where it is. */
typedef struct {
    uint64_t address, value[2];
} sample;

static bool can_read(pid_t pid, const sample *s)
{
    uint64_t seen[2] = {0, 0};
    struct iovec local = {seen, sizeof seen}, remote = {(void *)(uintptr_t)s->address, sizeof seen};
    /* The value is compared too: the process of that number may be another one (namespaces). */
    return pid > 0 && !cst_reach_copy(pid, CST_REACH_READ, &local, 1, &remote, 1) &&
           !memcmp(seen, s->value, sizeof seen);
}

/* The first peer whose memory this rank cannot read; -1 if it can read them all. */
static int unreadable(const coset_oob *oob, const cst_link *links, const sample *all)
{
    for (int r = 0; r < oob->size; r++)
        if (r != oob->rank && !can_read(links[r].pid, &all[r]))
            return r;
    return -1;
}

static coset_status try_out(const coset_oob *oob, const cst_link *links, int timeout_ms, bool *allowed, int *peer,
                            coset_error *why)
{
    uint64_t word[2] = {1, 2};
    if (getrandom(word, sizeof word, 0) < 0)
        return cst_fail_errno(why, "transport shm: getrandom");
    cst_room all_room, votes_room;
    sample me = {(uintptr_t)word, {word[0], word[1]}}, *all = cst_room_open(&all_room, oob->size, sizeof *all);
    uint8_t *votes = cst_room_open(&votes_room, oob->size, 1), vote = 0;
    coset_status status = all && votes ? COSET_OK : COSET_ERR_MEMORY;
    if (!status)
        status = oob->allgather(oob->ctx, &me, all, sizeof me, timeout_ms);
    if (!status) {
        *peer = unreadable(oob, links, all);
        vote = *peer < 0;
        /* also keeps `word` in place until all have tried */
        status = oob->allgather(oob->ctx, &vote, votes, sizeof vote, timeout_ms);
    }
    *allowed = true;
    for (int r = 0; r < oob->size && !status; r++)
        *allowed &= votes[r] != 0;
    cst_room_close(&all_room);
    cst_room_close(&votes_room);
    return status ? cst_fail(why, status, -1, "transport shm: the ranks did not all meet: %s", coset_strerror(status))
                  : COSET_OK;
}

coset_status cst_reach_agree(const coset_oob *oob, cst_reach_method method, const cst_link *links, int timeout_ms,
                             bool *allowed, coset_error *why)
{
    int peer = -1;
    *allowed = false;
    if (method == CST_REACH_STAGED)
        return COSET_OK;
    if (method == CST_REACH_CMA)
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* fails where there is no Yama: nothing to declare */
    coset_status status = try_out(oob, links, timeout_ms, allowed, &peer, why);
    if (status || *allowed)
        return status;
    if (method == CST_REACH_CMA)
        return cst_fail(why, COSET_ERR_UNSUPPORTED, peer,
                        "COSET_SHM_METHOD=cma: %s may not read a peer's memory (process_vm_readv; in containers "
                        "--cap-add=SYS_PTRACE)",
                        peer < 0 ? "another rank" : "this rank");
    cst_log(CST_LOG_INFO,
            "transport shm: process_vm_readv is not permitted between all ranks, private memory is staged");
    return COSET_OK;
}

static coset_status status_of(int error)
{
    switch (error) {
    case ESRCH: return COSET_ERR_PEER;
    case EPERM:
    case ENOSYS: return COSET_ERR_UNSUPPORTED;
    default: return COSET_ERR_SYSTEM;
    }
}

coset_status cst_reach_copy(pid_t pid, cst_reach_way way, const struct iovec *local, int local_count,
                            const struct iovec *remote, int remote_count)
{
    enum { PIECES = 64 };
    struct iovec l[PIECES], r[PIECES];
    const size_t most = (size_t)1 << 30; /* one call moves less than 2 GiB */
    size_t done = 0, total, l_bytes, r_bytes;
    if (!cst_iov_bytes(local, local_count, &total))
        return COSET_ERR_ARGUMENT;
    while (done < total) {
        cst_cursor at_local = cst_cursor_at(local, local_count, done),
                   at_remote = cst_cursor_at(remote, remote_count, done);
        int nr = cst_cursor_slice(&at_remote, most, r, PIECES, &r_bytes);
        int nl = cst_cursor_slice(&at_local, r_bytes, l, PIECES, &l_bytes);
        ssize_t n = way == CST_REACH_READ ? process_vm_readv(pid, l, (unsigned long)nl, r, (unsigned long)nr, 0)
                                          : process_vm_writev(pid, l, (unsigned long)nl, r, (unsigned long)nr, 0);
        if (n < 0)
            return status_of(errno);
        if (n == 0)
            return COSET_ERR_SYSTEM;
        done += (size_t)n;
    }
    return COSET_OK;
}
