/* SPDX-License-Identifier: Apache-2.0 */
#include "common/agree.h"

#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The texts differ: names the first line that does. */
static void tell_difference(const tool_rank *rank, const char *first, const char *other, int other_rank)
{
    size_t at = 0;
    while (first[at] == other[at])
        at++;
    while (at && first[at - 1] != '\n')
        at--;
    fprintf(stderr, "%s: rank 0 has %.*s, rank %d %.*s: give all ranks the same options\n", rank->command,
            (int)strcspn(first + at, "\n"), first + at, other_rank, (int)strcspn(other + at, "\n"), other + at);
}

int tool_agree(const tool_rank *rank, const char asked[TOOL_ASKED_BYTES])
{
    char *all = calloc((size_t)rank->size, TOOL_ASKED_BYTES);
    if (!all) {
        fprintf(stderr, "%s: rank %d: out of memory\n", rank->command, rank->rank);
        return TOOL_FAILED;
    }
    int status = TOOL_OK;
    if (coset_allgather(asked, all, TOOL_ASKED_BYTES, COSET_U8, rank->comm))
        status = tool_rank_failed(rank, "comparing options");
    for (int r = 1; r < rank->size && !status; r++) {
        const char *theirs = all + (size_t)r * TOOL_ASKED_BYTES;
        if (!strcmp(all, theirs))
            continue;
        status = TOOL_USAGE;
        if (rank->rank == 0)
            tell_difference(rank, all, theirs, r);
    }
    free(all);
    return status;
}
