/* SPDX-License-Identifier: Apache-2.0 */
/* `coset train`: options, one rank's part, the proof that all ranks hold the same weights, and the report. */
#include "command.h"
#include "common/json.h"
#include "common/launch.h"
#include "common/options.h"
#include "common/progress.h"
#include "common/table.h"
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * How far N ranks and one rank may drift apart through the order of additions alone, relative to the largest weight.
 * Measured: below 2e-6 after 20 epochs on 2 to 8 ranks; a single wrong gradient moves weights by more than 1e-3.
 */
static const double rounding_bound = 1e-4;
static const float default_rate = 0.1f, default_momentum = 0.9f;
enum { DEFAULT_EPOCHS = 20, DEFAULT_BATCH = 64 };

typedef struct {
    tool_launch launch;
    const model_ops *model;
    int epochs, steps, batch, seed;
    const char *model_name, *json;
} options;

/* What one rank carries through its run. */
typedef struct {
    const options *o;
    tool_rank *rank;
    tool_progress bar;
    double sent_bytes; /* on the wire, by gradients alone */
} run;

typedef struct {
    train_figures figures;
    model_score score;
    uint64_t hash;
    bool identical;
    double bytes_per_step, parameters;
    double difference, largest; /* against the run of one rank */
} report;

static const char about[] =
    "Trains a classifier of handwritten digits (the UCI data travel inside the command) on N ranks with disjoint shards;"
    " gradients are averaged by coset_allreduce. Then rank 0 trains alone on the same global batches and compares."
    "\vThe exit status is 1 if the ranks' weights differ in any bit, or differ from the single rank's by more than rounding.";

static const char *const model_names[] = {"mlp", NULL};
static const model_ops *const models[] = {&mlp_ops};

static void parse(options *o, int argc, char **argv)
{
    *o = (options){.epochs = DEFAULT_EPOCHS, .batch = DEFAULT_BATCH, .seed = 1, .model_name = "mlp"};
    const tool_option table[] = {
        TOOL_CHOICE("model", 0, "M", "mlp: a perceptron with two hidden layers", &o->model_name, model_names),
        TOOL_INT("ranks", 'n', "N", "ranks to start (2)", &o->launch.ranks, 1, TOOL_MAX_RANKS),
        TOOL_TEXT("transport", 0, "T", "threads, shm, tcp, ... (the library's choice)", &o->launch.transport),
        TOOL_TEXT("algo", 0, "A", "ring, direct, flat, ... (auto)", &o->launch.algorithm),
        TOOL_INT("epochs", 0, "K", "passes over the data (20)", &o->epochs, 1, 100000),
        TOOL_INT("steps", 0, "K", "steps instead of epochs", &o->steps, 1, 100000000),
        TOOL_INT("batch", 0, "B", "samples per step, all ranks together (64)", &o->batch, 1, 1000000),
        TOOL_INT("seed", 0, "S", "of weights, split and shuffles (1)", &o->seed, 0, 1000000000),
        TOOL_TEXT("json", 0, "FILE", "write the results as JSON", &o->json),
        TOOL_END,
    };
    tool_options_parse(argc, argv, table, about, NULL);
    for (int i = 0; model_names[i]; i++)
        if (!strcmp(model_names[i], o->model_name))
            o->model = models[i];
}

static int sync_gradients(void *ctx, float *grads, size_t count)
{
    run *r = ctx;
    coset_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    coset_comm_stats(r->rank->comm, &before);
    if (coset_allreduce(grads, grads, count, COSET_F32, COSET_AVG, r->rank->comm))
        return tool_rank_failed(r->rank, "averaging gradients");
    coset_comm_stats(r->rank->comm, &after);
    r->sent_bytes += (double)(after.wire_sent_bytes - before.wire_sent_bytes);
    return TOOL_OK;
}

static int mean_of_ranks(void *ctx, double *value)
{
    const run *r = ctx;
    int status = tool_rank_sum(r->rank, value, 1);
    *value /= r->rank->size;
    return status;
}

static void show_progress(void *ctx, size_t step, size_t steps, double loss)
{
    run *r = ctx;
    char note[32];
    snprintf(note, sizeof note, "loss %.4f", loss);
    tool_progress_update(&r->bar, (double)step, (double)steps, note);
}

static train_plan plan_of(const options *o)
{
    return (train_plan){.global_batch = (size_t)o->batch,
                        .steps = (size_t)o->steps,
                        .epochs = (size_t)o->epochs,
                        .rate = default_rate,
                        .momentum = default_momentum,
                        .seed = (uint64_t)o->seed};
}

static int explain(const run *r, int status)
{
    if (status == -1)
        fprintf(stderr, "%s: rank %d: out of memory\n", r->rank->command, r->rank->rank);
    else if (status == -2 && r->rank->rank == 0)
        fprintf(stderr, "%s: --batch=%d does not fit %d ranks: each needs a sample a step, and a batch an epoch\n",
                r->rank->command, r->o->batch, r->rank->size);
    return status == -2 ? TOOL_USAGE : status < 0 ? TOOL_FAILED : status;
}

/* Gathers every rank's hash; the same answer on all ranks. */
static int compare_weights(const run *r, const learner *l, report *out)
{
    out->hash = learner_hash(l);
    uint64_t *all = calloc((size_t)r->rank->size, sizeof *all);
    if (!all)
        return explain(r, -1);
    int status = TOOL_OK;
    if (coset_allgather(&out->hash, all, 1, COSET_U64, r->rank->comm))
        status = tool_rank_failed(r->rank, "comparing weights");
    out->identical = true;
    for (int i = 0; i < r->rank->size && !status; i++)
        out->identical = out->identical && all[i] == all[0];
    free(all);
    return status;
}

/* One rank alone on the same global batches; leaves the largest difference of the weights in *out. */
static int compare_with_one_rank(run *r, model *m, const learner *trained, report *out)
{
    learner alone;
    train_figures figures;
    const train_plan plan = plan_of(r->o);
    const train_hooks hooks = {.progress = show_progress, .ctx = r};
    if (learner_create(&alone, m, plan.seed, NULL))
        return explain(r, -1);
    r->bar = tool_progress_start("one rank on the same batches");
    int status = train_run(&alone, &plan, 0, r->rank->size - 1, r->rank->size, &hooks, &figures);
    tool_progress_end(&r->bar);
    for (size_t i = 0; i < alone.total; i++) {
        out->difference = fmax(out->difference, fabs((double)alone.weights[i] - (double)trained->weights[i]));
        out->largest = fmax(out->largest, fabs((double)alone.weights[i]));
    }
    learner_free(&alone);
    return status ? explain(r, status) : TOOL_OK;
}

static int train_ranks(run *r, learner *l, report *out)
{
    const train_plan plan = plan_of(r->o);
    const train_hooks hooks = {sync_gradients, mean_of_ranks, show_progress, r};
    r->bar = tool_progress_start("training");
    r->bar.shown = r->bar.shown && r->rank->rank == 0;
    int status = train_run(l, &plan, r->rank->rank, r->rank->rank, r->rank->size, &hooks, &out->figures);
    tool_progress_end(&r->bar);
    if (status)
        return explain(r, status);
    double figures[4] = {out->figures.step_s, out->figures.sync_s, out->figures.sync_share,
                         r->sent_bytes / (double)out->figures.steps};
    if (tool_rank_max(r->rank, figures, 4))
        return TOOL_FAILED;
    out->figures.step_s = figures[0];
    out->figures.sync_s = figures[1];
    out->figures.sync_share = figures[2];
    out->bytes_per_step = figures[3];
    return compare_weights(r, l, out);
}

static const tool_column columns[] = {
    {"model", -6},   {"ranks", 5}, {"transport", -9}, {"codec", -6}, {"parameters", 10}, {"steps", 6},
    {"accuracy", 8}, {"loss", 7},  {"step(ms)", 8},   {"comm", 6},   {"bytes/step", 10}, {NULL, 0},
};

static bool equal_to_rounding(const report *f)
{
    return f->difference <= rounding_bound * f->largest;
}

static void print_report(const run *r, const report *f)
{
    FILE *out = tool_human_stream(r->o->json);
    tool_table table = tool_table_start(out, columns);
    tool_cell(&table, "%s", r->o->model_name);
    tool_cell(&table, "%d", r->rank->size);
    tool_cell(&table, "%s", coset_comm_transport(r->rank->comm));
    tool_cell(&table, "none");
    tool_cell(&table, "%.0f", f->parameters);
    tool_cell(&table, "%zu", f->figures.steps);
    tool_cell(&table, "%.2f %%", 100 * f->score.accuracy);
    tool_cell(&table, "%.4f", f->score.loss);
    tool_cell_number(&table, 1e3 * f->figures.step_s, 3);
    tool_cell(&table, "%.1f %%", 100 * f->figures.sync_share);
    tool_cell(&table, "%.0f", f->bytes_per_step);
    fprintf(out, "accuracy and loss on the test images; comm: share of the step time; bytes sent by a rank\n");
    fprintf(out, "weights: %s on all %d ranks, hash %016" PRIx64 "\n",
            f->identical ? "bit-identical" : "DIFFERENT BITS", r->rank->size, f->hash);
    fprintf(out, "against one rank on the same global batches: largest difference %.2g, largest weight %.3g: %s\n",
            f->difference, f->largest, equal_to_rounding(f) ? "equal to rounding" : "NOT EQUAL");
}

static cJSON *report_json(const run *r, const report *f)
{
    cJSON *j = cJSON_CreateObject();
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, f->hash);
    cJSON_AddStringToObject(j, "model", r->o->model_name);
    cJSON_AddNumberToObject(j, "ranks", r->rank->size);
    cJSON_AddStringToObject(j, "transport", coset_comm_transport(r->rank->comm));
    cJSON_AddStringToObject(j, "codec", "none");
    cJSON_AddNumberToObject(j, "steps", (double)f->figures.steps);
    cJSON_AddNumberToObject(j, "final_loss", f->score.loss);
    cJSON_AddNumberToObject(j, "final_accuracy", f->score.accuracy);
    cJSON_AddNumberToObject(j, "train_loss", f->figures.last_loss);
    cJSON_AddNumberToObject(j, "step_ms", 1e3 * f->figures.step_s);
    cJSON_AddNumberToObject(j, "exposed_ms", 1e3 * f->figures.sync_s);
    cJSON_AddNumberToObject(j, "bytes_per_step", f->bytes_per_step);
    cJSON_AddNumberToObject(j, "bits_per_coord", 8 * f->bytes_per_step / f->parameters);
    cJSON_AddBoolToObject(j, "weights_identical", f->identical);
    cJSON_AddStringToObject(j, "weights_hash", hash);
    cJSON_AddNumberToObject(j, "one_rank_difference", f->difference);
    return j;
}

/* Rank 0 alone: scores, replays, reports. */
static int finish(run *r, model *m, const learner *l, report *f)
{
    f->score = m->ops->evaluate(m, l->weight);
    f->parameters = (double)l->total;
    if (compare_with_one_rank(r, m, l, f))
        return TOOL_FAILED;
    print_report(r, f);
    if (tool_json_write(r->o->json, report_json(r, f)))
        return TOOL_FAILED;
    return equal_to_rounding(f) ? TOOL_OK : TOOL_FAILED;
}

/* Before anything is shared: every rank comes to the same answer by itself. */
static int check_batch(const run *r, const model *m)
{
    batches b;
    int status = batches_create(&b, 0, r->rank->rank, r->rank->size, m->train_samples, (size_t)r->o->batch);
    if (status)
        return explain(r, status);
    batches_free(&b);
    return TOOL_OK;
}

/* With gradients in memory that all ranks of the host reach. */
static int train_model(run *r, model *m)
{
    report f = {0};
    learner l;
    float *grads;
    if (coset_alloc(r->rank->comm, model_total(m) * sizeof *grads, (void **)&grads))
        return tool_rank_failed(r->rank, "coset_alloc");
    if (learner_create(&l, m, (uint64_t)r->o->seed, grads))
        return explain(r, -1);
    int status = train_ranks(r, &l, &f);
    if (!status && r->rank->rank == 0)
        status = finish(r, m, &l, &f);
    if (!status && !f.identical)
        status = TOOL_FAILED;
    learner_free(&l);
    return status;
}

static int train_rank(tool_rank *rank, void *ctx)
{
    run r = {.o = ctx, .rank = rank};
    model *m = r.o->model->create((uint64_t)r.o->seed);
    if (!m)
        return explain(&r, -1);
    int status = check_batch(&r, m);
    if (!status)
        status = train_model(&r, m);
    m->ops->destroy(m);
    return status;
}

int tool_train(int argc, char **argv)
{
    options o;
    parse(&o, argc, argv);
    return tool_launch_run(argv[0], &o.launch, train_rank, &o);
}
