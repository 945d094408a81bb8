/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/id.h"

#include "base/error.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/host.h"
#include "bootstrap/star.h"
#include "net/iface.h"
#include "net/socket.h"

#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t magic[8] = {'c', 's', 't', 'i', 'd', '1', 0, '\n'};
#define TOKEN_AT 8
#define PORT_AT  24
#define COUNT_AT 26
#define HOST_AT  28
#define LIST_AT  32
#define SUM_AT   120

static size_t put_address(const cst_addr *a, uint8_t *out)
{
    bool v4 = a->any.sa_family == AF_INET;
    out[0] = v4 ? 4 : 6;
    memcpy(out + 1, v4 ? (const void *)&a->v4.sin_addr : (const void *)&a->v6.sin6_addr, v4 ? 4 : 16);
    return v4 ? 5 : 17;
}

void cst_id_write(const cst_id *id, uint8_t out[128])
{
    uint8_t *at = out + LIST_AT, count = 0;
    memset(out, 0, 128);
    memcpy(out, magic, sizeof magic);
    memcpy(out + TOKEN_AT, id->token.bytes, CST_TOKEN_BYTES);
    uint16_t port = htole16(id->port);
    uint32_t host = htole32(id->host);
    memcpy(out + PORT_AT, &port, sizeof port);
    memcpy(out + HOST_AT, &host, sizeof host);
    for (int i = 0; i < id->count; i++) {
        size_t needed = id->addr[i].any.sa_family == AF_INET ? 5 : 17;
        if ((size_t)(out + SUM_AT - at) < needed)
            continue;
        at += put_address(&id->addr[i], at);
        count++;
    }
    out[COUNT_AT] = count;
    uint64_t sum = htole64(cst_hash64(0, out, SUM_AT));
    memcpy(out + SUM_AT, &sum, sizeof sum);
}

/* Returns the bytes read, 0 if there is no address. */
static size_t get_address(const uint8_t *in, size_t left, uint16_t port, cst_addr *a)
{
    if (left >= 5 && in[0] == 4) {
        *a = cst_addr_wildcard(AF_INET, port);
        memcpy(&a->v4.sin_addr, in + 1, 4);
        return 5;
    }
    if (left >= 17 && in[0] == 6) {
        *a = cst_addr_wildcard(AF_INET6, port);
        memcpy(&a->v6.sin6_addr, in + 1, 16);
        return 17;
    }
    return 0;
}

bool cst_id_read(const uint8_t in[128], cst_id *id)
{
    uint16_t port;
    uint32_t host;
    uint64_t sum;
    memcpy(&sum, in + SUM_AT, sizeof sum);
    if (memcmp(in, magic, sizeof magic) || le64toh(sum) != cst_hash64(0, in, SUM_AT))
        return false;
    memset(id, 0, sizeof *id);
    memcpy(id->token.bytes, in + TOKEN_AT, CST_TOKEN_BYTES);
    memcpy(&port, in + PORT_AT, sizeof port);
    memcpy(&host, in + HOST_AT, sizeof host);
    id->port = le16toh(port);
    id->host = le32toh(host);
    const uint8_t *at = in + LIST_AT;
    if (in[COUNT_AT] > CST_ROUTES || !id->port)
        return false;
    for (; id->count < in[COUNT_AT]; id->count++) {
        size_t n = get_address(at, (size_t)(in + SUM_AT - at), id->port, &id->addr[id->count]);
        if (!n)
            return false;
        at += n;
    }
    return id->count > 0;
}

uint32_t cst_id_this_host(void)
{
    char identity[CST_HOST_ID_BYTES];
    cst_host_identity(identity);
    return (uint32_t)cst_hash64(0, identity, strlen(identity));
}

coset_status cst_id_routes(const cst_id *id, cst_routes *routes, coset_error *why)
{
    bool same_host = id->host == cst_id_this_host();
    routes->count = 0;
    for (int i = 0; i < id->count; i++)
        if (same_host || !cst_addr_is_loopback(&id->addr[i]))
            routes->addr[routes->count++] = id->addr[i];
    if (routes->count)
        return COSET_OK;
    return cst_fail(why, COSET_ERR_ARGUMENT, 0,
                    "the host of rank 0 offers loopback only, which other hosts cannot reach: set "
                    "COSET_IFNAME there to an interface that they can");
}

/* What the id offers. One address: listens there alone; several, or none but loopback: everywhere. */
coset_status cst_id_make(cst_id *id, int *listener, coset_error *why)
{
    cst_addr list[CST_IFACE_MAX], bound;
    cst_ports ports;
    int n;
    memset(id, 0, sizeof *id);
    coset_status status = cst_ports_env(&ports, why);
    if (!status)
        status = cst_iface_addresses(list, CST_IFACE_MAX, &n, why);
    if (!status)
        status = cst_token_random(&id->token, why);
    if (status)
        return status;
    for (int i = 0; i < n && id->count < CST_ROUTES; i++)
        if (!cst_addr_is_link_local(&list[i]) || list[i].any.sa_family == AF_INET)
            id->addr[id->count++] = list[i];
    if (!id->count)
        return cst_fail(why, COSET_ERR_SYSTEM, -1,
                        "COSET_IFNAME takes only IPv6 link-local addresses, which an id cannot carry");
    if (cst_iface_asked() && id->count == 1)
        status = cst_listen(&id->addr[0], ports, listener, &bound, why);
    else
        status = cst_listen_everywhere(0, ports, listener, &bound, why);
    if (status)
        return status;
    id->port = cst_addr_port(&bound);
    id->host = cst_id_this_host();
    for (int i = 0; i < id->count; i++)
        cst_addr_set_port(&id->addr[i], id->port);
    return COSET_OK;
}

/* -------- ids made here, whose listeners wait for rank 0 -------- */

typedef struct pending {
    struct pending *next;
    int listener;
    unsigned generation;
    coset_unique_id id;
} pending;

static struct {
    pthread_mutex_t lock;
    pending *first;
} made = {PTHREAD_MUTEX_INITIALIZER, NULL};

coset_status cst_unique_id_create(coset_unique_id *out, coset_error *why)
{
    cst_id id;
    pending *p = calloc(1, sizeof *p);
    if (!p)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    coset_status status = cst_id_make(&id, &p->listener, why);
    if (status) {
        free(p);
        return status;
    }
    p->generation = cst_fork_generation();
    cst_id_write(&id, p->id.bytes);
    *out = p->id;
    pthread_mutex_lock(&made.lock);
    p->next = made.first;
    made.first = p;
    pthread_mutex_unlock(&made.lock);
    return COSET_OK;
}

/* The listener of an id made in this process, which then is the caller's; -1 if there is none. */
static int take_listener(const coset_unique_id *id)
{
    int listener = -1;
    pthread_mutex_lock(&made.lock);
    for (pending **at = &made.first; *at; at = &(*at)->next) {
        pending *p = *at;
        if (memcmp(&p->id, id, sizeof *id) || p->generation != cst_fork_generation())
            continue;
        listener = p->listener;
        *at = p->next;
        free(p);
        break;
    }
    pthread_mutex_unlock(&made.lock);
    return listener;
}

static coset_status find_by_id(void *ctx, cst_deadline deadline, cst_routes *routes, cst_token *token, coset_error *why)
{
    const cst_id *id = ctx;
    (void)deadline;
    *token = id->token;
    return cst_id_routes(id, routes, why);
}

coset_status cst_bootstrap_id(const coset_unique_id *bytes, int rank, int size, int timeout_ms, cst_bootstrap **out,
                              coset_error *why)
{
    cst_id id;
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    coset_status status = cst_bootstrap_check_rank(rank, size, why);
    if (status)
        return status;
    if (!cst_id_read(bytes->bytes, &id))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "these 128 bytes are no unique id: all ranks need the bytes that "
                        "coset_unique_id_create gave");
    if (rank > 0)
        return cst_star_join(find_by_id, &id, rank, size, deadline, out, why);
    int listener = take_listener(bytes);
    if (listener < 0)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "rank 0 must be in the process that made the unique id, and an id serves once");
    if (size == 1) {
        cst_close(listener);
        return cst_bootstrap_alone(out, why);
    }
    return cst_star_root(listener, &id.token, size, deadline, NULL, NULL, out, why);
}
