/* SPDX-License-Identifier: Apache-2.0 */
/* A text as numbers: the bytes that occur in it, numbered in ascending order, are the tokens of a character-level model. */
#ifndef COSET_TOOLS_TRAIN_CORPUS_H
#define COSET_TOOLS_TRAIN_CORPUS_H
#include <stddef.h>

/* Books of the King James Bible (examples/data/README.md has source and licence). */
extern const char tool_corpus_text[];

typedef struct {
    size_t length, vocabulary;
    unsigned char *token;    /* length tokens */
    unsigned char byte[256]; /* of each token */
} corpus;

/* Returns 0, or -1 if memory is short. `text` must not be empty. */
int corpus_create(corpus *c, const char *text);
void corpus_free(corpus *c);
#endif
