/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report.h"

#include "common/table.h"

#include <inttypes.h>
#include <math.h>

static const tool_column columns[] = {
    {"model", -5},      {"ranks", 5},       {"transport", -9}, {"codec", -8},   {"parameters", 10},
    {"steps", 5},       {"accuracy", 8},    {"loss", 7},       {"step(ms)", 8}, {"exposed(ms)", 11},
    {"bytes/step", 10}, {"bits/coord", 10}, {"repaired", 8},   {NULL, 0},
};

static void print_row(tool_table *table, const train_settings *s, const tool_rank *rank, const job_result *r)
{
    tool_cell(table, "%s", s->model_name);
    tool_cell(table, "%d", rank->size);
    tool_cell(table, "%s", coset_comm_transport(rank->comm));
    tool_cell(table, "%s", r->codec);
    tool_cell(table, "%.0f", r->parameters);
    tool_cell(table, "%zu", r->steps);
    tool_cell(table, "%.2f %%", 100 * r->score.accuracy);
    tool_cell(table, "%.4f", isnan(r->score.loss) ? (double)NAN : r->score.loss); /* never "-nan" */
    tool_cell_number(table, 1e3 * r->step_s, 3);
    tool_cell_number(table, 1e3 * r->exposed_s, 3);
    tool_cell(table, "%.0f", r->bytes_per_step);
    tool_cell(table, "%.2f", r->bits_per_coord);
    tool_cell(table, "%.0f", r->repaired);
}

static void print_weights(FILE *out, const tool_rank *rank, const job_result *r, bool several)
{
    fprintf(out, "weights%s%s: %s on all %d ranks, hash %016" PRIx64 "\n", several ? " of " : "",
            several ? r->codec : "", r->identical ? "bit-identical" : "DIFFERENT BITS", rank->size, r->hash);
    if (r->skipped)
        fprintf(out, "%zu steps were left out since gradients were not finite\n", r->skipped);
    if (r->verified)
        fprintf(out, "against one rank on the same global batches: largest difference %.2g, largest weight %.3g: %s\n",
                r->difference, r->largest, job_equal_to_rounding(r) ? "equal to rounding" : "NOT EQUAL");
}

void report_print(FILE *out, const train_settings *s, const tool_rank *rank, const job_result *runs, size_t count)
{
    tool_table table = tool_table_start(out, columns);
    for (size_t i = 0; i < count; i++)
        print_row(&table, s, rank, &runs[i]);
    fprintf(out,
            "accuracy and loss on the test %s; exposed: communication that nothing hid; bytes sent by a rank\n"
            "bits/coord: sent by a rank, both phases; plain f32 is 64 (N-1)/N\n",
            s->model->unit);
    for (size_t i = 0; i < count; i++)
        print_weights(out, rank, &runs[i], count > 1);
}

cJSON *report_json(const train_settings *s, const tool_rank *rank, const job_result *r)
{
    cJSON *j = cJSON_CreateObject();
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, r->hash);
    cJSON_AddStringToObject(j, "model", s->model_name);
    cJSON_AddNumberToObject(j, "ranks", rank->size);
    cJSON_AddStringToObject(j, "transport", coset_comm_transport(rank->comm));
    cJSON_AddStringToObject(j, "codec", r->codec);
    cJSON_AddNumberToObject(j, "parameters", r->parameters);
    cJSON_AddNumberToObject(j, "steps", (double)r->steps);
    cJSON_AddNumberToObject(j, "skipped_steps", (double)r->skipped);
    cJSON_AddNumberToObject(j, "final_loss", r->score.loss);
    cJSON_AddNumberToObject(j, "final_accuracy", r->score.accuracy);
    cJSON_AddNumberToObject(j, "train_loss", r->train_loss);
    cJSON_AddNumberToObject(j, "step_ms", 1e3 * r->step_s);
    cJSON_AddNumberToObject(j, "exposed_ms", 1e3 * r->exposed_s);
    cJSON_AddNumberToObject(j, "bytes_per_step", r->bytes_per_step);
    cJSON_AddNumberToObject(j, "bits_per_coord", r->bits_per_coord);
    cJSON_AddNumberToObject(j, "repaired_units", r->repaired);
    cJSON_AddNumberToObject(j, "units_per_s", r->unit_rate);
    cJSON_AddBoolToObject(j, "weights_identical", r->identical);
    cJSON_AddStringToObject(j, "weights_hash", hash);
    if (r->verified)
        cJSON_AddNumberToObject(j, "one_rank_difference", r->difference);
    return j;
}
