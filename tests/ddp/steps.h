/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a reducer among ranks, with gradients whose means are known. */
#ifndef CST_TESTS_DDP_STEPS_H
#define CST_TESTS_DDP_STEPS_H
#include "comm/group.h"

#include <coset_ddp.h>
#include <stdint.h>

enum { PARAMS = 12 };

/* PARAMS parameters of all types and sizes. */
void make_params(coset_param *p);
/* A reducer of them; NULL after a report. */
coset_ddp *make_reducer(coset_comm *c, coset_param *p, const coset_ddp_options *o);
/* What `rank` brings in in `step`. */
void write_grad(coset_ddp *d, const coset_param *p, size_t param, int rank, int step);
/* Means of small integers over `size` ranks (1, 2 or 4: exact), `absent` ranks (a bit mask) counting as zero. */
int check_grad(coset_comm *c, coset_ddp *d, const coset_param *p, size_t param, int step, unsigned absent);
/* All of this rank's gradients, in the order of registration. */
int ready_all(coset_comm *c, coset_ddp *d, const coset_param *p, int step);
/* A whole step, ready in another order on every rank, from two threads; step 0 moves the gradients. */
int one_step(coset_comm *c, coset_ddp *d, const coset_param *p, int step);
uint64_t hash_of(uint64_t h, const void *data, size_t n);
#endif
