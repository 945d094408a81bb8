/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables. A value that means nothing is an argument error that names the variable, never ignored. */
#ifndef CST_BASE_ENV_H
#define CST_BASE_ENV_H
#include <coset.h>

/* The value, or NULL if unset or empty. */
const char *cst_env(const char *name);
/* *value = the number in `name` if it is set, within [low, high]; untouched if unset. ARGUMENT otherwise. */
coset_status cst_env_int(const char *name, long low, long high, int *value, coset_error *why);
/* Parses all of `text` as a number within [low, high]. Returns 0, or -1. */
int cst_parse_long(const char *text, long low, long high, long *value);
/* fn gets a line for each COSET_* variable that the library does not know. */
void cst_env_unknown(void (*fn)(void *ctx, const char *line), void *ctx);
/* Logs these lines as warnings, once per process. */
void cst_env_warn_unknown(void);
#endif
