/* SPDX-License-Identifier: Apache-2.0 */
/* Does compression pay on this link? Measured when a reducer is created (the planner's objective "time"). */
#ifndef CST_DDP_LINK_H
#define CST_DDP_LINK_H
#include <coset.h>
#include <coset_mean.h>

/* Collective. Fills in what the caller of coset_ddp_create left to the reducer: the objective, and the speed of the link
 * by timing exact all-reduces, a few megabytes long where the link is quick. The same values on all ranks. *pays = 0: the
 * exact all-reduce is quicker than the codecs, so nothing should be compressed; only where the planner has the choice (the
 * sharded star with lattice codes). Any status of an all-reduce; MEMORY. */
coset_status cst_link_settle(coset_comm *c, coset_mean_options *options, int *pays);
#endif
