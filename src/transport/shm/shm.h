/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport `shm`: ranks are processes on one host.
 *
 * Shared memory is anonymous (memfd) and handed over through abstract unix sockets, one between every two ranks, so
 * there is no name in any file system and nothing to clean up, whatever kills a process. The end of file of such a
 * socket is the notice of death. Messages go through the channel; sockets carry notices, descriptors, and a knock for
 * a rank that sleeps (in epoll, on its sockets).
 *
 * Environment: COSET_SHM_METHOD = auto (default) | cma | staged: how private memory of a peer is read. `auto` uses
 * process_vm_readv if a test at creation finds it allowed between all ranks; `cma` insists on it, and where the Yama
 * module asks for that, declares with prctl(PR_SET_PTRACER) that others may; `staged` never uses it.
 */
#ifndef CST_TRANSPORT_SHM_H
#define CST_TRANSPORT_SHM_H
#include <coset_transport.h>

extern const coset_transport_ops cst_transport_shm;
#endif
