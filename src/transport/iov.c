/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/iov.h"

#include <string.h>

bool cst_iov_bytes(const struct iovec *iov, int count, size_t *bytes)
{
    size_t sum = 0;
    for (int i = 0; i < count; i++)
        if (__builtin_add_overflow(sum, iov[i].iov_len, &sum))
            return false;
    *bytes = sum;
    return count >= 0;
}

cst_cursor cst_cursor_at(const struct iovec *iov, int count, size_t skip)
{
    cst_cursor c = {iov, count, 0, 0};
    while (c.index < count && skip >= iov[c.index].iov_len)
        skip -= iov[c.index++].iov_len;
    c.offset = skip;
    return c;
}

/* The next at most `bytes` contiguous bytes; NULL at the end. */
static char *next_piece(cst_cursor *c, size_t bytes, size_t *length)
{
    while (c->index < c->count && c->offset == c->iov[c->index].iov_len) {
        c->index++;
        c->offset = 0;
    }
    if (c->index >= c->count)
        return NULL;
    size_t left = c->iov[c->index].iov_len - c->offset;
    char *at = (char *)c->iov[c->index].iov_base + c->offset;
    *length = left < bytes ? left : bytes;
    c->offset += *length;
    return at;
}

void cst_cursor_put(cst_cursor *c, const void *from, size_t bytes)
{
    size_t n;
    char *to;
    for (const char *p = from; bytes && (to = next_piece(c, bytes, &n)); p += n, bytes -= n)
        memcpy(to, p, n);
}

void cst_cursor_get(cst_cursor *c, void *to, size_t bytes)
{
    size_t n;
    char *from;
    for (char *p = to; bytes && (from = next_piece(c, bytes, &n)); p += n, bytes -= n)
        memcpy(p, from, n);
}

int cst_cursor_slice(cst_cursor *c, size_t bytes, struct iovec *out, int room, size_t *taken)
{
    int pieces = 0;
    *taken = 0;
    while (pieces < room && *taken < bytes) {
        size_t n;
        char *at = next_piece(c, bytes - *taken, &n);
        if (!at)
            break;
        out[pieces++] = (struct iovec){at, n};
        *taken += n;
    }
    return pieces;
}
