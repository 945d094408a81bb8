/* SPDX-License-Identifier: Apache-2.0 */
#include "info/tuning.h"

#include "command.h"
#include "common/json.h"
#include "common/options.h"
#include "common/table.h"

#include <coset.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, MOST_RANKS = 1024 };

typedef struct {
    size_t value[MOST];
    int count;
} list;

static list parse_list(const char *command, const char *text)
{
    list l = {.count = 0};
    char word[32];
    for (const char *p = text; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (n >= sizeof word || l.count == MOST)
            tool_bad_input(command, "'%s' is too long a list", text);
        memcpy(word, p, n);
        word[n] = 0;
        if (tool_parse_size(word, &l.value[l.count++]))
            tool_bad_input(command, "'%s' in '%s': expected numbers or sizes with commas between", word, text);
        p += n;
    }
    return l;
}

/* Where the ranks are. `local`: on each host; 0: all on one. */
static const struct {
    const char *title, *transport;
    int local;
} places[] = {
    {"one host, shared memory", "shm", 0},
    {"one host, messages", "tcp", 0},
    {"a host for each rank", "tcp", 1},
    {"two ranks on each host", "tcp", 2},
};
enum { PLACES = sizeof places / sizeof *places };

static const tool_column columns[] = {{"ranks", 6},   {"size", 9},  {"chosen", -8}, {"flat", 10},
                                      {"direct", 10}, {"ring", 10}, {"rd", 10},     {"rhd", 10},
                                      {"tree", 10},   {"hier", 10}, {NULL, 0}};
enum { FIRST_ALGORITHM = 3 };

static double time_of(const coset_tuning *t, const char *algorithm)
{
    for (int i = 0; i < t->rows; i++)
        if (!strcmp(t->row[i].algorithm, algorithm))
            return t->row[i].us;
    return NAN;
}

static void print_row(tool_table *table, size_t ranks, size_t bytes, const coset_tuning *t)
{
    char text[32];
    tool_cell(table, "%zu", ranks);
    tool_cell(table, "%s", tool_size_text(text, (double)bytes));
    tool_cell(table, "%s", t->chosen);
    for (int i = FIRST_ALGORITHM; columns[i].title; i++)
        tool_cell_number(table, time_of(t, columns[i].title), 3);
}

static cJSON *json_row(const char *title, size_t ranks, int hosts, size_t bytes, const coset_tuning *t)
{
    cJSON *one = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(one, "algorithms");
    cJSON_AddStringToObject(one, "where", title);
    cJSON_AddStringToObject(one, "place", t->place);
    cJSON_AddNumberToObject(one, "ranks", (double)ranks);
    cJSON_AddNumberToObject(one, "hosts", hosts);
    cJSON_AddNumberToObject(one, "size_bytes", (double)bytes);
    cJSON_AddStringToObject(one, "chosen", t->chosen);
    for (int i = 0; i < t->rows; i++) {
        const coset_tuning_row *r = &t->row[i];
        cJSON *algorithm = cJSON_CreateObject();
        cJSON_AddStringToObject(algorithm, "algorithm", r->algorithm);
        cJSON_AddNumberToObject(algorithm, "rounds", r->rounds);
        cJSON_AddNumberToObject(algorithm, "messages", r->messages);
        cJSON_AddNumberToObject(algorithm, "sent_bytes", r->sent_bytes);
        cJSON_AddNumberToObject(algorithm, "crowded_bytes", r->crowded_bytes);
        cJSON_AddNumberToObject(algorithm, "added_bytes", r->added_bytes);
        cJSON_AddNumberToObject(algorithm, "us", r->us);
        cJSON_AddItemToArray(all, algorithm);
    }
    return one;
}

static void one_place(int place, const list *ranks, const list *sizes, FILE *out, cJSON *all)
{
    tool_table table = {0};
    for (int i = 0; i < ranks->count; i++) {
        int n = (int)ranks->value[i], local = places[place].local;
        int hosts = local ? n / local : 1;
        if (local && (n % local || hosts < 2))
            continue;
        for (int k = 0; k < sizes->count; k++) {
            coset_tuning t = {.struct_size = sizeof t};
            if (coset_tuning_of(places[place].transport, n, hosts, sizes->value[k], &t))
                continue;
            if (out && !table.out) {
                fprintf(out, "\n%s (prices of: %s)\n", places[place].title, t.place);
                table = tool_table_start(out, columns);
            }
            if (out)
                print_row(&table, (size_t)n, sizes->value[k], &t);
            cJSON_AddItemToArray(all, json_row(places[place].title, (size_t)n, hosts, sizes->value[k], &t));
        }
    }
}

int info_tuning(const char *command, const char *ranks_text, const char *sizes_text, const char *json)
{
    list ranks = parse_list(command, ranks_text ? ranks_text : "2,4,8,16,64");
    list sizes = parse_list(command, sizes_text ? sizes_text : "64,4K,64K,1M,16M,100M");
    for (int i = 0; i < ranks.count; i++)
        if (ranks.value[i] < 2 || ranks.value[i] > MOST_RANKS)
            tool_bad_input(command, "%zu ranks: expected 2 to %d", ranks.value[i], MOST_RANKS);
    FILE *human = tool_human_stream(json), *out = human == stdout ? human : NULL;
    cJSON *all = cJSON_CreateArray();
    if (out)
        fprintf(out, "All-reduce of f32: what auto chooses, and the predicted time of each algorithm in us\n");
    for (int p = 0; p < PLACES; p++)
        one_place(p, &ranks, &sizes, out, all);
    return tool_json_write(json, all) ? TOOL_FAILED : TOOL_OK;
}
