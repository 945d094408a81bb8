/* SPDX-License-Identifier: Apache-2.0 */
/* What `coset train` prints. */
#ifndef COSET_TOOLS_TRAIN_REPORT_H
#define COSET_TOOLS_TRAIN_REPORT_H
#include "common/json.h"
#include "train/job.h"

/* A table with a row per run, and what there is to say about weights. */
void report_print(FILE *out, const train_settings *s, const tool_rank *rank, const job_result *runs, size_t count);
/* The object of one run. */
cJSON *report_json(const train_settings *s, const tool_rank *rank, const job_result *r);
#endif
