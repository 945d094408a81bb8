/* SPDX-License-Identifier: Apache-2.0 */
/* Filling in coset_error: the one place that knows how much of it the caller's struct_size lets us write. */
#ifndef CST_BASE_ERROR_H
#define CST_BASE_ERROR_H
#include <coset.h>

/* Writes status, peer, op and text into *why (which may be NULL) and returns status, so that `return cst_fail(...)`
 * reads well. peer < 0: no peer is the cause. The rank, and the host, are filled in by who knows them (comm/). */
coset_status cst_fail(coset_error *why, coset_status status, int peer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for COSET_ERR_SYSTEM: appends ": strerror(errno)". Keeps errno. */
coset_status cst_fail_errno(coset_error *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Copies *from into *to, no more than to->struct_size bytes; to may be NULL. */
void cst_error_copy(coset_error *to, const coset_error *from);
/* Empties *why but for struct_size; NULL is fine. */
void cst_error_clear(coset_error *why);
#endif
