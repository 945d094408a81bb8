/* SPDX-License-Identifier: Apache-2.0 */
/* What `coset train` was asked to do. */
#ifndef COSET_TOOLS_TRAIN_SETTINGS_H
#define COSET_TOOLS_TRAIN_SETTINGS_H
#include "common/launch.h"
#include "train/trainer.h"

#include <coset_mean.h>

typedef struct {
    tool_launch launch;
    const model_ops *model;
    const char *model_name, *size, *optimizer_name, *json, *plot, *trace;
    const char *codec; /* "none", "bf16", or a codec of coset_mean */
    double budget, bits, bucket_mb, clip, rate;
    int epochs, steps, batch, accumulate, seed, local_steps;
    bool compare, check_weights;
} train_settings;

/* Fills the settings; exits with 2 on bad input. */
void settings_parse(train_settings *s, int argc, char **argv);
train_plan settings_plan(const train_settings *s);
/* Of the codec, for coset_mean. */
coset_mean_options settings_mean(const train_settings *s);
#endif
