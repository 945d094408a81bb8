/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long loops over blocks let somebody else in now and then: carry.c moves the transfers of other segments then. A thread of
 * its own would not do: where every core computes, kernels without preemption let it wait for milliseconds.
 */
#ifndef CST_MEAN_PACE_H
#define CST_MEAN_PACE_H

typedef struct {
    void (*look)(void *arg); /* NULL: nobody waits */
    void *arg;
    unsigned blocks; /* passed so far */
} cst_pace;

/* Blocks from one look to the next: a tenth of a millisecond of work, a hundred times the cost of a look. */
enum { CST_PACE_BLOCKS = 16 };

/* Called for every block of every pass. */
static inline void cst_pace_block(cst_pace *pace)
{
    if (pace->look && ++pace->blocks % CST_PACE_BLOCKS == 0)
        pace->look(pace->arg);
}
#endif
