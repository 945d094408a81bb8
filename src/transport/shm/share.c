/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/share.h"

#include "base/clock.h"
#include "base/error.h"
#include "transport/agree.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static coset_status send_pages(const cst_link *l, int peer, uint32_t number, int fd, cst_deadline deadline,
                               coset_error *why)
{
    cst_packet p = {.type = CST_PACKET_PAGES, .number = number};
    while (cst_packet_send(l->fd, &p, fd)) {
        if (errno != EAGAIN)
            return cst_fail(why, COSET_ERR_PEER, peer, "rank %d went away: %s", peer, strerror(errno));
        struct pollfd full = {l->fd, POLLOUT, 0};
        if (cst_deadline_passed(deadline))
            return cst_fail(why, COSET_ERR_LATE, peer, "rank %d does not read its socket", peer);
        poll(&full, 1, cst_deadline_left(deadline, 1000));
    }
    return COSET_OK;
}

static coset_status receive_pages(cst_mesh *mesh, const cst_mesh_handler *h, uint32_t number, cst_deadline deadline,
                                  int *fd, coset_error *why)
{
    while (mesh->pages < 0 || mesh->pages_number != number) {
        /* Rank 0 may know of it already, and not hand out anything any more. */
        if (mesh->trouble)
            return cst_fail(why, mesh->trouble, mesh->troubled,
                            "rank %d went away or gave up while rank 0 handed out shared memory", mesh->troubled);
        if (cst_deadline_passed(deadline))
            return cst_fail(why, COSET_ERR_LATE, 0, "rank 0 did not hand out shared memory");
        cst_mesh_poll(mesh, cst_deadline_left(deadline, 1000), h);
    }
    *fd = mesh->pages;
    mesh->pages = -1;
    return COSET_OK;
}

coset_status cst_share(const coset_oob *oob, cst_mesh *mesh, const cst_mesh_handler *h, const char *what,
                       uint32_t number, coset_status mine, uint64_t value, int timeout_ms, int *fd, coset_error *why)
{
    coset_status status = cst_agree(oob, what, mine, value, timeout_ms, why);
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    if (status)
        return status;
    if (oob->rank)
        status = receive_pages(mesh, h, number, deadline, fd, why);
    for (int r = 1; r < oob->size && !oob->rank; r++) { /* also after a failure: the others wait for it */
        coset_status one = send_pages(&mesh->links[r], r, number, *fd, deadline, status ? NULL : why);
        status = status ? status : one;
    }
    return cst_agree(oob, what, status, value, timeout_ms, why);
}
