/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/environment.h"

#include "base/env.h"
#include "base/error.h"
#include "net/iface.h"
#include "net/ports.h"
#include "transport/fault/rules.h"
#include "transport/registry.h"
#include "transport/shm/reach.h"
#include "transport/tcp/tcp.h"

#include <string.h>

static coset_status check_name(coset_error *why)
{
    const char *name = cst_env("COSET_TRANSPORT");
    if (!name || !strcmp(name, "mpi") || cst_transport_find(name))
        return COSET_OK;
    char names[160];
    cst_transport_names(names, sizeof names);
    return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_TRANSPORT=%.60s: this build has no such transport; it has %s",
                    name, names);
}

coset_status cst_transport_check_env(coset_error *why)
{
    int sockets;
    cst_reach_method method;
    cst_fault_rules rules;
    cst_iface_spec interfaces;
    cst_ports ports;
    coset_status status = check_name(why);
    if (!status)
        status = cst_tcp_sockets_env(&sockets, why);
    if (!status)
        status = cst_reach_method_from_env(&method, why);
    if (!status)
        status = cst_fault_parse(cst_env("COSET_FAULT"), &rules, why);
    if (!status)
        status = cst_iface_env(&interfaces, why);
    if (!status)
        status = cst_ports_env(&ports, why);
    return status;
}
