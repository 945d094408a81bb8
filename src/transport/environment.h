/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables of all transports, whichever is used. */
#ifndef CST_TRANSPORT_ENVIRONMENT_H
#define CST_TRANSPORT_ENVIRONMENT_H
#include <coset.h>

/* ARGUMENT, naming the variable, if one that is set means nothing: COSET_TRANSPORT, COSET_SOCKETS, COSET_SHM_METHOD,
 * COSET_FAULT, COSET_IFNAME, COSET_PORT_RANGE. Whether COSET_IFNAME takes an address of this host is not looked at. */
coset_status cst_transport_check_env(coset_error *why);
#endif
