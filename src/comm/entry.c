/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int has_root(cst_kind kind)
{
    return kind == CST_BROADCAST || kind == CST_REDUCE;
}

coset_entry cst_entry_make(const cst_call *call, uint64_t sequence)
{
    cst_kind kind = call->kind == CST_RECV ? CST_SEND : call->kind;
    cst_entry e = {
        .sequence = sequence,
        .count = call->count,
        .kind = (uint8_t)kind,
        .dtype = (uint8_t)call->dtype,
        .op = (uint8_t)call->op,
        .algorithm = (uint8_t)call->algorithm,
        .root = has_root(kind) ? call->root : -1,
        .options = 0,
        .version = COSET_WIRE_VERSION,
    };
    coset_entry out;
    memcpy(&out, &e, sizeof out);
    return out;
}

static const char *side(const cst_entry *e, char *text, size_t size)
{
    if (e->kind == CST_BAD_CALL)
        snprintf(text, size, "a call with wrong arguments");
    else
        snprintf(text, size, "%s", cst_kind_name(e->kind));
    return text;
}

void cst_entry_explain(int rank_a, const coset_entry *a, int rank_b, const coset_entry *b, char *text, size_t size)
{
    cst_entry x, y;
    char p[40], q[40];
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    const char *kind = cst_kind_name(x.kind);
    if (x.version != y.version)
        snprintf(text, size, "rank %d speaks wire version %u, rank %d version %u", rank_a, x.version, rank_b,
                 y.version);
    else if (x.sequence != y.sequence)
        snprintf(text, size, "rank %d is in operation %" PRIu64 " (%s), rank %d in operation %" PRIu64 " (%s)", rank_a,
                 x.sequence, side(&x, p, sizeof p), rank_b, y.sequence, side(&y, q, sizeof q));
    else if (x.kind != y.kind)
        snprintf(text, size, "operation %" PRIu64 ": rank %d called %s, rank %d %s", x.sequence, rank_a,
                 side(&x, p, sizeof p), rank_b, side(&y, q, sizeof q));
    else if (x.count != y.count)
        snprintf(text, size, "operation %" PRIu64 " (%s): rank %d has count %" PRIu64 ", rank %d count %" PRIu64,
                 x.sequence, kind, rank_a, x.count, rank_b, y.count);
    else if (x.dtype != y.dtype)
        snprintf(text, size, "operation %" PRIu64 " (%s): rank %d has dtype %s, rank %d dtype %s", x.sequence, kind,
                 rank_a, coset_dtype_name((coset_dtype)x.dtype), rank_b, coset_dtype_name((coset_dtype)y.dtype));
    else if (x.op != y.op)
        snprintf(text, size, "operation %" PRIu64 " (%s): rank %d has op %s, rank %d op %s", x.sequence, kind, rank_a,
                 coset_op_name((coset_op)x.op), rank_b, coset_op_name((coset_op)y.op));
    else if (x.root != y.root)
        snprintf(text, size, "operation %" PRIu64 " (%s): rank %d has root %d, rank %d root %d", x.sequence, kind,
                 rank_a, x.root, rank_b, y.root);
    else if (x.algorithm != y.algorithm)
        snprintf(text, size, "operation %" PRIu64 " (%s): rank %d uses algorithm %u, rank %d algorithm %u", x.sequence,
                 kind, rank_a, x.algorithm, rank_b, y.algorithm);
    else
        snprintf(text, size, "operation %" PRIu64 " (%s): ranks %d and %d use different options", x.sequence, kind,
                 rank_a, rank_b);
}
