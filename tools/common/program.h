/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COSET_TOOLS_PROGRAM_H
#define COSET_TOOLS_PROGRAM_H
#include <stdbool.h>
#include <stddef.h>

/* The full path of `program` in PATH; false if there is none. */
bool tool_find_program(const char *program, char *path, size_t size);
#endif
