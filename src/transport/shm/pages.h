/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous memory that can be handed to other processes, and the promise that touching it never kills. */
#ifndef CST_TRANSPORT_SHM_PAGES_H
#define CST_TRANSPORT_SHM_PAGES_H
#include <coset.h>
#include <stddef.h>

/* Can such memory be made at all? OK, or UNSUPPORTED with one line in why. */
coset_status cst_pages_probe(char *why, size_t why_bytes);

/* A descriptor of `bytes` zeroed bytes, close-on-exec, of fixed size. MEMORY if the host, the control group or a limit
 * of this process has no room for them; nothing is allocated yet, see cst_pages_populate. */
coset_status cst_pages_create(size_t bytes, int *fd, coset_error *why);

/* Maps all `bytes` of fd, after checking that fd is of that size and cannot shrink under us. */
coset_status cst_pages_map(int fd, size_t bytes, char **base, coset_error *why);

/* Makes [base, base + bytes) present and mapped, so that no later access faults. MEMORY if there is no room. With
 * `owner` the pages may not exist yet; without it they do, and another process may be writing them. */
coset_status cst_pages_populate(char *base, size_t bytes, int fd, size_t offset, int owner, coset_error *why);
#endif
