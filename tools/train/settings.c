/* SPDX-License-Identifier: Apache-2.0 */
#include "train/settings.h"

#include "common/codec.h"
#include "common/options.h"

#include <string.h>

static const char about[] =
    "Trains a model on N ranks: gradients are averaged by coset_ddp while backward runs, exactly or compressed. `mlp`"
    " classifies handwritten digits, `gpt` is a character-level transformer on books of the King James Bible; the data"
    " travel inside the command. An exact run of the mlp with sgd is repeated by rank 0 alone and compared."
    "\v--codec none is f32, bf16 sends 16-bit gradients, the others are those of coset_mean (lattice, eden, ...)."
    " --local-steps K: each rank trains K steps by itself, then models are averaged. --compare trains exact, with lattice"
    " codes by budget (or --bits), with EDEN at the same bits, and in bf16, and prints one table. The exit status is 1 if the ranks'"
    " weights differ in any bit, or an exact run differs from the single rank's by more than rounding.";

static const char *const model_names[] = {"mlp", "gpt", NULL};
static const char *const size_names[] = {"tiny", "small", "medium", NULL};
static const char *const optimizer_names[] = {"sgd", "adamw", NULL};

/* What each model trains well with; --rate, --batch, --epochs and --steps say otherwise. */
enum { MLP_EPOCHS = 20, MLP_BATCH = 64, GPT_STEPS = 200, GPT_BATCH = 16, WARM_UP = 20 };
static const float sgd_rate = 0.1f, adamw_rate_mlp = 2e-3f, adamw_rate_gpt = 1.5e-3f, momentum = 0.9f, decay = 0.1f;

static bool is_gpt(const train_settings *s)
{
    return !strcmp(s->model_name, "gpt");
}

static void choose_model(train_settings *s, const char *command)
{
    if (!is_gpt(s) && s->size)
        tool_bad_input(command, "--size=%s is of the gpt: the mlp has one size", s->size);
    if (!s->size)
        s->size = "small";
    s->model = !is_gpt(s)                  ? &mlp_ops
               : !strcmp(s->size, "tiny")  ? &gpt_tiny_ops
               : !strcmp(s->size, "small") ? &gpt_small_ops
                                           : &gpt_medium_ops;
    if (!s->batch)
        s->batch = is_gpt(s) ? GPT_BATCH : MLP_BATCH;
    if (!s->steps && !s->epochs) {
        s->steps = is_gpt(s) ? GPT_STEPS : 0;
        s->epochs = MLP_EPOCHS;
    }
    if (!s->optimizer_name)
        s->optimizer_name = is_gpt(s) ? "adamw" : "sgd";
}

coset_mean_options settings_mean(const train_settings *s)
{
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    mean.objective = COSET_OBJECTIVE_BITS; /* what was asked for, also where the link is quicker */
    mean.codec = s->codec;
    mean.error_budget = s->budget;
    mean.bits = s->bits;
    mean.seed = (uint64_t)s->seed;
    return mean;
}

static void check(const train_settings *s, const char *command)
{
    coset_mean_options mean = settings_mean(s);
    bool exact = !strcmp(s->codec, "none") || !strcmp(s->codec, "bf16");
    if (exact && (s->budget > 0 || s->bits > 0) && !s->compare)
        tool_bad_input(command, "--%s needs a codec: add --codec lattice", s->budget > 0 ? "budget" : "bits");
    if (s->budget > 0 && s->bits > 0)
        tool_bad_input(command, "--budget and --bits contradict each other: give one");
    if (!exact)
        tool_check_codec(command, &mean, s->launch.ranks);
    if (s->compare && strcmp(s->codec, "none"))
        tool_bad_input(command, "--compare chooses the codecs itself: leave out --codec");
    mean.codec = "eden";
    if (s->compare && s->bits > 0)
        tool_check_codec(command, &mean, s->launch.ranks);
    if (s->compare && s->trace)
        tool_bad_input(command, "--trace is of one run: leave out --compare");
    if (s->local_steps > 1 && s->clip > 0)
        tool_bad_input(command, "--clip is of averaged gradients, which local SGD has not: leave one of them out");
    if (s->plot && (strpbrk(s->plot, "'\n\\") || *s->plot == '|')) /* gnuplot would run what follows a bar */
        tool_bad_input(command,
                       "--plot: a file name without quotes, backslashes, line ends and a bar in front, please");
}

void settings_parse(train_settings *s, int argc, char **argv)
{
    *s = (train_settings){.seed = 1, .model_name = "mlp", .codec = "none", .accumulate = 1, .local_steps = 1};
    const tool_option table[] = {
        TOOL_CHOICE("model", 0, "M", "mlp (digits) or gpt (characters) (mlp)", &s->model_name, model_names),
        TOOL_CHOICE("size", 0, "S", "of the gpt: tiny 0.1, small 1.2, medium 10 million parameters (small)", &s->size,
                    size_names),
        TOOL_INT("ranks", 'n', "N", "ranks to start (2)", &s->launch.ranks, 1, TOOL_MAX_RANKS),
        TOOL_TEXT("transport", 0, "T", "threads, shm, tcp, ... (the library's choice)", &s->launch.transport),
        TOOL_TEXT("algo", 0, "A", "ring, direct, flat, ... (auto)", &s->launch.algorithm),
        TOOL_TEXT("codec", 0, "C", "none, bf16, lattice, eden, ... (none)", &s->codec),
        TOOL_REAL("budget", 0, "E", "error budget of the codec (0.05)", &s->budget, 1e-9, 1e9),
        TOOL_REAL("bits", 0, "B", "bits per coordinate and phase instead", &s->bits, 0.1, 32),
        TOOL_INT("epochs", 0, "K", "passes over the data (mlp: 20)", &s->epochs, 1, 100000),
        TOOL_INT("steps", 0, "K", "steps instead of epochs (gpt: 200)", &s->steps, 1, 100000000),
        TOOL_INT("batch", 0, "B", "samples, all ranks together (mlp: 64, gpt: 16 windows)", &s->batch, 1, 1000000),
        TOOL_INT("accumulate", 0, "K", "batches whose gradients add up in a step (1)", &s->accumulate, 1, 1000000),
        TOOL_INT("local-steps", 0, "K", "average models every K steps instead of gradients", &s->local_steps, 1,
                 1000000),
        TOOL_REAL("bucket-mb", 0, "X", "MiB in a bucket (25; the first and last 1)", &s->bucket_mb, 1e-6, 1e6),
        TOOL_REAL("clip", 0, "X", "largest norm of the gradient (none)", &s->clip, 1e-12, 1e300),
        TOOL_CHOICE("optimizer", 0, "O", "sgd or adamw (mlp: sgd, gpt: adamw)", &s->optimizer_name, optimizer_names),
        TOOL_REAL("rate", 0, "R", "peak learning rate (sgd 0.1; adamw 0.002, gpt 0.0015)", &s->rate, 1e-12, 1e3),
        TOOL_INT("seed", 0, "S", "of weights, split, shuffles and dither (1)", &s->seed, 0, 1000000000),
        TOOL_FLAG("check-weights", 0, "compare a hash of all weights between ranks at every step", &s->check_weights),
        TOOL_FLAG("compare", 0, "exact, lattice, EDEN and bf16 at the same seed", &s->compare),
        TOOL_OUTPUT("plot", 0, "FILE", "loss over steps and over bytes as SVG (needs gnuplot)", &s->plot),
        TOOL_OUTPUT("trace", 0, "FILE", "first 50 steps as a Chrome trace", &s->trace),
        TOOL_OUTPUT("json", 0, "FILE", "write the results as JSON", &s->json),
        TOOL_END,
    };
    tool_options_parse(argc, argv, table, about, NULL);
    tool_options_text(argv[0], table, s->launch.asked, sizeof s->launch.asked);
    choose_model(s, argv[0]);
    check(s, argv[0]);
}

train_plan settings_plan(const train_settings *s)
{
    bool adamw = !strcmp(s->optimizer_name, "adamw");
    float rate = !adamw ? sgd_rate : is_gpt(s) ? adamw_rate_gpt : adamw_rate_mlp;
    return (train_plan){.global_batch = (size_t)s->batch,
                        .steps = (size_t)s->steps,
                        .epochs = (size_t)s->epochs,
                        .accumulate = (size_t)s->accumulate,
                        .local_steps = (size_t)s->local_steps,
                        .optimizer = adamw ? OPTIMIZER_ADAMW : OPTIMIZER_SGD,
                        .rate = s->rate > 0 ? (float)s->rate : rate,
                        .momentum = momentum,
                        .decay = decay,
                        .warm_up = is_gpt(s) ? WARM_UP : 0,
                        .seed = (uint64_t)s->seed};
}
