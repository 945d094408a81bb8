/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tool_find_program(const char *program, char *path, size_t size)
{
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        int length = (int)strcspn(folders, ":");
        snprintf(path, size, "%.*s/%s", length, folders, program);
        if (!access(path, X_OK))
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}
