/* SPDX-License-Identifier: Apache-2.0 */
/* A place within a list of memory pieces, and copies from and to it. */
#ifndef CST_TRANSPORT_IOV_H
#define CST_TRANSPORT_IOV_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

typedef struct {
    const struct iovec *iov;
    int count, index;
    size_t offset; /* within iov[index] */
} cst_cursor;

/* Sum of the lengths; false if it overflows, or if count is negative. */
bool cst_iov_bytes(const struct iovec *iov, int count, size_t *bytes);

/* At the byte `skip` of the list, which must not be past its end. */
cst_cursor cst_cursor_at(const struct iovec *iov, int count, size_t skip);
/* Copies `bytes` bytes, which must not be more than are left, and moves on. */
void cst_cursor_put(cst_cursor *c, const void *from, size_t bytes);
void cst_cursor_get(cst_cursor *c, void *to, size_t bytes);
/* The next at most `bytes` bytes as at most `room` pieces; moves on. Returns the number of pieces; *taken bytes in them. */
int cst_cursor_slice(cst_cursor *c, size_t bytes, struct iovec *out, int room, size_t *taken);
#endif
