/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec.h"

#include "common/launch.h"
#include "common/options.h"

void tool_check_codec(const char *command, const coset_mean_options *options, int ranks)
{
    coset_mean *mean = NULL;
    coset_error why = COSET_ERROR_INIT;
    if (coset_mean_create(0, ranks ? ranks : TOOL_DEFAULT_RANKS, options, &mean, &why))
        tool_bad_input(command, "--codec=%s: %s", options->codec, why.text[0] ? why.text : coset_strerror(why.status));
    coset_mean_destroy(mean);
}
