/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON (cJSON values), to a file or to standard output. */
#ifndef COSET_TOOLS_JSON_H
#define COSET_TOOLS_JSON_H
#include <cjson/cJSON.h>
#include <stdio.h>

/* Writes `json` to `path` ("-" is standard output) and deletes it; path NULL only deletes it. Returns 0, or -1 after one
 * line on standard error. Numbers that JSON cannot say (NaN, infinity) become null. */
int tool_json_write(const char *path, cJSON *json);
/* Where tables for people go: standard output, but standard error when the JSON has standard output for itself. */
FILE *tool_human_stream(const char *json_path);
#endif
