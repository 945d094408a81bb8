/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time, and deadlines in it. */
#ifndef CST_BASE_CLOCK_H
#define CST_BASE_CLOCK_H
#include <stdint.h>

uint64_t cst_now_ns(void);

/* A point in time; CST_NEVER is no limit. */
typedef uint64_t cst_deadline;
#define CST_NEVER UINT64_MAX
/* timeout_ms < 0: never. */
cst_deadline cst_deadline_in(int timeout_ms);
/* Milliseconds left, rounded up, never negative, at most `cap`: fit for poll(). */
int cst_deadline_left(cst_deadline deadline, int cap);
static inline int cst_deadline_passed(cst_deadline deadline)
{
    return deadline != CST_NEVER && cst_now_ns() >= deadline;
}
#endif
