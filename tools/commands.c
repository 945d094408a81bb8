/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: to add one, declare its function here and give it a line. */
#include "command.h"

#include <stddef.h>

static const tool_command bench[] = {
    {NULL, NULL, NULL, NULL},
};

const tool_command tool_commands[] = {
    {"bench", "measure one part of the library", NULL, bench},
    {NULL, NULL, NULL, NULL},
};
