/* SPDX-License-Identifier: Apache-2.0 */
/* An all-gather between threads of one process, for tests. */
#ifndef CST_TESTS_THREAD_OOB_H
#define CST_TESTS_THREAD_OOB_H
#include <coset.h>

typedef struct thread_oob thread_oob;
thread_oob *thread_oob_new(int size);
void thread_oob_free(thread_oob *o);
/* Rank's end; valid as long as o. */
coset_oob thread_oob_end(thread_oob *o, int rank);
#endif
