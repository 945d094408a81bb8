/* SPDX-License-Identifier: Apache-2.0 */
/* --codec, --budget and --bits of the commands that average through coset_mean. */
#ifndef COSET_TOOLS_CODEC_H
#define COSET_TOOLS_CODEC_H
#include <coset_mean.h>

/* Exits with 2 and one line if there is no such codec or it cannot do what is asked: told once, before any rank starts.
 * `ranks`: 0 if not known yet. */
void tool_check_codec(const char *command, const coset_mean_options *options, int ranks);
#endif
