/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transports "fault:NAME", for tests: NAME, with the faults that COSET_FAULT describes (rules.h). Without rules
 * they do exactly what NAME does.
 */
#ifndef CST_TRANSPORT_FAULT_H
#define CST_TRANSPORT_FAULT_H
#include <coset_transport.h>

/* The wrapped form of the transport `inner` ("shm"); NULL if there is none. */
const coset_transport_ops *cst_transport_fault(const char *inner);
#endif
