/* SPDX-License-Identifier: Apache-2.0 */
/* Asking questions on a terminal or over a pipe. */
#ifndef COSET_LEARN_QUIZ_H
#define COSET_LEARN_QUIZ_H
#include "learn/questions.h"
#include "learn/state.h"
#include "learn/text.h"

#include <stdint.h>

typedef struct {
    learn_style style;
    uint64_t seed;   /* the same seed asks the same questions with the same numbers in the same order */
    unsigned topics; /* bit mask of learn_topic */
    int number;      /* only this question; 0: all of the topics */
    int limit;       /* at most so many questions; 0: no limit */
    bool answers;    /* print the answers too, ask nothing, remember nothing */
    bool echo;       /* the input is no terminal, on which the reader's own Enter would end the prompt's line */
    FILE *in, *out;
} learn_quiz;

/* Asks, with mistakes first, then questions not seen yet, then the others; until the limit, "q" or the end of the input. */
void learn_ask(const learn_quiz *quiz, learn_state *state);
/* All questions with their numbers and scores. */
void learn_list(const learn_quiz *quiz, const learn_state *state);

/* A generator for shuffling (splitmix64), and places 0..n-1 in random order. */
uint64_t learn_random(uint64_t *seed);
void learn_shuffle(uint64_t *seed, int *places, int n);
#endif
