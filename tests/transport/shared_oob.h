/* SPDX-License-Identifier: Apache-2.0 */
/* An all-gather through one piece of shared memory: between threads, or between a process and its children. */
#ifndef CST_TESTS_SHARED_OOB_H
#define CST_TESTS_SHARED_OOB_H
#include <coset.h>

typedef struct shared_oob shared_oob;
enum { SHARED_OOB_RANKS = 64, SHARED_OOB_BYTES = 4096 }; /* ranks at most; bytes per rank and call at most */

/* In memory shared with later children of this process. */
shared_oob *shared_oob_new(int size);
void shared_oob_free(shared_oob *o);
/* The end of `rank`; valid as long as o. */
coset_oob shared_oob_end(shared_oob *o, int rank);
#endif
