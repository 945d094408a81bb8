/* SPDX-License-Identifier: Apache-2.0 */
/* At which addresses a rank can be reached by the others, agreed before anybody connects. */
#ifndef CST_TRANSPORT_TCP_OFFER_H
#define CST_TRANSPORT_TCP_OFFER_H
#include "net/race.h"

#include <coset_transport.h>

#define CST_OFFERED 8 /* addresses of one rank at most */

/* Gathered as bytes. */
typedef struct {
    int32_t count;
    uint16_t port;
    struct {
        uint8_t family, octets[16];
    } addr[CST_OFFERED]; /* family 4 or 6 */
} cst_offer;

/* Collective: chooses this rank's addresses (COSET_IFNAME; else the one that reached the root, if config->address tells
 * it; else all), listens there, and exchanges offers. *listener is the caller's, *all[size] is malloc'd. On failure
 * every rank fails: ARGUMENT if a rank offers only loopback to ranks on other hosts, and what net/ gives. */
coset_status cst_offer_exchange(const coset_oob *oob, const coset_transport_config *config, int *listener,
                                cst_offer **all, coset_error *why);
/* The routes from a rank to one that has made this offer. Loopback only within a host. */
void cst_offer_routes(const cst_offer *offer, bool same_host, cst_routes *out);
/* Do the two ranks share a host? (No identities: all do.) */
bool cst_same_host(const coset_transport_config *config, int a, int b);
#endif
