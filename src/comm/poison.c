/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/poison.h"

#include "base/error.h"

void cst_poison_init(cst_poison *p)
{
    const coset_error none = COSET_ERROR_INIT;
    atomic_init(&p->status, COSET_OK);
    pthread_mutex_init(&p->lock, NULL);
    p->error = none;
}

void cst_poison_destroy(cst_poison *p)
{
    pthread_mutex_destroy(&p->lock);
}

int cst_poison_set(cst_poison *p, const coset_error *error)
{
    pthread_mutex_lock(&p->lock);
    int first = p->error.status == COSET_OK;
    if (first) {
        p->error = *error;
        p->error.struct_size = sizeof p->error;
        atomic_store_explicit(&p->status, error->status, memory_order_release);
    }
    pthread_mutex_unlock(&p->lock);
    return first;
}

void cst_poison_get(cst_poison *p, coset_error *out)
{
    pthread_mutex_lock(&p->lock);
    cst_error_copy(out, &p->error);
    pthread_mutex_unlock(&p->lock);
}
