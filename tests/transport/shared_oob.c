/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shared_oob.h"

#include "base/clock.h"
#include "base/flag.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Two buffers suffice: a rank enters call k + 2 only after all have entered k + 1, and so have read what k gave. */
typedef struct {
    shared_oob *o;
    int rank;
    uint32_t calls;
} end;

struct shared_oob {
    int size;
    _Atomic uint32_t arrived; /* calls entered, by all ranks together */
    _Atomic uint32_t bell;
    end ends[SHARED_OOB_RANKS];
    char data[2][SHARED_OOB_RANKS * SHARED_OOB_BYTES];
};

shared_oob *shared_oob_new(int size)
{
    shared_oob *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (o == MAP_FAILED || size > SHARED_OOB_RANKS)
        abort();
    o->size = size;
    for (int r = 0; r < size; r++)
        o->ends[r] = (end){o, r, 0};
    return o;
}

void shared_oob_free(shared_oob *o)
{
    munmap(o, sizeof *o);
}

static coset_status gather(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    end *e = ctx;
    shared_oob *o = e->o;
    char *data = o->data[e->calls & 1];
    uint32_t wanted = ++e->calls * (uint32_t)o->size;
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    if (bytes > SHARED_OOB_BYTES)
        return COSET_ERR_ARGUMENT;
    memcpy(data + (size_t)e->rank * bytes, send, bytes);
    atomic_fetch_add(&o->arrived, 1);
    cst_bell_ring(&o->bell);
    for (;;) {
        uint32_t seen = cst_bell_read(&o->bell);
        if ((int32_t)(atomic_load(&o->arrived) - wanted) >= 0)
            break;
        if (cst_deadline_passed(deadline))
            return COSET_ERR_LATE;
        cst_bell_sleep(&o->bell, seen, cst_deadline_left(deadline, 100));
    }
    memcpy(recv, data, bytes * (size_t)o->size);
    return COSET_OK;
}

coset_oob shared_oob_end(shared_oob *o, int rank)
{
    return (coset_oob){sizeof(coset_oob), rank, o->size, &o->ends[rank], gather};
}
