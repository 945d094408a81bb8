/* SPDX-License-Identifier: Apache-2.0 */
#include "train/corpus.h"

#include <stdlib.h>
#include <string.h>

int corpus_create(corpus *c, const char *text)
{
    unsigned char seen[256] = {0}, number[256];
    *c = (corpus){.length = strlen(text)};
    c->token = malloc(c->length ? c->length : 1);
    if (!c->token)
        return -1;
    for (size_t i = 0; i < c->length; i++)
        seen[(unsigned char)text[i]] = 1;
    for (int b = 0; b < 256; b++)
        if (seen[b]) {
            number[b] = (unsigned char)c->vocabulary;
            c->byte[c->vocabulary++] = (unsigned char)b;
        }
    for (size_t i = 0; i < c->length; i++)
        c->token[i] = number[(unsigned char)text[i]];
    return 0;
}

void corpus_free(corpus *c)
{
    free(c->token);
    c->token = NULL;
}
