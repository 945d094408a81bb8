/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/iov.h"

#include <stdint.h>
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

/* Large copies by the processor's string instruction, which C libraries prefer, lose half their speed and more on some
 * processors (AMD Zen 3 and 4; glibc bug 30994) when the target lies 1 to 63 bytes further into its page than the source
 * does: as from a page-aligned stage block to malloc's memory. Pieces this small are copied by vector loads instead. */
static void copy(char *to, const char *from, size_t bytes)
{
    enum { PAGE = 4096, NEAR = 64, PIECE = 1024, LARGE = 4096 };
    size_t ahead = ((uintptr_t)to - (uintptr_t)from) % PAGE;
    size_t piece = bytes >= LARGE && ahead && ahead < NEAR ? PIECE : bytes;
    for (size_t n; bytes; to += n, from += n, bytes -= n) {
        n = bytes < piece ? bytes : piece;
        memcpy(to, from, n);
    }
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
        copy(to, p, n);
}

void cst_cursor_get(cst_cursor *c, void *to, size_t bytes)
{
    size_t n;
    char *from;
    for (char *p = to; bytes && (from = next_piece(c, bytes, &n)); p += n, bytes -= n)
        copy(p, from, n);
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
