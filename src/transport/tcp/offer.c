/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/offer.h"

#include "base/error.h"
#include "net/iface.h"
#include "net/socket.h"
#include "transport/agree.h"

#include <stdlib.h>
#include <string.h>

bool cst_same_host(const coset_transport_config *config, int a, int b)
{
    return !config->host || !strcmp(config->host[a], config->host[b]);
}

static bool one_host(const coset_transport_config *config, int size)
{
    for (int r = 1; r < size; r++)
        if (!cst_same_host(config, 0, r))
            return false;
    return true;
}

static cst_addr address_at(const cst_offer *offer, int i)
{
    bool v4 = offer->addr[i].family == 4;
    cst_addr a = cst_addr_wildcard(v4 ? AF_INET : AF_INET6, offer->port);
    if (v4)
        memcpy(&a.v4.sin_addr, offer->addr[i].octets, 4);
    else
        memcpy(&a.v6.sin6_addr, offer->addr[i].octets, 16);
    return a;
}

static void add(cst_offer *offer, const cst_addr *a)
{
    bool v4 = a->any.sa_family == AF_INET;
    if (offer->count == CST_OFFERED || (!v4 && cst_addr_is_link_local(a))) /* which means nothing without its scope */
        return;
    offer->addr[offer->count].family = v4 ? 4 : 6;
    if (v4)
        memcpy(offer->addr[offer->count].octets, &a->v4.sin_addr, 4);
    else
        memcpy(offer->addr[offer->count].octets, &a->v6.sin6_addr, 16);
    offer->count++;
}

/* Offers come from other processes. */
static void clean(cst_offer *offer)
{
    if (offer->count < 0 || offer->count > CST_OFFERED)
        offer->count = 0;
}

static bool only_loopback(const cst_offer *offer)
{
    for (int i = 0; i < offer->count; i++) {
        cst_addr a = address_at(offer, i);
        if (!cst_addr_is_loopback(&a))
            return false;
    }
    return true;
}

static const char *given_address(const coset_transport_config *config)
{
    size_t needed = offsetof(coset_transport_config, address) + sizeof config->address;
    const char *text = config->struct_size >= needed ? config->address : NULL;
    return text && *text ? text : NULL;
}

/* What this rank would offer before it has heard of the others. */
static coset_status first_choice(const coset_transport_config *config, cst_offer *mine, coset_error *why)
{
    cst_addr list[CST_IFACE_MAX], given;
    int count;
    memset(mine, 0, sizeof *mine); /* it is gathered as bytes */
    const char *text = given_address(config);
    if (!cst_iface_asked() && text && !cst_addr_parse(text, &given)) {
        add(mine, &given);
        if (mine->count)
            return COSET_OK;
    }
    coset_status status = cst_iface_addresses(list, CST_IFACE_MAX, &count, why);
    for (int i = 0; i < count && !status; i++)
        add(mine, &list[i]);
    if (!status && !mine->count)
        status = cst_fail(why, COSET_ERR_SYSTEM, -1,
                          "this host has only IPv6 link-local addresses, which cannot be offered");
    return status;
}

/* This rank reached the root by loopback, being on its host, but others are elsewhere: it offers the address from which
 * it reaches them. */
static void look_outside(const cst_offer *all, int size, cst_offer *mine)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i < all[r].count; i++) {
            cst_addr there = address_at(&all[r], i), here;
            if (cst_addr_is_loopback(&there) || !cst_iface_towards(&there, &here) || cst_addr_is_loopback(&here))
                continue;
            memset(mine, 0, sizeof *mine);
            add(mine, &here);
            if (mine->count)
                return;
        }
}

static coset_status listen_at(cst_offer *mine, int *listener, coset_error *why)
{
    cst_ports ports;
    cst_addr bound, only = address_at(mine, 0);
    coset_status status = cst_ports_env(&ports, why);
    if (!status && mine->count == 1)
        status = cst_listen(&only, ports, listener, &bound, why);
    else if (!status)
        status = cst_listen_everywhere(0, ports, listener, &bound, why);
    if (!status)
        mine->port = cst_addr_port(&bound);
    return status;
}

static coset_status check_reach(const coset_transport_config *config, const cst_offer *all, int size, coset_error *why)
{
    if (one_host(config, size))
        return COSET_OK;
    for (int r = 0; r < size; r++)
        if (only_loopback(&all[r]))
            return cst_fail(why, COSET_ERR_ARGUMENT, r,
                            "rank %d offers only loopback, which ranks on other hosts cannot reach: "
                            "set COSET_IFNAME there to an interface that they can",
                            r);
    return COSET_OK;
}

static coset_status gather(const coset_oob *oob, const cst_offer *mine, cst_offer *all, int timeout_ms,
                           coset_error *why)
{
    coset_status status = oob->allgather(oob->ctx, mine, all, sizeof *mine, timeout_ms);
    if (status)
        return cst_fail(why, status, -1, "ranks could not exchange their addresses: %s", coset_strerror(status));
    for (int r = 0; r < oob->size; r++)
        clean(&all[r]);
    return COSET_OK;
}

coset_status cst_offer_exchange(const coset_oob *oob, const coset_transport_config *config, int *listener,
                                cst_offer **all, coset_error *why)
{
    cst_offer mine, *offers = calloc((size_t)oob->size, sizeof *offers);
    *listener = -1;
    coset_status status =
        offers ? first_choice(config, &mine, why) : cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    status = cst_agree(oob, "choosing addresses", status, 0, config->late_ms, why);
    if (!status)
        status = gather(oob, &mine, offers, config->late_ms, why);
    if (!status) {
        if (only_loopback(&mine) && !one_host(config, oob->size) && !cst_iface_asked())
            look_outside(offers, oob->size, &mine);
        status = listen_at(&mine, listener, why);
        status = cst_agree(oob, "listening", status, 0, config->late_ms, why);
    }
    if (!status)
        status = gather(oob, &mine, offers, config->late_ms, why);
    if (!status)
        status = check_reach(config, offers, oob->size, why); /* the same on all ranks: all have the same offers */
    if (status) {
        cst_close(*listener);
        free(offers);
        return status;
    }
    *all = offers;
    return COSET_OK;
}

void cst_offer_routes(const cst_offer *offer, bool same_host, cst_routes *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < offer->count; i++) {
        cst_addr a = address_at(offer, i);
        if (same_host || !cst_addr_is_loopback(&a))
            out->addr[out->count++] = a;
    }
}
