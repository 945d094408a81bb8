/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/questions.h"

#include "learn/figures.h"

#include <stdlib.h>
#include <string.h>

static const learn_question *const tables[LEARN_TOPICS] = {
    [LEARN_TOPIC_RING] = learn_questions_ring,
    [LEARN_TOPIC_COST] = learn_questions_cost,
    [LEARN_TOPIC_DDP] = learn_questions_ddp,
    [LEARN_TOPIC_LATTICE] = learn_questions_lattice,
};

int learn_question_count(void)
{
    int count = 0;
    for (int t = 0; t < LEARN_TOPICS; t++)
        for (const learn_question *q = tables[t]; q->id; q++)
            count++;
    return count;
}

const learn_question *learn_question_at(int number, learn_topic *topic)
{
    for (int t = 0; t < LEARN_TOPICS; t++)
        for (const learn_question *q = tables[t]; q->id; q++)
            if (--number == 0) {
                *topic = (learn_topic)t;
                return q;
            }
    return NULL;
}

int learn_variants(const learn_question *q)
{
    return q->fill ? LEARN_VARIANTS : 1;
}

const learn_value *learn_find_value(const learn_values *v, const char *name, size_t length)
{
    for (int i = 0; i < v->count; i++)
        if (strlen(v->at[i].name) == length && !memcmp(v->at[i].name, name, length))
            return &v->at[i];
    return NULL;
}

static learn_value *next_value(learn_values *v, const char *name, double number)
{
    if (v->count == LEARN_VALUES)
        abort(); /* a table too small for its own question: seen by the first test that poses it */
    learn_value *value = &v->at[v->count++];
    *value = (learn_value){.name = name, .number = number};
    return value;
}

void learn_put_as(learn_values *v, const char *name, double number, const char *format)
{
    learn_value *value = next_value(v, name, number);
    snprintf(value->text, sizeof value->text, format, number);
}

void learn_put(learn_values *v, const char *name, double number)
{
    learn_value *value = next_value(v, name, number);
    snprintf(value->text, sizeof value->text, "%.6g", number);
}

void learn_put_bytes(learn_values *v, const char *name, double bytes)
{
    learn_bytes_text text;
    learn_value *value = next_value(v, name, bytes);
    snprintf(value->text, sizeof value->text, "%s", learn_bytes(text, bytes));
}

void learn_put_time(learn_values *v, const char *name, double seconds)
{
    learn_bytes_text text;
    learn_value *value = next_value(v, name, seconds);
    snprintf(value->text, sizeof value->text, "%s", learn_seconds(text, seconds));
}

/* Copies `text` with every {name} replaced. */
static char *expand(const char *text, const learn_values *v)
{
    learn_draft d;
    learn_draft_open(&d);
    while (*text) {
        size_t length = strcspn(text, "{");
        fprintf(d.out, "%.*s", (int)length, text);
        text += length;
        if (!*text)
            break;
        length = strcspn(++text, "}");
        const learn_value *value = learn_find_value(v, text, length);
        fputs(value ? value->text : "{?}", d.out);
        text += length + 1;
    }
    return learn_draft_close(&d);
}

void learn_pose(const learn_question *q, int variant, learn_posed *posed)
{
    learn_values v = {.count = 0};
    if (q->fill)
        q->fill(&v, variant);
    posed->text = expand(q->text, &v);
    for (int i = 0; i < LEARN_OPTIONS; i++) {
        posed->option[i] = expand(q->option[i].text, &v);
        posed->why[i] = expand(q->option[i].why, &v);
    }
}

void learn_posed_free(learn_posed *posed)
{
    free(posed->text);
    for (int i = 0; i < LEARN_OPTIONS; i++) {
        free(posed->option[i]);
        free(posed->why[i]);
    }
}
