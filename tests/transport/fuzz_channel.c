/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: shared memory written by a broken or hostile peer. */
#include "transport/hostile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hostile_channel(data, size < 2000 ? size : 2000);
    return 0;
}
