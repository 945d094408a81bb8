/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abstract unix sockets: they have a name but no file, so nothing is left behind, and their end of file tells at once
 * that a process has died. The name belongs to the network namespace, which any user may enter: the other end must
 * run as the same user (or root), checked by the kernel's word.
 */
#ifndef CST_NET_UNIX_H
#define CST_NET_UNIX_H
#include "base/clock.h"

#include <coset.h>

/* Names longer than a socket address holds are hashed. SYSTEM if the name is taken. */
coset_status cst_unix_listen(const char *name, int *fd, coset_error *why);
/* One attempt. PEER if nobody listens. */
coset_status cst_unix_connect(const char *name, cst_deadline deadline, int *fd, coset_error *why);
/* Is the process at the other end one of this user's (or root's)? */
int cst_unix_same_user(int fd);
#endif
