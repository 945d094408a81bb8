/* SPDX-License-Identifier: Apache-2.0 */
/* The lessons: each function adds one to the book. */
#ifndef COSET_LEARN_LESSONS_H
#define COSET_LEARN_LESSONS_H
#include "learn/book.h"

typedef enum { LEARN_TOPIC_RING, LEARN_TOPIC_COST, LEARN_TOPIC_DDP, LEARN_TOPIC_LATTICE, LEARN_TOPICS } learn_topic;

/* What the reader may choose. */
typedef struct {
    int ranks;    /* LEARN_MIN_RANKS .. LEARN_MAX_RANKS */
    size_t bytes; /* S, at least one element per rank */
} learn_choice;

typedef struct {
    const char *word; /* on the command line */
    const char *title;
    void (*build)(learn_book *b, const learn_choice *choice);
} learn_lesson_entry;
extern const learn_lesson_entry learn_lessons[LEARN_TOPICS];

void learn_lesson_ring(learn_book *b, const learn_choice *choice);
void learn_lesson_cost(learn_book *b, const learn_choice *choice);
void learn_lesson_ddp(learn_book *b, const learn_choice *choice);
void learn_lesson_lattice(learn_book *b, const learn_choice *choice);
#endif
