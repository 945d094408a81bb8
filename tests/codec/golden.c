/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/golden.h"

#include "codec/bytes.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- records ---- */

static void append(golden_tape *tape, const void *bytes, size_t n)
{
    tape->at = realloc(tape->at, tape->bytes + n + 1);
    assert_non_null(tape->at);
    if (n)
        memcpy(tape->at + tape->bytes, bytes, n);
    tape->bytes += n;
}

static void append_number(golden_tape *tape, uint64_t v, int bytes)
{
    uint8_t little[8];
    for (int i = 0; i < 8; i++)
        little[i] = (uint8_t)(v >> (8 * i));
    append(tape, little, (size_t)bytes);
}

static void append_head(golden_tape *tape, int kind, int unit, int entries)
{
    append_number(tape, (uint64_t)kind, 1);
    append_number(tape, (uint64_t)unit, 1);
    append_number(tape, (uint64_t)entries, 2);
}

static void append_entry(golden_tape *tape, const void *bytes, size_t n)
{
    append_number(tape, n, 4);
    append(tape, bytes, n);
}

bool golden_next(const golden_tape *tape, size_t *at, golden_part *part)
{
    if (*at == tape->bytes)
        return false;
    cst_reader r = {tape->at + *at, tape->at + tape->bytes, false};
    *part = (golden_part){.kind = cst_get8(&r)};
    part->unit = cst_get8(&r);
    part->entries = cst_get16(&r);
    assert_true(part->entries >= 1 && part->entries <= GOLDEN_MOST_RANKS);
    for (int i = 0; i < part->entries; i++) {
        part->entry[i].bytes = cst_get32(&r);
        part->entry[i].at = cst_take(&r, part->entry[i].bytes);
        assert_non_null(part->entry[i].at);
    }
    *at = (size_t)(r.at - tape->at);
    return true;
}

/* ---- ranks and their vectors ---- */

typedef struct {
    coset_mean *mean;
    coset_round *round;
    coset_xfer xfer;
    int rank, ranks;
    uint8_t *in[GOLDEN_SPANS], *out[GOLDEN_SPANS];
} member;

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* 64 coins, unit variance: integers only, so alike everywhere. */
static double noise(int call, int rank, int span, size_t i)
{
    uint64_t where = mixed(((uint64_t)(call + 1) << 48 | (uint64_t)(rank + 1) << 40 | (uint64_t)span << 32) + i);
    return (__builtin_popcountll(mixed(where + 0x9E3779B97F4A7C15u)) - 32) / 4.0;
}

static void fill(const golden_job *job, member *m, int call)
{
    for (int s = 0; s < GOLDEN_SPANS; s++)
        for (size_t i = 0; i < job->count[s]; i++) {
            double x = job->value(call, m->rank, s, i, noise(call, -1, s, i), noise(call, m->rank, s, i));
            float narrow = (float)x;
            if (job->dtype == COSET_F64)
                memcpy(m->in[s] + 8 * i, &x, 8);
            else
                memcpy(m->in[s] + 4 * i, &narrow, 4);
        }
}

static void join(const golden_job *job, member *m, int rank)
{
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    coset_error why = COSET_ERROR_INIT;
    o.codec = job->codec;
    o.protocol = job->protocol;
    o.bits = job->bits;
    o.y = job->y;
    o.sigma = job->sigma;
    o.seed = 2026;
    *m = (member){.rank = rank, .ranks = job->ranks};
    if (coset_mean_create(rank, job->ranks, &o, &m->mean, &why))
        fail_msg("%s", why.text);
    for (int s = 0; s < GOLDEN_SPANS; s++) {
        m->in[s] = calloc(job->count[s] + 1, coset_dtype_size(job->dtype));
        m->out[s] = calloc(job->count[s] + 1, coset_dtype_size(job->dtype));
        assert_true(m->in[s] && m->out[s]);
    }
}

static void leave(member *m)
{
    coset_mean_destroy(m->mean);
    for (int s = 0; s < GOLDEN_SPANS; s++) {
        free(m->in[s]);
        free(m->out[s]);
    }
}

static void begin(const golden_job *job, member *m, int call)
{
    coset_span spans[GOLDEN_SPANS];
    fill(job, m, call);
    for (int s = 0; s < GOLDEN_SPANS; s++)
        spans[s] = (coset_span){(uint64_t)s + 1, m->in[s], m->out[s], job->count[s]};
    assert_int_equal(coset_mean_begin(m->mean, spans, GOLDEN_SPANS, job->dtype, &m->round), COSET_OK);
}

static void next(member *m)
{
    m->xfer = (coset_xfer)COSET_XFER_INIT;
    if (coset_mean_next(m->round, &m->xfer)) {
        coset_error why = COSET_ERROR_INIT;
        coset_mean_last_error(m->mean, &why);
        fail_msg("%s", why.text);
    }
}

/* ---- what a rank sends, has received, has got ---- */

static size_t sent_bytes(const member *m)
{
    return m->xfer.bytes * (m->xfer.kind == COSET_XFER_ALLTOALL ? (size_t)m->ranks - 1 : 1);
}

static golden_tape sent(const member *m)
{
    golden_tape t = {0};
    if (m->xfer.kind == COSET_XFER_ALLTOALL)
        for (int to = 0; to < m->ranks; to++)
            append(&t, (const uint8_t *)m->xfer.send + m->xfer.bytes * (size_t)to, to == m->rank ? 0 : m->xfer.bytes);
    else if (m->xfer.kind != COSET_XFER_ROUTE)
        append(&t, m->xfer.send, m->xfer.bytes);
    for (size_t i = 0; i < m->xfer.nroutes; i++)
        if (m->xfer.routes[i].send) {
            append_number(&t, (uint64_t)m->xfer.routes[i].peer, 4);
            append_entry(&t, m->xfer.routes[i].send, m->xfer.routes[i].bytes);
        }
    return t;
}

static void deliver_route(const golden_part *part, const coset_route *route, int rank)
{
    int peer = route->peer;
    cst_reader r = {part->entry[peer].at, part->entry[peer].at + part->entry[peer].bytes, false};
    while (r.at < r.end) {
        uint32_t to = cst_get32(&r), bytes = cst_get32(&r);
        const uint8_t *message = cst_take(&r, bytes);
        assert_non_null(message);
        if (to != (uint32_t)rank)
            continue;
        assert_int_equal(bytes, route->bytes);
        memcpy(route->recv, message, bytes);
        return;
    }
    fail_msg("rank %d expects a message of rank %d that was not sent", rank, peer);
}

static void add(uint8_t *to, const uint8_t *x, size_t bytes, size_t width)
{
    for (size_t i = 0; i < bytes; i += width) {
        unsigned carry = 0;
        for (size_t k = 0; k < width; k++) {
            carry += (unsigned)to[i + k] + x[i + k];
            to[i + k] = (uint8_t)carry;
            carry >>= 8;
        }
    }
}

/* Where in what rank u sent that lies which `m` is to have. */
static const uint8_t *block_for(const golden_part *part, const member *m, int u)
{
    size_t block = (size_t)(m->rank - (m->rank > u));
    if (m->xfer.kind != COSET_XFER_ALLTOALL)
        return part->entry[u].at;
    if (u == m->rank)
        return (const uint8_t *)m->xfer.send + m->xfer.bytes * (size_t)u;
    return part->entry[u].at + m->xfer.bytes * block;
}

/* Gives `m` what the record says that all sent. */
static void deliver(const golden_part *part, member *m)
{
    const coset_xfer *x = &m->xfer;
    if (x->kind == COSET_XFER_SUM_WRAP)
        memset(x->recv, 0, x->bytes);
    for (int u = 0; u < part->entries && x->kind != COSET_XFER_ROUTE; u++) {
        assert_int_equal(part->entry[u].bytes, sent_bytes(m));
        const uint8_t *from = block_for(part, m, u);
        if (x->kind == COSET_XFER_SUM_WRAP)
            add(x->recv, from, x->bytes, coset_dtype_size(x->unit));
        else
            memcpy((uint8_t *)x->recv + x->bytes * (size_t)u, from, x->bytes);
    }
    for (size_t i = 0; i < x->nroutes; i++)
        if (x->routes[i].recv)
            deliver_route(part, &x->routes[i], m->rank);
}

/* FNV-1a over the outputs of all tensors, and the first bytes of the first. */
static golden_tape outcome(const golden_job *job, const member *m)
{
    golden_tape t = {0};
    uint64_t h = 0xCBF29CE484222325u;
    size_t width = coset_dtype_size(job->dtype);
    for (int s = 0; s < GOLDEN_SPANS; s++)
        for (size_t i = 0; i < job->count[s] * width; i++)
            h = (h ^ m->out[s][i]) * 0x100000001B3u;
    append_number(&t, h, 8);
    append(&t, m->out[0], job->count[0] * width < GOLDEN_SHOWN ? job->count[0] * width : GOLDEN_SHOWN);
    return t;
}

static golden_tape saved(const member *m)
{
    golden_tape t = {0};
    assert_int_equal(coset_mean_save(m->mean, NULL, &t.bytes), COSET_OK);
    t.at = calloc(t.bytes + 1, 1);
    assert_non_null(t.at);
    assert_int_equal(coset_mean_save(m->mean, t.at, &t.bytes), COSET_OK);
    return t;
}

/* ---- all ranks ---- */

/* Appends a record whose entry u is what of[u] holds, and frees those. */
static void append_record(golden_tape *tape, int kind, int unit, golden_tape *of, int entries)
{
    append_head(tape, kind, unit, entries);
    for (int u = 0; u < entries; u++) {
        append_entry(tape, of[u].at, of[u].bytes);
        free(of[u].at);
    }
}

static void record_transfer(golden_tape *tape, member *m)
{
    size_t at = tape->bytes;
    golden_part part;
    golden_tape all[GOLDEN_MOST_RANKS];
    for (int r = 0; r < m[0].ranks; r++)
        all[r] = sent(&m[r]);
    append_record(tape, (int)m[0].xfer.kind, (int)m[0].xfer.unit, all, m[0].ranks);
    assert_true(golden_next(tape, &at, &part));
    for (int r = 0; r < m[0].ranks; r++)
        deliver(&part, &m[r]);
}

static void record_call(golden_tape *tape, const golden_job *job, member *m, int call)
{
    for (int r = 0; r < job->ranks; r++)
        begin(job, &m[r], call);
    for (;;) {
        for (int r = 0; r < job->ranks; r++) {
            next(&m[r]);
            assert_int_equal(m[r].xfer.kind, m[0].xfer.kind);
        }
        if (m[0].xfer.kind == COSET_XFER_DONE)
            break;
        record_transfer(tape, m);
    }
    for (int r = 0; r < job->ranks; r++)
        assert_int_equal(coset_mean_end(m[r].round, NULL), COSET_OK);
    golden_tape result = outcome(job, &m[0]);
    append_record(tape, COSET_XFER_DONE, 0, &result, 1);
}

golden_tape golden_record(const golden_job *job)
{
    golden_tape tape = {0};
    member m[GOLDEN_MOST_RANKS];
    for (int r = 0; r < job->ranks; r++)
        join(job, &m[r], r);
    for (int call = 0; call < job->calls; call++)
        record_call(&tape, job, m, call);
    golden_tape state = saved(&m[0]);
    append_record(&tape, GOLDEN_STATE, 0, &state, 1);
    for (int r = 0; r < job->ranks; r++)
        leave(&m[r]);
    return tape;
}

/* ---- one rank ---- */

static void compare(const golden_job *job, const char *what, int call, int rank, const golden_part *part, int entry,
                    golden_tape got)
{
    if (got.bytes != part->entry[entry].bytes)
        fail_msg("%s, call %d, rank %d: %s of %zu bytes, golden are %zu", job->name, call, rank, what, got.bytes,
                 part->entry[entry].bytes);
    for (size_t i = 0; i < got.bytes; i++)
        if (got.at[i] != part->entry[entry].at[i])
            fail_msg("%s, call %d, rank %d: %s, byte %zu is 0x%02x, golden is 0x%02x", job->name, call, rank, what, i,
                     got.at[i], part->entry[entry].at[i]);
    free(got.at);
}

static void replay_call(const golden_job *job, const golden_tape *tape, size_t *at, member *m, int call)
{
    golden_part part;
    begin(job, m, call);
    for (;;) {
        next(m);
        assert_true(golden_next(tape, at, &part));
        assert_int_equal(m->xfer.kind, part.kind);
        if (m->xfer.kind == COSET_XFER_DONE)
            break;
        assert_int_equal(m->xfer.unit, part.unit);
        assert_int_equal(part.entries, job->ranks);
        compare(job, "transfer", call, m->rank, &part, m->rank, sent(m));
        deliver(&part, m);
    }
    assert_int_equal(coset_mean_end(m->round, NULL), COSET_OK);
    compare(job, "output", call, m->rank, &part, 0, outcome(job, m));
}

void golden_replay(const golden_job *job, const golden_tape *tape, int rank)
{
    size_t at = 0;
    member m;
    golden_part part;
    join(job, &m, rank);
    for (int call = 0; call < job->calls; call++)
        replay_call(job, tape, &at, &m, call);
    assert_true(golden_next(tape, &at, &part));
    assert_int_equal(part.kind, GOLDEN_STATE);
    compare(job, "state", job->calls, rank, &part, 0, saved(&m));
    leave(&m);
    join(job, &m, rank);
    assert_int_equal(coset_mean_load(m.mean, part.entry[0].at, part.entry[0].bytes), COSET_OK);
    leave(&m);
    assert_false(golden_next(tape, &at, &part));
}
