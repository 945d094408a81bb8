/* SPDX-License-Identifier: Apache-2.0 */
/* Moves buckets, in order, one after the other: on a thread of its own beside backward, or, with caller progress, in the
 * thread that waits for them. */
#ifndef CST_DDP_WORKER_H
#define CST_DDP_WORKER_H
#include "ddp/buckets.h"
#include "ddp/params.h"

#include <pthread.h>
#include <stdint.h>

/* When a bucket of the last step was ready, started and ended; cst_now_ns. */
typedef struct {
    uint64_t ready, start, end;
} cst_bucket_times;

typedef struct {
    coset_comm *comm; /* used by nobody else while buckets move */
    coset_mean *mean; /* NULL: nothing is compressed */
    const cst_params *params;
    const cst_buckets *layout;    /* changed only between steps */
    char *memory;                 /* the gradients */
    cst_bucket_times *times;      /* of each bucket; nparams entries */
    coset_span *spans;            /* nparams entries */
    coset_mean_report compressed; /* summed over the step */
    uint64_t cpu_ns;              /* of this step */
    int rank_order;               /* results must not depend on buckets */
    int threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* of the fields below */
    pthread_cond_t changed;
    size_t released, moved; /* buckets [0, released) may move, [0, moved) have */
    coset_status status;    /* the first failure of the step */
    int stop;
} cst_worker;

/* Starts the thread unless `threaded` is 0. SYSTEM if it cannot. */
coset_status cst_worker_start(cst_worker *w);
void cst_worker_stop(cst_worker *w);
/* Between steps: nothing has been released. */
void cst_worker_begin(cst_worker *w);
/* Buckets [0, released) may move. */
void cst_worker_release(cst_worker *w, size_t released);
/* Waits until all released buckets have moved (moves them itself without a thread). */
coset_status cst_worker_wait(cst_worker *w);
#endif
