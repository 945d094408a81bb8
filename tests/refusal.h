/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is refused: the allocator's functions wrapped (the linker's --wrap; CMake's coset_refuses_memory). */
#ifndef TESTS_REFUSAL_H
#define TESTS_REFUSAL_H
#include <stdbool.h>

/* The k-th allocation of the calling thread from now on gets NULL and ENOMEM, once; 0: none does. */
void refuse_allocation(long k);
/* Was it, since refuse_allocation was last called with a k above 0? */
bool allocation_was_refused(void);
#endif
