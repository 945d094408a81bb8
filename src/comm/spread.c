/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/spread.h"

#include <sched.h>

void cst_spread(int local_rank, int ranks)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < ranks)
        return;
    int cpu = -1;
    for (int skip = local_rank; skip >= 0; skip--)
        do
            cpu++;
        while (!CPU_ISSET(cpu, &allowed));
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (!sched_setaffinity(0, sizeof one, &one))
        sched_setaffinity(0, sizeof allowed, &allowed);
}
