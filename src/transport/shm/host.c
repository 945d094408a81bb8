/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/host.h"

#include "base/alloc.h"
#include "base/error.h"
#include "transport/agree.h"
#include "transport/shm/pages.h"
#include "transport/shm/share.h"

#include <sys/mman.h>
#include <unistd.h>

/* Stage blocks: docs/performance.md has the measurements. Fewer where many ranks would need much memory. */
static cst_layout choose_layout(int size)
{
    return size <= 16 ? cst_layout_for(size, 16, (size_t)128 << 10) : cst_layout_for(size, 8, (size_t)64 << 10);
}

/* Populating every area in every process costs size^2 page tables: beyond this many bytes, the own areas only. */
enum { POPULATE_ALL = 64 << 20 };

static coset_status map_areas(cst_host *h, int rank, int fd, size_t total, coset_error *why)
{
    coset_status status = cst_pages_map(fd, total, &h->base, why);
    size_t at = (size_t)rank * h->stride;
    return status ? status : cst_pages_populate(h->base + at, h->stride, fd, at, 1, why);
}

coset_status cst_host_open(const coset_oob *oob, cst_mesh *mesh, const cst_mesh_handler *handler, size_t control_bytes,
                           int timeout_ms, cst_host *h, coset_error *why)
{
    *h = (cst_host){.size = oob->size, .layout = choose_layout(oob->size)};
    size_t total;
    int fd = -1;
    h->control_bytes = cst_round_up(control_bytes, 4096);
    h->stride = h->control_bytes + h->layout.bytes;
    coset_status mine =
        cst_size_mul(h->stride, (size_t)oob->size, &total)
            ? COSET_OK
            : cst_fail(why, COSET_ERR_MEMORY, -1, "transport shm: a control area of %zu bytes", control_bytes);
    if (!mine && !oob->rank)
        mine = cst_pages_create(total, &fd, why);
    const char *what = "transport shm: control memory";
    coset_status status = cst_share(oob, mesh, handler, what, UINT32_MAX, mine, control_bytes, timeout_ms, &fd, why);
    if (!status)
        status = cst_agree(oob, what, map_areas(h, oob->rank, fd, total, why), 0, timeout_ms, why);
    if (fd >= 0)
        close(fd);
    if (status) {
        cst_host_close(h);
        return status;
    }
    coset_error ignored = COSET_ERROR_INIT; /* the first access maps what is not mapped here */
    if (total <= POPULATE_ALL)
        cst_pages_populate(h->base, total, -1, 0, 0, &ignored);
    return COSET_OK;
}

void cst_host_close(cst_host *h)
{
    if (h->base)
        munmap(h->base, h->stride * (size_t)h->size);
    h->base = NULL;
}
