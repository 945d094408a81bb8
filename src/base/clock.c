/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

uint64_t cst_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

cst_deadline cst_deadline_in(int timeout_ms)
{
    return timeout_ms < 0 ? CST_NEVER : cst_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

int cst_deadline_left(cst_deadline deadline, int cap)
{
    if (deadline == CST_NEVER)
        return cap;
    uint64_t now = cst_now_ns();
    if (now >= deadline)
        return 0;
    uint64_t ms = (deadline - now + 999999) / 1000000;
    return ms > (uint64_t)cap ? cap : (int)ms;
}
