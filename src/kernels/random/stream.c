/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/random/philox.h"
#include "kernels/random/random.h"

cst_stream_root cst_stream_root_of(uint64_t seed, uint64_t tensor, uint64_t call)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4] = {(uint32_t)tensor, (uint32_t)(tensor >> 32), (uint32_t)call, (uint32_t)(call >> 32)};
    uint32_t out[4];
    cst_philox(counter, key, out);
    return (cst_stream_root){{out[0], out[1]}};
}

cst_stream cst_stream_of(cst_stream_root root, cst_stream_use use, uint32_t phase, uint32_t sender, uint32_t block)
{
    return (cst_stream){{root.key[0], root.key[1]}, {block, sender, phase << 8 | (uint32_t)use}};
}
