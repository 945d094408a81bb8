/* SPDX-License-Identifier: Apache-2.0 */
/* --bucket-mb of the commands that use coset_ddp. */
#ifndef COSET_TOOLS_BUCKETS_H
#define COSET_TOOLS_BUCKETS_H
#include <coset_ddp.h>

/* Sets the sizes of buckets: `mib` for all of them, the first and the last at most as large as by default. 0: defaults. */
static inline void tool_bucket_sizes(double mib, coset_ddp_options *options)
{
    const double unit = 1 << 20;
    if (mib <= 0)
        return;
    size_t bytes = (size_t)(mib * unit);
    options->bucket_bytes = bytes ? bytes : 1;
    if (mib < 1)
        options->first_bytes = options->last_bytes = options->bucket_bytes;
}
#endif
