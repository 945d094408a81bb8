/* SPDX-License-Identifier: Apache-2.0 */
/* Transport `tcp`: any network. COSET_SOCKETS data connections per pair of ranks (default 1), one for control. */
#ifndef CST_TRANSPORT_TCP_TCP_H
#define CST_TRANSPORT_TCP_TCP_H
#include <coset_transport.h>

extern const coset_transport_ops cst_transport_tcp;
#endif
