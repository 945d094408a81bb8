/* SPDX-License-Identifier: Apache-2.0 */
/* fork() after a communicator exists: the child must neither use it nor keep its sockets open. */
#ifndef CST_BASE_FORK_H
#define CST_BASE_FORK_H
#include <coset.h>

/* Changes in a child; an object that remembers another value belongs to the parent. Cheap enough for every call.
 * The first call, or the first cst_fork_guard, installs the fork handler. */
unsigned cst_fork_generation(void);
/* A descriptor that a child must close at once. MEMORY if the table is full. */
coset_status cst_fork_guard(int fd);
/* Before close(fd). */
void cst_fork_unguard(int fd);
#endif
