/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the machine that decide how fast collectives can be here, and which MPIs there are. */
#ifndef COSET_TOOLS_INFO_MACHINE_H
#define COSET_TOOLS_INFO_MACHINE_H
#include <cjson/cJSON.h>

/* Adds to `facts`: processor, cores_allowed, memory_bytes, shm_bytes (of /dev/shm), huge_pages, huge_pages_shared,
 * hugetlb_pages, ptrace_scope; null where the system does not tell. */
void machine_facts(cJSON *facts);
/* An array of {name, launcher}: MPI launchers found in PATH. */
cJSON *machine_mpis(void);
#endif
