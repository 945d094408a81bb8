/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher's children often start on one core, and where ranks spin for each other the scheduler may leave two of them
 * there for a tenth of a second: a 4-byte all-reduce then takes 50 us instead of 0.2. */
#ifndef CST_COMM_SPREAD_H
#define CST_COMM_SPREAD_H

/* Moves the calling thread to the core with its own number among those it may use, then lets it go again: a place to
 * start from, no pinning. Nothing happens if there are fewer cores than `ranks`. */
void cst_spread(int local_rank, int ranks);
#endif
