/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: control areas, memory of coset_alloc, get and put. */
#include "transport/conformance.h"
#include "transport/drive.h"

#include <stdlib.h>
#include <string.h>

/* Zeroed, aligned, shared, and each rank's own. */
void test_control(rank_env *e)
{
    if (!(e->ops->caps(e->t)->flags & COSET_CAN_CONTROL))
        return;
    for (int r = 0; r < e->size; r++) {
        const unsigned char *area = e->ops->control(e->t, r);
        CHECK(area);
        CHECK_INT((uintptr_t)area % 128, 0);
        for (size_t i = 0; i < e->config.control_bytes; i++)
            CHECK_INT(area[i], 0);
    }
    CHECK(!e->ops->control(e->t, -1));
    CHECK(!e->ops->control(e->t, e->size));
    rank_barrier(e);
    memset(e->ops->control(e->t, e->rank), e->rank + 1, e->config.control_bytes);
    rank_barrier(e);
    for (int r = 0; r < e->size; r++) {
        const unsigned char *area = e->ops->control(e->t, r);
        for (size_t i = 0; i < e->config.control_bytes; i++)
            CHECK_INT(area[i], r + 1);
    }
    rank_barrier(e);
}

typedef struct {
    coset_location at;
} card;

/* Maps every rank's piece [ptr, ptr + bytes) here. */
static void map_all(rank_env *e, const void *ptr, size_t bytes, char **mapped)
{
    card mine = {e->ops->locate(e->t, ptr, bytes)}, all[RANKS_MAX];
    CHECK(mine.at.kind == COSET_LOC_SEGMENT || mine.at.kind == COSET_LOC_ADDRESS);
    CHECK_INT(e->oob.allgather(e->oob.ctx, &mine, all, sizeof mine, 10000), COSET_OK);
    for (int r = 0; r < e->size; r++) {
        mapped[r] = e->ops->map(e->t, r, &all[r].at, bytes);
        CHECK(mapped[r]);
    }
}

static void check_bounds(rank_env *e, char *ptr, size_t bytes)
{
    coset_location at = e->ops->locate(e->t, ptr, bytes);
    if (at.kind != COSET_LOC_SEGMENT) /* in one address space there are no bounds */
        return;
    CHECK_INT(e->ops->locate(e->t, ptr, bytes + 1).kind == COSET_LOC_SEGMENT, false);
    CHECK_INT(e->ops->locate(e->t, ptr - 1, 2).kind == COSET_LOC_SEGMENT, false);
    CHECK_INT(e->ops->locate(e->t, ptr + bytes, 0).kind, COSET_LOC_SEGMENT);
    int peer = e->size - 1;
    coset_location bad = at;
    CHECK(e->ops->map(e->t, peer, &at, bytes));
    CHECK(!e->ops->map(e->t, peer, &at, bytes + 1));
    CHECK(!e->ops->map(e->t, peer, &at, SIZE_MAX));
    CHECK(!e->ops->map(e->t, -1, &at, 1));
    CHECK(!e->ops->map(e->t, e->size, &at, 1));
    bad.offset = bytes;
    CHECK(e->ops->map(e->t, peer, &bad, 0));
    CHECK(!e->ops->map(e->t, peer, &bad, 1));
    bad.offset = UINT64_MAX;
    CHECK(!e->ops->map(e->t, peer, &bad, 1));
    CHECK(!e->ops->map(e->t, peer, &bad, 2));
    bad = at;
    bad.segment = at.segment + 1000;
    CHECK(!e->ops->map(e->t, peer, &bad, 1));
    bad.segment = UINT32_MAX;
    CHECK(!e->ops->map(e->t, peer, &bad, 1));
    bad = at;
    bad.kind = COSET_LOC_ADDRESS;
    CHECK(!e->ops->map(e->t, peer, &bad, 1));
}

/* Memory of several allocations, some released in between, reaches from every rank to every rank. */
void test_segments(rank_env *e)
{
    enum { SEGMENTS = 6 };
    static const size_t sizes[SEGMENTS] = {0, 1, 4096, 100001, 3 << 20, 9 << 20};
    char *own[SEGMENTS], *mapped[RANKS_MAX];
    coset_error why = COSET_ERROR_INIT;
    if (!(e->ops->caps(e->t)->flags & COSET_CAN_MAP))
        return;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < SEGMENTS; i++) {
            void *p = NULL;
            if (e->ops->alloc(e->t, &e->oob, sizes[i], &p, &why))
                rank_fail(__FILE__, __LINE__, "alloc of %zu: %s", sizes[i], why.text);
            own[i] = p;
            CHECK_INT((uintptr_t)p % 64, 0);
            for (size_t k = 0; k < sizes[i]; k++)
                if (own[i][k])
                    rank_fail(__FILE__, __LINE__, "byte %zu of a new segment is not zero", k);
            check_bounds(e, p, sizes[i]);
            memset(p, e->rank + 1, sizes[i]);
        }
        for (int i = 0; i < SEGMENTS; i++) {
            map_all(e, own[i], sizes[i], mapped); /* also a barrier: all have filled theirs */
            for (int r = 0; r < e->size; r++)
                for (size_t k = 0; k < sizes[i]; k += 1 + sizes[i] / 1000)
                    CHECK_INT(mapped[r][k], r + 1);
            rank_barrier(e);
            if (sizes[i]) /* a write into the next rank's memory */
                mapped[(e->rank + 1) % e->size][sizes[i] - 1] = 77;
            rank_barrier(e);
            CHECK_INT(sizes[i] ? own[i][sizes[i] - 1] : 77, 77);
        }
        for (int i = SEGMENTS - 1 - turn; i >= 0; i -= 2 - turn)
            CHECK_INT(e->ops->release(e->t, &e->oob, own[i], &why), COSET_OK);
    }
    /* what is left is freed by destroy */
}

/* Wrong releases are told apart, and lose nothing. */
void test_release_errors(rank_env *e)
{
    void *a = NULL, *b = NULL;
    coset_error why = COSET_ERROR_INIT;
    if (!(e->ops->caps(e->t)->flags & COSET_CAN_MAP))
        return;
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 5000, &a, &why), COSET_OK);
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 5000, &b, &why), COSET_OK);
    /* different sizes */
    void *c = NULL;
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 100 + (size_t)e->rank, &c, &why), COSET_ERR_MISMATCH);
    CHECK(!c);
    /* one rank gives something that is no memory of alloc */
    CHECK_INT(e->ops->release(e->t, &e->oob, e->rank ? a : (char *)a + 1, &why),
              e->rank ? COSET_ERR_MISMATCH : COSET_ERR_ARGUMENT);
    CHECK(strlen(why.text) > 10);
    /* ranks release different segments */
    CHECK_INT(e->ops->release(e->t, &e->oob, e->rank ? a : b, &why), COSET_ERR_MISMATCH);
    memset(a, 1, 5000);
    memset(b, 1, 5000);
    CHECK_INT(e->ops->release(e->t, &e->oob, a, &why), COSET_OK);
    CHECK_INT(e->ops->release(e->t, &e->oob, b, &why), COSET_OK);
    CHECK_INT(e->ops->release(e->t, &e->oob, NULL, &why), COSET_ERR_ARGUMENT);
    /* more than any machine has */
    CHECK_INT(e->ops->alloc(e->t, &e->oob, (size_t)1 << 46, &c, &why), COSET_ERR_MEMORY);
    CHECK_INT(e->ops->alloc(e->t, &e->oob, SIZE_MAX, &c, &why), COSET_ERR_MEMORY);
}

/* Private memory of the peer, read and written without its help. */
void test_get_put(rank_env *e)
{
    enum { BYTES = 3000001 };
    if (!(e->ops->caps(e->t)->flags & COSET_CAN_GET_PUT))
        return;
    int next = (e->rank + 1) % e->size;
    unsigned char *mine = malloc(BYTES), *copy = malloc(BYTES);
    CHECK(mine && copy);
    memset(mine, e->rank + 1, BYTES);
    card me = {e->ops->locate(e->t, mine, BYTES)}, all[RANKS_MAX];
    CHECK_INT(me.at.kind, COSET_LOC_PRIVATE);
    CHECK_INT(e->oob.allgather(e->oob.ctx, &me, all, sizeof me, 10000), COSET_OK);
    CHECK_INT(e->ops->get(e->t, next, &all[next].at, 0, copy, BYTES), COSET_OK);
    for (size_t i = 0; i < BYTES; i++)
        CHECK_INT(copy[i], next + 1);
    rank_barrier(e);
    CHECK_INT(e->ops->put(e->t, next, &all[next].at, 1000, "hello", 5), COSET_OK);
    rank_barrier(e);
    CHECK(!memcmp(mine + 999, (char[]){(char)(e->rank + 1), 'h', 'e', 'l', 'l', 'o', (char)(e->rank + 1)}, 7));
    /* an address that is not there */
    coset_location nowhere = {COSET_LOC_PRIVATE, 0, 64};
    CHECK_INT(e->ops->get(e->t, next, &nowhere, 0, copy, 10), COSET_ERR_SYSTEM);
    CHECK_INT(e->ops->get(e->t, e->size, &all[next].at, 0, copy, 10), COSET_ERR_ARGUMENT);
    CHECK_INT(e->ops->get(e->t, e->rank, &all[next].at, 0, copy, 10), COSET_ERR_ARGUMENT);
    rank_barrier(e);
    free(mine);
    free(copy);
}
