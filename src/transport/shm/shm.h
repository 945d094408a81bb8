/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport `shm`: ranks are processes on one host.
 *
 * Shared memory is anonymous (memfd) and handed over through abstract unix sockets, one between every two ranks, so
 * there is no name in any file system and nothing to clean up, whatever kills a process. The end of file of such a
 * socket is the notice of death. Messages go through the channel; sockets carry notices, descriptors, and a knock for
 * a rank that sleeps (in epoll, on its sockets).
 *
 * Environment: COSET_SHM_METHOD = auto (default) | cma | staged: how private memory of a peer is read. `staged`: by way
 * of shared memory. `cma`: large messages by process_vm_readv; creation fails if a test finds that it is not allowed
 * between all ranks (where the Yama module asks for it, the process declares with prctl(PR_SET_PTRACER) that others
 * may). `auto`: like `cma` where that is allowed without declaring anything and ranks share cores, else like `staged`.
 * get and put exist wherever process_vm is allowed, but for `staged`.
 */
#ifndef CST_TRANSPORT_SHM_H
#define CST_TRANSPORT_SHM_H
#include <coset_transport.h>

extern const coset_transport_ops cst_transport_shm;
#endif
