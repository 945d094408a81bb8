/* SPDX-License-Identifier: Apache-2.0 */
/* `coset train`: one run, or several to compare, and the report. */
#include "command.h"
#include "common/options.h"
#include "train/plot.h"
#include "train/report.h"

#include <string.h>

enum { MOST_RUNS = 4 };

/* What --compare trains; without --bits, EDEN's are those that the lattice run took by its budget. */
static size_t plan_runs(const train_settings *s, train_settings *runs)
{
    static const char *const codecs[MOST_RUNS] = {"none", "lattice", "eden", "bf16"};
    size_t count = s->compare ? MOST_RUNS : 1;
    for (size_t i = 0; i < count; i++) {
        runs[i] = *s;
        if (s->compare)
            runs[i].codec = codecs[i];
    }
    return count;
}

/* A rank sends 2 (n - 1) / n times the bits of a phase; EDEN takes 1 to 8 whole ones. Rounded down: headers come on top. */
static void set_equal_bits(train_settings *eden, const job_result *lattice, int ranks)
{
    double phases = 2.0 * (ranks - 1) / ranks, bits = ranks > 1 ? lattice->bits_per_coord / phases : 1;
    eden->budget = 0;
    eden->bits = bits < 1 ? 1 : bits > 8 ? 8 : (double)(int)bits;
}

static int plot(const train_settings *s, const tool_rank *rank, const job_result *results, size_t count)
{
    plot_curve curves[MOST_RUNS];
    for (size_t i = 0; i < count; i++)
        curves[i] = (plot_curve){results[i].codec, results[i].steps, results[i].loss, results[i].sent};
    return plot_write(rank->command, s->plot, curves, count) ? TOOL_FAILED : TOOL_OK;
}

/* Rank 0 alone. */
static int report(const train_settings *s, const tool_rank *rank, const job_result *results, size_t count)
{
    report_print(tool_human_stream(s->json), s, rank, results, count);
    cJSON *json = s->compare ? cJSON_CreateArray() : report_json(s, rank, &results[0]);
    for (size_t i = 0; i < count && s->compare; i++)
        cJSON_AddItemToArray(json, report_json(s, rank, &results[i]));
    int status = tool_json_write(s->json, json) ? TOOL_FAILED : TOOL_OK;
    return s->plot && plot(s, rank, results, count) ? TOOL_FAILED : status;
}

static int train_rank(tool_rank *rank, void *ctx)
{
    const train_settings *s = ctx;
    train_settings runs[MOST_RUNS];
    job_result results[MOST_RUNS] = {{0}};
    trace t = {0};
    size_t count = plan_runs(s, runs), done = 0;
    int status = TOOL_OK;
    while (done < count && !status) {
        if (s->compare && !(s->bits > 0) && !strcmp(runs[done].codec, "eden"))
            set_equal_bits(&runs[done], &results[done - 1], rank->size);
        status = job_run(&runs[done], rank, s->trace ? &t : NULL, &results[done]);
        done++;
    }
    if (!status && s->trace)
        status = trace_write(&t, rank, s->trace);
    if (!status && rank->rank == 0)
        status = report(s, rank, results, count);
    for (size_t i = 0; i < done; i++) {
        if (!status && !(results[i].identical && job_equal_to_rounding(&results[i])))
            status = TOOL_FAILED; /* after the report that says so */
        job_free(&results[i]);
    }
    trace_free(&t);
    return status;
}

int tool_train(int argc, char **argv)
{
    train_settings s;
    settings_parse(&s, argc, argv);
    if (s.plot && !plot_possible())
        tool_bad_input(argv[0], "--plot needs gnuplot, which is not installed (Debian: gnuplot-nox)");
    return tool_launch_run(argv[0], &s.launch, train_rank, &s);
}
