/* SPDX-License-Identifier: Apache-2.0 */
#include "net/token.h"

#include "base/error.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

coset_status cst_token_random(cst_token *out, coset_error *why)
{
    ssize_t n;
    do
        n = getrandom(out->bytes, sizeof out->bytes, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof out->bytes ? COSET_OK : cst_fail_errno(why, "getrandom");
}

static cst_token from_bytes(const void *data, size_t bytes)
{
    cst_token t;
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t h = cst_hash64(half, data, bytes);
        memcpy(t.bytes + 8 * half, &h, sizeof h);
    }
    return t;
}

cst_token cst_token_from_text(const char *text)
{
    return from_bytes(text, strlen(text));
}

cst_token cst_token_from_number(uint64_t number)
{
    return from_bytes(&number, sizeof number);
}

bool cst_token_equal(const cst_token *a, const cst_token *b)
{
    unsigned difference = 0;
    for (int i = 0; i < CST_TOKEN_BYTES; i++)
        difference |= (unsigned)(a->bytes[i] ^ b->bytes[i]);
    return difference == 0;
}
