/* SPDX-License-Identifier: Apache-2.0 */
/* The job token: 16 bytes that every connection of a job must show before anything else of it is read. */
#ifndef CST_NET_TOKEN_H
#define CST_NET_TOKEN_H
#include <coset.h>
#include <stdbool.h>
#include <stdint.h>

#define CST_TOKEN_BYTES 16
typedef struct {
    uint8_t bytes[CST_TOKEN_BYTES];
} cst_token;

/* From the kernel's random source. SYSTEM if it has none. */
coset_status cst_token_random(cst_token *out, coset_error *why);
/* The same on every rank that has the same text; different texts give different tokens (128-bit hash). */
cst_token cst_token_from_text(const char *text);
cst_token cst_token_from_number(uint64_t number);
/* In time that does not depend on where the two differ. */
bool cst_token_equal(const cst_token *a, const cst_token *b);
#endif
