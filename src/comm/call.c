/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/call.h"

const char *cst_kind_name(int kind)
{
    static const char *const names[] = {
        [CST_ALLREDUCE] = "allreduce", [CST_REDUCE_SCATTER] = "reduce_scatter",
        [CST_ALLGATHER] = "allgather", [CST_ALLTOALL] = "alltoall",
        [CST_BROADCAST] = "broadcast", [CST_REDUCE] = "reduce",
        [CST_BARRIER] = "barrier",     [CST_SEND] = "send",
        [CST_RECV] = "recv",           [CST_ALLOC] = "alloc",
        [CST_FREE] = "free",           [CST_SPLIT] = "split",
        [CST_MEAN] = "mean",           [CST_BAD_CALL] = "call with wrong arguments",
    };
    return kind > 0 && (size_t)kind < sizeof names / sizeof *names ? names[kind] : "?";
}
