/* SPDX-License-Identifier: Apache-2.0 */
/* The running of a schedule: state that exists between start and end. Private to schedule.c and run.c. */
#ifndef CST_COLL_RUN_H
#define CST_COLL_RUN_H
#include "coll/schedule.h"

/* Cancels and frees; NULL run is a no-op. */
void cst_run_free(cst_schedule *s);
#endif
