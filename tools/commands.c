/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: to add one, declare its function (command.h) and give it a line. */
#include "command.h"

#include <stddef.h>

static const tool_command bench[] = {
    {"kernels", "the inner loops, by CPU level and by where the data lives", tool_bench_kernels, NULL},
    {"codec", "error, bits and speed of the compressed mean's codecs", tool_bench_codec, NULL},
    {"allreduce", "exact all-reduce: times, bandwidths, floor, bytes", tool_bench_allreduce, NULL},
    {"ddp", "gradients averaged while backward runs: what stays exposed", tool_bench_ddp, NULL},
    {NULL, NULL, NULL, NULL},
};

const tool_command tool_commands[] = {
    {"info", "what this build can do on this machine", tool_info, NULL},
    {"mean", "the mean of vectors in files, as the ranks of a job would estimate it", tool_mean, NULL},
    {"train", "train a small model on several ranks", tool_train, NULL},
    {"bench", "measure one part of the library", NULL, bench},
    {"learn", "ring all-reduce, DDP and lattice codes step by step, with questions", tool_learn, NULL},
    {"run", "start the ranks of a job on this host", tool_run, NULL},
    {NULL, NULL, NULL, NULL},
};
