/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport `threads`: ranks are threads of one process. Every rank reads and writes every other's memory directly,
 * so a message is copied once, by its receiver; nothing can die alone.
 */
#ifndef CST_TRANSPORT_THREADS_H
#define CST_TRANSPORT_THREADS_H
#include <coset_transport.h>

extern const coset_transport_ops cst_transport_threads;
#endif
