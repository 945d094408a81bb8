/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/hostile.h"

#include "base/alloc.h"
#include "transport/channel/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HONEST = 0, HOSTILE = 1, SIZE = 2, BLOCKS = 4, BLOCK_BYTES = 8192, SEGMENT = 5000, MESSAGES = 6 };

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "hostile channel: %s\n", what);
    abort();
}

typedef struct {
    const uint8_t *at;
    size_t left;
} script;

static uint32_t next(script *s, uint32_t bytes)
{
    uint32_t v = 0;
    for (uint32_t i = 0; i < bytes && s->left; i++, s->left--)
        v = v << 8 | *s->at++;
    return v;
}

/* The world of the honest rank: one segment of the peer's that can be mapped, memory that can be pulled or not. */
typedef struct {
    char segment[SEGMENT];
    bool pull_fails;
} world;

static void no_bell(void *self, int peer)
{
    (void)self;
    (void)peer;
}

static coset_location locate(void *self, const void *ptr, size_t bytes)
{
    (void)self;
    (void)ptr;
    (void)bytes;
    return (coset_location){COSET_LOC_NONE, 0, 0};
}

static void *map(void *self, int peer, const coset_location *at, size_t bytes)
{
    world *w = self;
    require(peer == HOSTILE, "map of a rank that does not exist");
    bool inside = at->kind == COSET_LOC_SEGMENT && at->offset <= SEGMENT && bytes <= SEGMENT - at->offset;
    return inside ? w->segment + at->offset : NULL;
}

static coset_status pull(void *self, int peer, const struct iovec *to, int to_count, const struct iovec *from,
                         int from_count)
{
    world *w = self;
    (void)peer;
    (void)from;
    (void)from_count;
    for (int i = 0; i < to_count; i++)
        memset(to[i].iov_base, 7, to[i].iov_len);
    return w->pull_fails ? COSET_ERR_UNSUPPORTED : COSET_OK;
}

typedef struct {
    coset_msg msg[2 * MESSAGES]; /* receives, then sends */
    struct iovec iov[2 * MESSAGES];
    char *memory[2 * MESSAGES];
} traffic;

static const size_t sizes[MESSAGES] = {0, 100, 4096, 5000, 8192, 20000};

static void start_traffic(cst_channel *ch, traffic *t)
{
    for (int i = 0; i < 2 * MESSAGES; i++) {
        size_t bytes = sizes[i % MESSAGES];
        t->memory[i] = calloc(1, bytes + 1);
        t->iov[i] = (struct iovec){t->memory[i], bytes};
        t->msg[i] =
            (coset_msg){.peer = HOSTILE, .op = 1, .tag = (uint32_t)(i % MESSAGES), .iov = &t->iov[i], .iovcnt = 1};
        if (i < MESSAGES)
            cst_channel_irecv(ch, &t->msg[i]);
        else
            cst_channel_isend(ch, &t->msg[i]);
    }
}

static void end_traffic(cst_channel *ch, traffic *t)
{
    for (int i = 0; i < 2 * MESSAGES; i++) {
        if (t->msg[i].status == COSET_IN_PROGRESS)
            cst_channel_cancel(ch, &t->msg[i]);
        coset_status s = t->msg[i].status;
        require(s == COSET_OK || s == COSET_ERR_MISMATCH || s == COSET_ERR_CORRUPT || s == COSET_ERR_ABORTED,
                "a status");
        free(t->memory[i]);
    }
}

/* A value that is often right, sometimes at the edge, sometimes wild. */
static uint32_t about(script *s, uint32_t right)
{
    switch (next(s, 1) % 8) {
    case 0: return right + 1;
    case 1: return right - 1;
    case 2: return next(s, 4);
    case 3: return 0;
    default: return right;
    }
}

static void write_cell(const cst_layout *l, char *honest, uint32_t *written, script *s)
{
    cst_ring *ring = cst_ring_from(l, honest, HOSTILE);
    cst_cell *cell = &ring->cells[*written & (l->cells - 1)];
    uint32_t tag = next(s, 1) % MESSAGES, total = about(s, (uint32_t)sizes[tag]);
    cst_head h = {.kind = (uint8_t)about(s, 1 + next(s, 1) % 4),
                  .pieces = (uint8_t)about(s, 1),
                  .index = (uint16_t)next(s, 1),
                  .tag = tag,
                  .op = 1,
                  .total = total};
    h.length = about(s, h.kind == CST_CELL_OFFER ? 1 : total);
    if (h.kind == CST_CELL_DATA) {
        h.tag = 1;
        h.op = about(s, next(s, 1) % BLOCKS);
        h.length = about(s, BLOCK_BYTES);
    } else if (h.kind == CST_CELL_BLOCK) {
        h.index = (uint16_t)about(s, next(s, 1) % BLOCKS);
    }
    cst_piece pieces[2];
    for (int i = 0; i < 2; i++)
        pieces[i] = (cst_piece){{about(s, COSET_LOC_SEGMENT), about(s, 0), about(s, 0)}, about(s, total)};
    memcpy(cell->payload, pieces, sizeof pieces);
    const size_t skip = sizeof cell->sequence;
    memcpy((char *)&cell->head + skip, (char *)&h + skip, sizeof h - skip);
    atomic_store(&cell->sequence, ++*written);
}

static void act(const cst_layout *l, char *const *areas, uint32_t *written, script *s, world *w)
{
    uint32_t slot = next(s, 1);
    switch (next(s, 1) % 8) {
    case 0: /* the sender's words, as a receiver may write them */
        atomic_store(&cst_slot(l, areas[HONEST], slot % 8)->word,
                     about(s, cst_slot_word(1, (cst_slot_state)(next(s, 1) % 7))));
        break;
    case 1: /* how far it says it has read */
        atomic_store(&cst_ring_from(l, areas[HOSTILE], HONEST)->consumed, about(s, next(s, 1) % 20));
        break;
    case 2: /* its own offers, as the honest rank will find them */
        atomic_store(&cst_slot(l, areas[HOSTILE], slot)->word, cst_slot_word(1, (cst_slot_state)(next(s, 1) % 6)));
        break;
    case 3: w->pull_fails = !w->pull_fails; break;
    case 4: atomic_store(&cst_block_flag(l, areas[HONEST], slot % BLOCKS)->word, next(s, 4)); break;
    default:
        for (uint32_t i = 0; i < CST_SLOTS && !(slot & 64); i++)
            atomic_store(&cst_slot(l, areas[HOSTILE], i)->word, cst_slot_word(1, CST_SLOT_OFFERED));
        write_cell(l, areas[HONEST], written, s);
        break;
    }
}

void hostile_channel(const uint8_t *bytes, size_t count)
{
    script s = {bytes, count};
    world *w = calloc(1, sizeof *w);
    cst_layout l = cst_layout_for(SIZE, BLOCKS, BLOCK_BYTES);
    char *areas[SIZE] = {cst_alloc_aligned(4096, l.bytes), cst_alloc_aligned(4096, l.bytes)};
    cst_channel_backend be = {.self = w,
                              .doorbell = no_bell,
                              .locate = locate,
                              .map = map,
                              .pull = next(&s, 1) & 1 ? pull : NULL,
                              .pull_from = 6000};
    cst_channel *ch = cst_channel_new(HONEST, &l, areas, &be);
    traffic t;
    uint32_t written = 0;
    require(ch, "no memory");
    start_traffic(ch, &t);
    while (s.left) {
        act(&l, areas, &written, &s, w);
        for (int i = 0; i < 3; i++)
            cst_channel_progress(ch);
    }
    end_traffic(ch, &t);
    cst_channel_gone(ch, HOSTILE, COSET_ERR_PEER);
    cst_channel_free(ch);
    free(areas[0]);
    free(areas[1]);
    free(w);
}
