/* SPDX-License-Identifier: Apache-2.0 */
/* Under a launcher every rank is a command line of its own: they must ask for the same thing. */
#ifndef COSET_TOOLS_AGREE_H
#define COSET_TOOLS_AGREE_H
#include "common/launch.h"

/*
 * Collective: compares what the ranks were asked for (launch.h). Ranks with different numbers of steps or sizes would
 * wait for each other until late_ms. Returns 0, TOOL_USAGE on all ranks after rank 0 has named the option, the ranks and
 * their values, or TOOL_FAILED.
 */
int tool_agree(const tool_rank *rank, const char asked[TOOL_ASKED_BYTES]);
#endif
