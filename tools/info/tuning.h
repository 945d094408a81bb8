/* SPDX-License-Identifier: Apache-2.0 */
/* `coset info --tuning`: what `auto` takes for which vector, ranks and transport, and what each algorithm would take. */
#ifndef COSET_TOOLS_INFO_TUNING_H
#define COSET_TOOLS_INFO_TUNING_H

/* `ranks` and `sizes` are lists as the user gave them ("2,4", "64K,1M"), NULL: a choice of ours. Returns the exit
 * status. */
int info_tuning(const char *command, const char *ranks, const char *sizes, const char *json);
#endif
