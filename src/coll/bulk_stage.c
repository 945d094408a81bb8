/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The staged pipeline. A vector is cut into pieces of N blocks; block q of a piece is summed by rank q. In turn i a rank
 *   gives   piece i:   copies the others' blocks into its staging memory, and raises `given`;
 *   sums    piece i-1: its own block of all ranks, into the result and into staging, and raises `reduced`;
 *   takes   piece i-2: copies the other blocks' sums from the others' staging memory.
 *
 * Three sets of staging memory are enough. Set k mod 3 is filled again with piece k+3 in turn k+3; by then the own
 * "take" of piece k (turn k+2) has seen `reduced` of all, so everybody has read the given blocks of k. Its sums are
 * replaced in turn k+4, which begins by seeing `given` of piece k+3 from everybody, so everybody has taken k (turn k+2).
 */
#include "base/error.h"
#include "coll/bulk.h"
#include "kernels/reduce/reduce.h"

#include <stdlib.h>
#include <string.h>

#define SETS 3
/* Measured (docs/performance.md): with a core per rank large blocks, since lines that another core has just written come
 * faster once they have left its cache; on shared cores blocks that stay in the cache. Smaller ones in large groups. */
#define STAGE_BLOCK              ((size_t)256 << 10)
#define STAGE_BLOCK_SHARED_CORES ((size_t)64 << 10)
#define STAGE_BYTES              ((size_t)16 << 20)

typedef struct {
    size_t pieces, block; /* block: elements */
    size_t turn;
    enum { GIVE, SUM, TAKE } stage;
    int next_peer; /* in TAKE */
} pipeline;

static size_t block_bytes(const coset_comm *c)
{
    size_t best = c->core_each ? STAGE_BLOCK : STAGE_BLOCK_SHARED_CORES;
    size_t fit = STAGE_BYTES / (SETS * ((size_t)c->size + 1));
    return fit < best ? fit & ~(size_t)4095 : best;
}

static coset_status make_staging(coset_comm *c, uint64_t sequence)
{
    cst_members m = cst_members_all(c, sequence);
    coset_oob oob = cst_members_oob(&m);
    coset_error why = COSET_ERROR_INIT;
    c->staging.block = block_bytes(c);
    size_t bytes = SETS * ((size_t)c->size + 1) * c->staging.block;
    coset_status status = c->transport->ops->alloc(c->transport, &oob, bytes, &c->staging.mine, &why);
    if (status != COSET_OK)
        return cst_comm_fail(c, status, -1, sequence, "no shared memory to pass ordinary buffers through: %s",
                             why.text);
    c->staging.where = c->transport->ops->locate(c->transport, c->staging.mine, bytes);
    return COSET_OK;
}

/* Block `index` (0..size-1 given, size: the sum) of set `piece` mod 3 in the staging memory of `rank`. */
static char *stage_at(coset_comm *c, int rank, size_t piece, int index)
{
    size_t shift = (((c->staging.epoch + piece) % SETS) * ((size_t)c->size + 1) + (size_t)index) * c->staging.block;
    if (rank == c->rank)
        return (char *)c->staging.mine + shift;
    coset_location where = c->staging.where;
    where.offset += shift;
    return c->transport->ops->map(c->transport, rank, &where, c->staging.block);
}

/* Elements [begin, begin + count) of the vector that rank q sums in a piece. */
static size_t block_begin(const pipeline *p, const coset_comm *c, size_t piece, int q)
{
    return (piece * (size_t)c->size + (size_t)q) * p->block;
}

static size_t block_count(const pipeline *p, const coset_comm *c, const cst_operation *op, size_t piece, int q)
{
    size_t begin = block_begin(p, c, piece, q), count = op->call.count;
    return begin >= count ? 0 : count - begin < p->block ? count - begin : p->block;
}

coset_status cst_bulk_begin(coset_comm *c, cst_operation *op)
{
    if (!c->staging.mine) {
        coset_status status = make_staging(c, op->sequence);
        if (status != COSET_OK)
            return status;
    }
    pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return cst_comm_fail(c, COSET_ERR_MEMORY, -1, op->sequence, "no memory");
    p->block = c->staging.block / coset_dtype_size(op->call.dtype);
    size_t piece = p->block * (size_t)c->size;
    p->pieces = (op->call.count + piece - 1) / piece;
    op->state = p;
    return COSET_OK;
}

void cst_bulk_end(cst_operation *op)
{
    free(op->state);
}

static void give(coset_comm *c, const cst_operation *op, const pipeline *p)
{
    size_t size = coset_dtype_size(op->call.dtype);
    for (int i = 1; i < c->size; i++) {
        int q = (c->rank + i) % c->size;
        size_t count = block_count(p, c, op, p->turn, q);
        if (count)
            memcpy(stage_at(c, c->rank, p->turn, q), (const char *)op->call.send + block_begin(p, c, p->turn, q) * size,
                   count * size);
    }
    cst_flag_post(&c->control[c->rank]->given.word, c->staging.epoch + (uint32_t)p->turn + 1);
}

static coset_status wait_flag(cst_operation *op, _Atomic uint32_t *word, uint32_t value, int peer)
{
    if (cst_flag_reached(word, value))
        return COSET_OK;
    op->wait = (cst_wait){word, value, peer, 1};
    return COSET_IN_PROGRESS;
}

static coset_status sum(coset_comm *c, cst_operation *op, const pipeline *p)
{
    const cst_call *call = &op->call;
    size_t piece = p->turn - 1, size = coset_dtype_size(call->dtype);
    size_t count = block_count(p, c, op, piece, c->rank), offset = block_begin(p, c, piece, c->rank) * size;
    const void *from[256];
    for (int r = 0; r < c->size; r++) {
        if (r == c->rank) {
            from[r] = (const char *)call->send + offset;
            continue;
        }
        coset_status status = wait_flag(op, &c->control[r]->given.word, c->staging.epoch + (uint32_t)piece + 1, r);
        if (status != COSET_OK)
            return status;
        from[r] = stage_at(c, r, piece, c->rank);
    }
    void *to[2] = {stage_at(c, c->rank, piece, c->size), (char *)call->recv + offset};
    if (count)
        cst_reduce(call->dtype, call->op, to, 2, from, c->size, count, call->op == COSET_AVG ? (unsigned)c->size : 1,
                   0);
    cst_flag_post(&c->control[c->rank]->reduced.word, c->staging.epoch + (uint32_t)piece + 1);
    return COSET_OK;
}

static coset_status take(coset_comm *c, cst_operation *op, pipeline *p)
{
    size_t piece = p->turn - 2, size = coset_dtype_size(op->call.dtype);
    for (; p->next_peer < c->size; p->next_peer++) {
        int q = (c->rank + p->next_peer) % c->size;
        coset_status status = wait_flag(op, &c->control[q]->reduced.word, c->staging.epoch + (uint32_t)piece + 1, q);
        if (status != COSET_OK)
            return status;
        size_t count = block_count(p, c, op, piece, q);
        if (count)
            memcpy((char *)op->call.recv + block_begin(p, c, piece, q) * size, stage_at(c, q, piece, c->size),
                   count * size);
    }
    return COSET_OK;
}

coset_status cst_bulk_step(coset_comm *c, cst_operation *op)
{
    pipeline *p = op->state;
    coset_status status = COSET_OK;
    for (; p->turn < p->pieces + 2; p->turn++, p->stage = GIVE) {
        if (p->stage == GIVE) {
            if (p->turn < p->pieces)
                give(c, op, p);
            p->stage = SUM;
        }
        if (p->stage == SUM) {
            if (p->turn >= 1 && p->turn <= p->pieces)
                status = sum(c, op, p);
            if (status != COSET_OK)
                return status;
            p->stage = TAKE;
            p->next_peer = 1;
        }
        if (p->turn >= 2)
            status = take(c, op, p);
        if (status != COSET_OK)
            return status;
    }
    c->staging.epoch += (uint32_t)p->pieces;
    size_t bytes = op->call.count * coset_dtype_size(op->call.dtype);
    c->direct_sent += 2 * (bytes - bytes / (size_t)c->size);
    c->direct_received += 2 * (bytes - bytes / (size_t)c->size);
    return COSET_OK;
}
