/* SPDX-License-Identifier: Apache-2.0 */
/* Transport `tcp`: any network. COSET_SOCKETS data connections per pair of ranks (default 1), one for control. */
#ifndef CST_TRANSPORT_TCP_TCP_H
#define CST_TRANSPORT_TCP_TCP_H
#include <coset_transport.h>

/* From COSET_SOCKETS; *sockets is left alone if it is not set. ARGUMENT, naming the variable. */
coset_status cst_tcp_sockets_env(int *sockets, coset_error *why);

extern const coset_transport_ops cst_transport_tcp;
#endif
