/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data-parallel training: gradients gathered in buckets that are averaged while backward still runs, exactly or
 * compressed; clipping after the last bucket and before the optimizer. The reducer that PyTorch's DDP users know (Li et
 * al., VLDB 2020), behind a C API.
 *
 *     coset_param params[] = {{.id = 1, .count = nw, .dtype = COSET_F32, .ndim = 2, .name = "w"}, ...};
 *     coset_ddp *ddp;
 *     coset_ddp_create(comm, NULL, params, nparams, &ddp);
 *     for (every step) {
 *         for (every layer, from the last to the first) {
 *             float *grad = coset_ddp_grad(ddp, id);     // write the gradient here: no copy is made
 *             ... backward of the layer ...
 *             coset_ddp_ready(ddp, id);                  // a full bucket starts moving at once
 *         }
 *         int moved;
 *         coset_ddp_finish(ddp, &moved);                 // all gradients are now means over the ranks
 *         coset_ddp_clip(ddp, 1.0, &norm, &skip);
 *         if (!skip) ... optimizer step ...
 *     }
 *     coset_ddp_destroy(ddp);
 *
 * Gradients are summed in f32 or wider and rounded once, also those of 16-bit types. All ranks end with the same bits.
 * With COSET_RANK_ORDER=1 results do not depend on the sizes of the buckets.
 *
 * coset_ddp_ready and coset_ddp_grad may be called from any thread, all else from one at a time. NULL for a reducer is
 * ARGUMENT. After PEER, LATE, ABORTED, CORRUPT or SYSTEM only coset_ddp_why and coset_ddp_destroy remain useful.
 */
#ifndef COSET_DDP_H
#define COSET_DDP_H
#include <coset.h>
#include <coset_mean.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct coset_ddp coset_ddp;

enum {
    COSET_PARAM_EXACT = 1,      /* never compressed */
    COSET_PARAM_COMPRESS = 2    /* compressed although it is one-dimensional or smaller than 1024 elements */
};

/* A parameter. The array and the names are copied. All ranks give the same list (checked). */
typedef struct {
    uint64_t id;         /* any number, no two alike */
    size_t count;        /* elements */
    coset_dtype dtype;   /* F32, F64, F16 or BF16 */
    int ndim;            /* of the tensor: parameters of one dimension stay exact by default */
    const char *name;    /* for messages; may be NULL */
    int flags;           /* COSET_PARAM_EXACT or COSET_PARAM_COMPRESS; 0: by ndim and count */
} coset_param;

/* Zero (or NULL) in any field is the default. */
typedef struct {
    size_t struct_size;
    size_t bucket_bytes;   /* default 25 MiB; towards the end less: at most half of what is left, so that the tail
                              overlaps */
    size_t first_bytes;    /* of the bucket that is ready first: default 1 MiB, so that communication starts early */
    size_t last_bytes;     /* of the bucket that is ready last: default 1 MiB, since it overlaps with nothing */
    const size_t *caps;    /* instead of the three: one cap per bucket, the last one for all others */
    size_t ncaps;
    const coset_mean_options *mean; /* compress with these options; NULL: exact. Unless mean->objective is
                              COSET_OBJECTIVE_BITS, create measures the link (or takes mean->link_gbps), and if the exact
                              all-reduce is quicker than the codes gradients are sent exactly: the report says `plain` */
    int allow_unused;      /* 1: parameters that no rank made ready are left as they are (zero); 0: they are an error */
    int keep_order;        /* 1: buckets are not rebuilt after the first step */
} coset_ddp_options;
#define COSET_DDP_OPTIONS_INIT {sizeof(coset_ddp_options), 0, 0, 0, 0, 0, 0, 0, 0}

/* Collective. Memory for all gradients comes from coset_alloc, zeroed. ARGUMENT: no parameters, ids twice, a dtype that
 * is none. MISMATCH: ranks gave different parameters or options (both named). coset_last_error of `comm` has the text. The
 * communicator must outlive the reducer, which splits off its own: other calls on `comm` stay free. */
coset_status coset_ddp_create(coset_comm *comm, const coset_ddp_options *options, const coset_param *params,
                              size_t nparams, coset_ddp **ddp);
/* Frees the reducer and its gradients' memory and returns OK; NULL is a no-op. Between steps; in the middle of one it
 * waits for the bucket under way. Not collective, as coset_comm_destroy. */
coset_status coset_ddp_destroy(coset_ddp *ddp);
/* Makes every pending and later step on every rank end with ABORTED, `why` (may be NULL) in coset_ddp_why. Local, never
 * blocks, any thread, also while another waits in finish or join: for watchdogs. The communicator that the reducer was
 * created from goes on, and an abort of that one does not reach the reducer. */
coset_status coset_ddp_abort(coset_ddp *ddp, const char *why);

/* Where the gradient of `id` lives; valid until a finish reports that gradients moved. NULL if there is no such
 * parameter. */
void *coset_ddp_grad(coset_ddp *ddp, uint64_t id);
/* The gradient of `id` has been written. Any thread; each parameter once a step. When a bucket is complete, and all
 * before it have started, it starts. ARGUMENT: unknown, or ready twice; the others learn of it at finish. */
coset_status coset_ddp_ready(coset_ddp *ddp, uint64_t id);
/* Collective: blocks until all buckets have moved on all ranks. Parameters that were ready on some ranks only count as zero on the others; those
 * ready nowhere are an error that names them (on every rank), or are left alone with allow_unused. *moved (may be NULL)
 * = 1 if gradients live elsewhere from now on (buckets were rebuilt in the order in which gradients became ready; once,
 * after the first step; the gradients' values move with them). */
coset_status coset_ddp_finish(coset_ddp *ddp, int *moved);
/* Accumulation: with on = 1, ready and finish communicate nothing; gradients add up in place. What was ready in such a pass
 * counts in the next finish that communicates, also if no gradient of it came in the last pass. The same on all ranks.
 * ARGUMENT between the first ready of a step and its finish. */
coset_status coset_ddp_no_sync(coset_ddp *ddp, int on);
/* This rank has no more batches: blocks, and takes part in the steps of the others with zero gradients, until every rank has
 * called join. The mean stays a division by the number of all ranks. *steps (may be NULL) = how many. */
coset_status coset_ddp_join(coset_ddp *ddp, uint64_t *steps);

/* After finish and before the optimizer. The Euclidean norm of all gradients together, in f64, the same bits on every
 * rank; if it is above max_norm (> 0) every gradient is multiplied by max_norm / norm. *skip = 1, on every rank alike,
 * if a gradient is not finite: nothing is scaled then, the norm is NaN, and coset_ddp_why names the parameter and the
 * first rank that brought it in. total_norm and skip may be NULL. No communication. ARGUMENT: max_norm. */
coset_status coset_ddp_clip(coset_ddp *ddp, double max_norm, double *total_norm, int *skip);
/* Text about the last error or skip; never NULL, valid until the next call on the reducer. */
const char *coset_ddp_why(const coset_ddp *ddp);

/* Of the last finished step. */
typedef struct {
    size_t struct_size;
    uint64_t steps;
    double backward_s;       /* from the first ready (or the last finish) to the call of finish */
    double communication_s;  /* time in which at least one bucket was moving */
    double exposed_s;        /* time spent in finish: communication that nothing hid */
    double cpu_s;            /* processor time of communication on this rank */
    uint64_t sent_bytes;
    uint64_t coords, bits_sent;  /* compressed buckets */
    uint64_t repaired;
    size_t buckets;
    double link_gbps;        /* what an exact all-reduce moves each way, 10^9 bytes per second; 0: not asked for */
    int plain;               /* 1: compression was asked for and would not pay on this link: gradients were sent exactly */
} coset_ddp_report;
#define COSET_DDP_REPORT_INIT {sizeof(coset_ddp_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
coset_status coset_ddp_last_report(const coset_ddp *ddp, coset_ddp_report *out);

/* Of one bucket of the last finished step; times in seconds since the step's first ready. */
typedef struct {
    size_t struct_size;
    size_t bytes, params;
    coset_dtype dtype;
    int compressed;
    double ready_s, start_s, end_s;
} coset_ddp_bucket;
/* ARGUMENT if there is no bucket `index` (0 is the one that is ready first). */
coset_status coset_ddp_bucket_report(const coset_ddp *ddp, size_t index, coset_ddp_bucket *out);

/* The reducer's state (bucket order, compression statistics, whether compression pays), for checkpoints. As coset_mean_save
 * and coset_mean_load; between steps only (ARGUMENT once ready has been called). All ranks load, each what it saved. Loading
 * may move the gradients: ask coset_ddp_grad again. CORRUPT for a damaged state, MISMATCH for one of other parameters or
 * options, UNSUPPORTED in a forked child; the next finish finds ranks that have loaded different states. */
coset_status coset_ddp_save(const coset_ddp *ddp, void *buf, size_t *bytes);
coset_status coset_ddp_load(coset_ddp *ddp, const void *buf, size_t bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
