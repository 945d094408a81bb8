/* SPDX-License-Identifier: Apache-2.0 */
/* One training run on all ranks, and what is known of it afterwards. */
#ifndef COSET_TOOLS_TRAIN_JOB_H
#define COSET_TOOLS_TRAIN_JOB_H
#include "train/settings.h"
#include "train/trace.h"

/* The same on all ranks, but for score and verification, which rank 0 has. */
typedef struct {
    const char *codec;
    size_t steps, skipped;
    double parameters;
    double step_s, exposed_s; /* medians over the steps of the maximum over ranks; local SGD: exposed is the mean */
    double exposed_share;     /* of the time of all steps */
    double train_loss;        /* mean of the last epoch, or of the last tenth of the steps */
    double bytes_per_step;    /* maximum over ranks */
    double bits_per_coord;    /* sent by a rank for each averaged element */
    double repaired;          /* blocks, all ranks together */
    double unit_rate;         /* images or characters per second, all ranks together */
    uint64_t hash;
    bool identical; /* the weights, on all ranks */
    model_score score;
    bool verified;              /* rank 0 has replayed the run alone: */
    double difference, largest; /* largest difference of a weight, largest weight */
    double *loss, *sent;        /* of each step: mean over ranks, maximum over ranks */
} job_result;

/* Collective. `t` may be NULL. Returns 0, or an exit status after a line on standard error. job_free in any case. */
int job_run(const train_settings *s, tool_rank *rank, trace *t, job_result *out);
void job_free(job_result *r);
/* False if a verified run missed the single rank's weights by more than rounding. */
bool job_equal_to_rounding(const job_result *r);
#endif
