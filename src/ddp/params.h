/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a reducer: a copy of what the caller registered, found by id. */
#ifndef CST_DDP_PARAMS_H
#define CST_DDP_PARAMS_H
#include <coset_ddp.h>

typedef struct {
    coset_param *list; /* in the order of registration; names point into `names` */
    size_t count;
    size_t *by_id; /* indices, sorted by id */
    char *names;
} cst_params;

#define CST_NO_PARAM SIZE_MAX

/* ARGUMENT (text in why): none, an id twice, no float dtype, a size that overflows. MEMORY. */
coset_status cst_params_copy(cst_params *p, const coset_param *params, size_t nparams, coset_error *why);
void cst_params_free(cst_params *p);
/* Index of the parameter `id`, or CST_NO_PARAM. */
size_t cst_params_find(const cst_params *p, uint64_t id);
/* "layer1.weight (id 7)". Returns text. */
const char *cst_param_label(const coset_param *param, char *text, size_t size);
#endif
