/* SPDX-License-Identifier: Apache-2.0 */
/* What a coset_ddp is made of. */
#ifndef CST_DDP_REDUCER_H
#define CST_DDP_REDUCER_H
#include "ddp/buckets.h"
#include "ddp/params.h"
#include "ddp/step.h"
#include "ddp/worker.h"

/* The caps list copied, defaults filled in. */
typedef struct {
    cst_bucket_caps caps;
    size_t *list;
    int allow_unused, keep_order, compress;
} cst_ddp_settings;

/* Times of the step under way; cst_now_ns. */
typedef struct {
    uint64_t began; /* the first ready */
    uint64_t finish_called, finish_ended;
} cst_step_times;

struct coset_ddp {
    coset_comm *comm; /* split off the caller's */
    cst_ddp_settings settings;
    cst_params params;
    cst_buckets layout;
    size_t *order; /* of the parameters, that the layout was made of */
    char *memory;  /* the gradients, from coset_alloc */
    size_t memory_bytes;
    coset_mean *mean;
    double link_gbps; /* measured, or given; 0 if it was not asked for */
    cst_worker worker;
    pthread_mutex_t lock; /* of step, nonfinite, added, times.began and why */
    cst_step_state step;
    unsigned char *nonfinite; /* of each parameter: the gradient brought in here was not finite */
    int *culprit;             /* of each parameter: the first rank whose gradient was not finite; -1 */
    unsigned char *added;     /* of each parameter: ready in a pass of this step that communicated nothing */
    coset_status misuse;      /* ARGUMENT if ready was called wrongly this step: told to all at finish */
    int no_sync;
    int rebuilt; /* the order of readiness has been taken over */
    cst_step_times times;
    coset_stats sent_before; /* the communicator's counters when the step began */
    coset_ddp_report report; /* of the last step, with its buckets, which a rebuild replaces */
    uint64_t reported_began;
    cst_bucket *reported;
    cst_bucket_times *reported_times;
    char why[256];
};

/* Lays the parameters out in `order` and moves the gradients' values along. Between steps. */
coset_status cst_ddp_layout(coset_ddp *d, const size_t *order);
/* Nothing is ready; the counters of the communicator are noted. Between steps. */
void cst_ddp_begin_step(coset_ddp *d);
/* Is `d` one that this process may use? ARGUMENT for NULL, UNSUPPORTED in a forked child. */
coset_status cst_ddp_check(const coset_ddp *d);
/* Keeps the text of an error and returns its status. */
coset_status cst_ddp_fail(coset_ddp *d, coset_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#endif
