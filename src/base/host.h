/* SPDX-License-Identifier: Apache-2.0 */
/* Who this host is. Two processes with the same identity can share memory and reach each other's loopback. */
#ifndef CST_BASE_HOST_H
#define CST_BASE_HOST_H

#define CST_HOST_ID_BYTES 192

/* "bootid:hostname:netns", or COSET_HOSTID if it is set (shortened to fit). Returns out. A network namespace counts as
 * a host of its own, as a container does. */
const char *cst_host_identity(char out[CST_HOST_ID_BYTES]);
/* The host's name, for people; "?" if it has none. Returns out. */
const char *cst_host_name(char out[64]);
#endif
