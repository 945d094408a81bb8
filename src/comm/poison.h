/* SPDX-License-Identifier: Apache-2.0 */
/* The first error that ends a communicator. Later ones are consequences and are not kept: users get the first cause. */
#ifndef CST_COMM_POISON_H
#define CST_COMM_POISON_H
#include <coset.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct {
    _Atomic int status; /* coset_status; readable without the lock */
    pthread_mutex_t lock;
    coset_error error;
} cst_poison;

void cst_poison_init(cst_poison *p);
void cst_poison_destroy(cst_poison *p);
static inline coset_status cst_poison_status(const cst_poison *p)
{
    return (coset_status)atomic_load_explicit(&p->status, memory_order_acquire);
}
/* Keeps *error if it is the first; returns 1 if it was. */
int cst_poison_set(cst_poison *p, const coset_error *error);
/* Copies the error kept (status OK if none). */
void cst_poison_get(cst_poison *p, coset_error *out);
#endif
