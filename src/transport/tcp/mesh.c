/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of two ranks the higher one connects, so that each connection is made once. All is done in one loop that never waits
 * for a single rank: it accepts, and moves on up to RACES connections of its own at a time.
 */
#include "transport/tcp/mesh.h"

#include "base/error.h"
#include "net/descriptors.h"
#include "net/gate.h"
#include "net/socket.h"
#include "net/token.h"
#include "transport/agree.h"
#include "transport/tcp/offer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RACES 16
/* All ranks were alive a moment ago, when offers were exchanged. If nothing at all moves for this many times dead_ms,
 * something is wrong that waiting will not mend. */
#define STALL_FACTOR 3
/* Descriptors beside the connections: the listener, two for epoll, two for waking, and a few for connections that turn
 * out not to be needed. With fewer of these than such connections the rest waits its turn. */
#define BESIDE 5
#define SPARE  4
/* How long a rank that has failed tries to say so to those that it has not yet connected to. */
#define LAST_WORDS_MS 500

typedef struct {
    bool running;
    int rank, channel; /* channel == sockets: control */
    cst_routes routes;
    cst_race race;
} runner;

typedef struct {
    const coset_transport_config *config;
    int rank, size, sockets;
    const cst_offer *offers;
    cst_mesh_fds *fds;
    cst_gate gate;
    runner runner[RACES];
    int next;    /* connections started so far, of rank * (sockets + 1) */
    int missing; /* connections that are not there yet, in and out */
    struct pollfd *set;
    int set_room;
} builder;

void cst_mesh_fds_free(cst_mesh_fds *m)
{
    for (int i = 0; i < m->size; i++)
        cst_close(m->control[i]);
    for (int i = 0; i < m->size * m->sockets; i++)
        cst_close(m->data[i]);
    free(m->control);
    free(m->data);
    memset(m, 0, sizeof *m);
}

static bool fds_new(cst_mesh_fds *m, int size, int sockets)
{
    size_t n = (size_t)size, k = n * (size_t)sockets;
    *m = (cst_mesh_fds){size, sockets, malloc(n * sizeof(int)), malloc(k * sizeof(int))};
    if (!m->control || !m->data) {
        free(m->control);
        free(m->data);
        memset(m, 0, sizeof *m);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        m->control[i] = -1;
    for (size_t i = 0; i < k; i++)
        m->data[i] = -1;
    return true;
}

static int *place_of(const builder *b, int rank, int channel)
{
    return channel == b->sockets ? &b->fds->control[rank] : &b->fds->data[rank * b->sockets + channel];
}

static void put(builder *b, int rank, int channel, int fd)
{
    *place_of(b, rank, channel) = fd;
    b->missing--;
    if (cst_same_host(b->config, b->rank, rank))
        cst_socket_unpaced(fd);
}

/* -------- in -------- */

static void take_in(builder *b, int fd, const cst_hello *h)
{
    uint32_t channel = h->purpose == CST_PURPOSE_CONTROL ? (uint32_t)b->sockets : h->channel;
    bool fits = h->size == (uint32_t)b->size && h->to_rank == (uint32_t)b->rank && h->rank < (uint32_t)b->size &&
                h->rank > (uint32_t)b->rank && channel <= (uint32_t)b->sockets &&
                (channel == (uint32_t)b->sockets) == (h->purpose == CST_PURPOSE_CONTROL);
    if (fits && *place_of(b, (int)h->rank, (int)channel) < 0)
        put(b, (int)h->rank, (int)channel, fd);
    else
        cst_close(fd);
}

static coset_status accept_all(builder *b, coset_error *why)
{
    cst_hello hello;
    int fd;
    do {
        coset_status status = cst_gate_next(&b->gate, &fd, &hello, why);
        if (status)
            return status;
        if (fd >= 0)
            take_in(b, fd, &hello);
    } while (fd >= 0);
    return COSET_OK;
}

/* -------- out -------- */

static cst_hello hello_for(const builder *b, int rank, int channel)
{
    return (cst_hello){
        .token = cst_token_from_number(b->config->job),
        .version = COSET_WIRE_VERSION,
        .purpose = channel == b->sockets ? CST_PURPOSE_CONTROL : CST_PURPOSE_DATA,
        .rank = (uint32_t)b->rank,
        .size = (uint32_t)b->size,
        .channel = (uint32_t)channel,
        .to_rank = (uint32_t)rank,
        .pid = (uint32_t)getpid(),
    };
}

static void start_runner(builder *b, runner *r, cst_deadline deadline)
{
    r->rank = b->next / (b->sockets + 1);
    r->channel = b->next % (b->sockets + 1);
    b->next++;
    cst_offer_routes(&b->offers[r->rank], cst_same_host(b->config, b->rank, r->rank), &r->routes);
    const cst_hello hello = hello_for(b, r->rank, r->channel);
    cst_race_begin(&r->race, &r->routes, &hello, deadline);
    r->running = true;
}

/* `set`: what poll said, NULL before the first poll. */
static coset_status run_races(builder *b, const struct pollfd *set, cst_deadline deadline, coset_error *why)
{
    for (int i = 0; i < RACES; i++) {
        runner *r = &b->runner[i];
        const struct pollfd *own = r->running ? set : NULL;
        if (own)
            set += r->race.count;
        if (!r->running && b->next < b->rank * (b->sockets + 1))
            start_runner(b, r, deadline);
        if (!r->running)
            continue;
        int fd;
        coset_status status = cst_race_step(&r->race, own, &fd);
        if (status == COSET_IN_PROGRESS && cst_race_is_refused(&r->race)) /* all listened before they heard of offers */
            status = cst_fail(&r->race.obstacle, COSET_ERR_PEER, r->rank, "it has stopped listening");
        if (status == COSET_IN_PROGRESS)
            continue;
        cst_race_end(&r->race);
        r->running = false;
        if (status)
            return cst_fail(why, status, r->rank, "cannot connect to rank %d: %.200s", r->rank, r->race.obstacle.text);
        put(b, r->rank, r->channel, fd);
    }
    return COSET_OK;
}

/* -------- both -------- */

static coset_status missing_rank(const builder *b, coset_status status, coset_error *why)
{
    for (int i = 0; i < RACES; i++)
        if (b->runner[i].running && b->runner[i].race.obstacle.text[0])
            return cst_fail(why, status, b->runner[i].rank, "cannot connect to rank %d: %.200s", b->runner[i].rank,
                            b->runner[i].race.obstacle.text);
    for (int r = 0; r < b->size; r++)
        for (int c = 0; c <= b->sockets && r != b->rank; c++)
            if (*place_of(b, r, c) < 0)
                return cst_fail(why, status, r,
                                r < b->rank ? "rank %d does not answer"
                                            : "rank %d has not connected: can it reach "
                                              "this host's addresses? COSET_IFNAME chooses others",
                                r);
    return status;
}

/* Fills in what to wait for. Order: the gate, the races, the control connections that stand (whose end is all that is
 * of interest). Returns the number of entries, 0 without memory. */
static int fill_poll_set(builder *b, int *races_at, int *controls_at, cst_deadline *until)
{
    int wanted = cst_gate_poll_count(&b->gate) + RACES * CST_ROUTES + b->size;
    if (wanted > b->set_room) {
        struct pollfd *grown = realloc(b->set, (size_t)wanted * sizeof *grown);
        if (!grown)
            return 0;
        b->set = grown;
        b->set_room = wanted;
    }
    cst_gate_poll_set(&b->gate, b->set);
    int n = *races_at = cst_gate_poll_count(&b->gate);
    for (int i = 0; i < RACES; i++)
        if (b->runner[i].running)
            n += cst_race_poll_set(&b->runner[i].race, b->set + n, until);
    *controls_at = n;
    for (int r = 0; r < b->size; r++)
        b->set[n++] = (struct pollfd){b->fds->control[r], POLLRDHUP, 0};
    return n;
}

static coset_status check_controls(const builder *b, const struct pollfd *set, coset_error *why)
{
    for (int r = 0; r < b->size; r++)
        if (set[r].revents)
            return cst_fail(why, COSET_ERR_PEER, r, "rank %d went away while ranks were connecting", r);
    return COSET_OK;
}

static coset_status build(builder *b, cst_deadline deadline, coset_error *why)
{
    const struct pollfd *races = NULL;
    uint64_t stall_ns = (uint64_t)b->config->dead_ms * STALL_FACTOR * 1000000u, moved = cst_now_ns();
    int missing = b->missing;
    for (;;) {
        coset_status status = accept_all(b, why);
        if (!status)
            status = run_races(b, races, deadline, why);
        if (status || !b->missing)
            return status;
        if (b->missing != missing)
            moved = cst_now_ns();
        missing = b->missing;
        if (cst_deadline_passed(deadline))
            return missing_rank(b, COSET_ERR_LATE, why);
        if (cst_now_ns() - moved > stall_ns)
            return missing_rank(b, COSET_ERR_PEER, why);
        int races_at, controls_at;
        cst_deadline until = deadline;
        int n = fill_poll_set(b, &races_at, &controls_at, &until);
        if (n == 0)
            return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
        cst_poll(b->set, n, cst_deadline_left(until, 500));
        races = b->set + races_at;
        status = check_controls(b, b->set + controls_at, why);
        if (status)
            return status;
    }
}

/* This rank has failed, and others wait for it. Ranks above it find nobody listening any more; those below see a
 * connection of its end, which it makes if they have none yet. */
static void leave(builder *b)
{
    cst_deadline until = cst_deadline_in(LAST_WORDS_MS);
    for (int r = 0; r < b->rank; r++) {
        int *fd = &b->fds->control[r];
        cst_routes routes;
        cst_hello hello = hello_for(b, r, b->sockets);
        cst_offer_routes(&b->offers[r], cst_same_host(b->config, b->rank, r), &routes);
        if (*fd < 0 && cst_race_run(&routes, &hello, until, until, fd, NULL))
            *fd = -1;
    }
    cst_mesh_fds_free(b->fds);
}

static coset_status connect_all(builder *b, const coset_oob *oob, const coset_transport_config *config,
                                const cst_offer *offers, int listener, cst_mesh_fds *out, coset_error *why)
{
    b->config = config;
    b->rank = oob->rank;
    b->size = oob->size;
    b->sockets = out->sockets;
    b->offers = offers;
    b->fds = out;
    b->missing = (oob->size - 1) * (out->sockets + 1);
    cst_token token = cst_token_from_number(config->job);
    cst_gate_open(&b->gate, listener, &token, 1u << CST_PURPOSE_DATA | 1u << CST_PURPOSE_CONTROL);
    b->gate.patient = true;
    coset_status status = build(b, cst_deadline_in(config->late_ms), why);
    cst_gate_close(&b->gate);
    for (int i = 0; i < RACES; i++)
        if (b->runner[i].running)
            cst_race_end(&b->runner[i].race);
    if (status)
        leave(b);
    free(b->set);
    return status;
}

/* What can be refused is asked for before the ranks wait for each other. */
static coset_status prepare(const coset_oob *oob, const coset_transport_config *config, int sockets, builder **b,
                            cst_mesh_fds *out, coset_error *why)
{
    const int wanted = (oob->size - 1) * (sockets + 1) + BESIDE + SPARE;
    cst_descriptors room = {0, NULL};
    *b = calloc(1, sizeof **b);
    coset_status status =
        fds_new(out, oob->size, sockets) && *b ? COSET_OK : cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    if (!status)
        status = cst_descriptors_hold(&room, wanted, "transport tcp", why);
    status = cst_agree(oob, "COSET_SOCKETS", status, (uint64_t)sockets, config->late_ms, why);
    cst_descriptors_free(&room);
    return status;
}

coset_status cst_mesh_connect(const coset_oob *oob, const coset_transport_config *config, int sockets,
                              cst_mesh_fds *out, coset_error *why)
{
    int listener;
    builder *b;
    cst_offer *offers = NULL;
    coset_status status = prepare(oob, config, sockets, &b, out, why);
    if (!status)
        status = cst_offer_exchange(oob, config, &listener, &offers, why);
    if (!status) {
        status = connect_all(b, oob, config, offers, listener, out, why);
        status = cst_agree(oob, "connecting", status, 0, config->late_ms, why);
    }
    free(offers);
    free(b);
    if (status)
        cst_mesh_fds_free(out);
    return status;
}
