/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 128 bytes of a unique id.
 *
 *    0  magic "cstid1\0\n"     24  port (u16), number of addresses (u8), zero
 *    8  job token              28  hash of the maker's host identity (u32)
 *   32  addresses: 4 or 6, then 4 or 16 bytes each
 *  120  XXH64 of bytes 0..119
 */
#ifndef CST_BOOTSTRAP_ID_H
#define CST_BOOTSTRAP_ID_H
#include "net/race.h"
#include "net/token.h"

/* What an id says. */
typedef struct {
    cst_token token;
    uint16_t port;
    uint32_t host;
    int count;
    cst_addr addr[CST_ROUTES]; /* with the port */
} cst_id;

/* Writes as many of the addresses as fit. */
void cst_id_write(const cst_id *id, uint8_t out[128]);
/* False if the bytes are no id. */
bool cst_id_read(const uint8_t in[128], cst_id *id);
/* Hash of this host's identity. */
uint32_t cst_id_this_host(void);
/* The routes for a rank on this host: all addresses on the maker's host, none of loopback elsewhere. ARGUMENT if none
 * is left; the text says what to set. */
coset_status cst_id_routes(const cst_id *id, cst_routes *routes, coset_error *why);
/* Listens and fills in *id. */
coset_status cst_id_make(cst_id *id, int *listener, coset_error *why);
#endif
