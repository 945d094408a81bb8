/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/step.h"

#include <stdlib.h>
#include <string.h>

coset_status cst_step_init(cst_step_state *s, size_t nparams)
{
    *s = (cst_step_state){.nparams = nparams,
                          .ready = calloc(nparams, 1),
                          .order = calloc(nparams, sizeof *s->order),
                          .missing = calloc(nparams, sizeof *s->missing)};
    if (s->ready && s->order && s->missing)
        return COSET_OK;
    cst_step_free(s);
    return COSET_ERR_MEMORY;
}

void cst_step_free(cst_step_state *s)
{
    free(s->ready);
    free(s->order);
    free(s->missing);
    *s = (cst_step_state){0};
}

void cst_step_begin(cst_step_state *s, const cst_buckets *b)
{
    memset(s->ready, 0, s->nparams);
    s->nready = 0;
    s->complete = 0;
    s->nbuckets = b->nbuckets;
    for (size_t i = 0; i < b->nbuckets; i++)
        s->missing[i] = b->bucket[i].count;
}

int cst_step_ready(cst_step_state *s, const cst_buckets *b, size_t param)
{
    if (s->ready[param])
        return 0;
    s->ready[param] = 1;
    s->order[s->nready++] = param;
    s->missing[b->bucket_of[param]]--;
    while (s->complete < s->nbuckets && !s->missing[s->complete])
        s->complete++;
    return 1;
}
