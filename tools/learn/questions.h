/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The practice questions: tables of text with holes, and functions that fill the holes.
 *
 * "{name}" in a question, an option or its explanation stands for a value that the question's `fill` computes, from
 * figures.h, plane.h or timeline.h. No number that is an answer is typed in. A question with `fill` has
 * LEARN_VARIANTS versions with other numbers. Option 0 is the right one; they are shuffled when asked.
 */
#ifndef COSET_LEARN_QUESTIONS_H
#define COSET_LEARN_QUESTIONS_H
#include "learn/lessons.h"

enum { LEARN_OPTIONS = 4, LEARN_VARIANTS = 4, LEARN_VALUES = 16 };

/* Named values of one variant: as numbers for the tests, as text for the reader. */
typedef struct {
    const char *name;
    double number;
    char text[48];
} learn_value;
typedef struct {
    learn_value at[LEARN_VALUES];
    int count;
} learn_values;
/* NULL if there is no such name. */
const learn_value *learn_find_value(const learn_values *v, const char *name, size_t length);

typedef struct {
    const char *text;
    const char *why; /* of option 0: why it is right; of the others: which wrong idea it is */
} learn_option;

typedef struct {
    const char *id; /* stable: the key of the remembered mistakes */
    const char *text;
    learn_option option[LEARN_OPTIONS];
    void (*fill)(learn_values *v, int variant); /* NULL: nothing to compute */
} learn_question;

extern const learn_question learn_questions_ring[], learn_questions_cost[], learn_questions_ddp[],
    learn_questions_lattice[]; /* each ends with a NULL id */

/* Questions are numbered from 1 over all topics. */
int learn_question_count(void);
const learn_question *learn_question_at(int number, learn_topic *topic);
/* How many versions it has: 1 or LEARN_VARIANTS. */
int learn_variants(const learn_question *q);

/* A question with its holes filled; every text is owned by it. */
typedef struct {
    char *text;
    char *option[LEARN_OPTIONS];
    char *why[LEARN_OPTIONS];
} learn_posed;
void learn_pose(const learn_question *q, int variant, learn_posed *posed);
void learn_posed_free(learn_posed *posed);

/* For `fill`: each adds one value. */
void learn_put(learn_values *v, const char *name, double number); /* as %g */
void learn_put_as(learn_values *v, const char *name, double number, const char *format)
    __attribute__((format(printf, 4, 0)));
void learn_put_bytes(learn_values *v, const char *name, double bytes);
void learn_put_time(learn_values *v, const char *name, double seconds);
#endif
