/* SPDX-License-Identifier: Apache-2.0 */
/* coset_mean_allreduce of calls that are cut into segments: the same bits whether segments go one by one (shared memory) or
 * several at once (sockets); a rank that dies or disagrees in the middle. */
#include "comm/group.h"

#include <coset_mean.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Two tensors of two and more segments, small ones between them. */
static const size_t counts[] = {2300000, 17, 5000, 3100001};
enum { TENSORS = sizeof counts / sizeof *counts, CALLS = 2 };

typedef struct {
    const char *protocol;
    uint64_t hash[8]; /* of each rank's results */
    int odd_rank;     /* has another seed; -1: none */
    int dying_rank;   /* is killed in the middle; -1: none */
} plan;

static uint64_t hash_of(uint64_t h, const void *data, size_t n)
{
    for (const unsigned char *b = data; n--; b++)
        h = (h ^ *b) * UINT64_C(0x100000001b3);
    return h;
}

static void be_killed(void)
{
    pid_t self = getpid(), killer = fork();
    if (killer == 0) {
        kill(self, SIGKILL);
        _exit(0);
    }
}

static coset_status call(coset_mean *mean, coset_comm *c, float *memory, int number, coset_mean_report *report)
{
    coset_span spans[TENSORS];
    size_t at = 0;
    for (size_t t = 0; t < TENSORS; at += counts[t++])
        spans[t] = (coset_span){t + 1, memory + at, memory + at, counts[t]};
    for (size_t i = 0; i < at; i++)
        memory[i] =
            sinf((float)i * 0.37f + (float)number) + 0.1f * cosf((float)(i % 1000) * (float)(coset_comm_rank(c) + 1));
    return coset_mean_allreduce(mean, spans, TENSORS, COSET_F32, c, report);
}

static int body(coset_comm *c, void *arg)
{
    plan *p = arg;
    int rank = coset_comm_rank(c), size = coset_comm_size(c);
    size_t total = 0;
    for (size_t t = 0; t < TENSORS; t++)
        total += counts[t];
    float *memory = malloc(total * sizeof *memory);
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    o.protocol = p->protocol;
    o.seed = rank == p->odd_rank;
    coset_mean *mean;
    coset_error why = COSET_ERROR_INIT;
    if (!memory || coset_mean_create(rank, size, &o, &mean, &why))
        return group_fail(c, "create: %s", why.text);
    if (rank == p->dying_rank)
        be_killed();
    coset_status status = COSET_OK;
    int died = p->dying_rank >= 0, bad = 0;
    for (int k = 0; !status && (k < CALLS || died); k++) {
        coset_mean_report r = COSET_MEAN_REPORT_INIT;
        status = call(mean, c, memory, k, &r);
        p->hash[rank] = hash_of(p->hash[rank], memory, total * sizeof *memory);
        if (!status && r.coords != total)
            bad = group_fail(c, "%llu of %zu elements reported", (unsigned long long)r.coords, total);
    }
    coset_status wanted = died ? COSET_ERR_PEER : p->odd_rank >= 0 ? COSET_ERR_MISMATCH : COSET_OK;
    bad = bad || group_want(c, status, wanted, "the call");
    coset_last_error(c, &why);
    if (died && !bad && why.peer != p->dying_rank)
        bad = group_fail(c, "rank %d is blamed: %s", why.peer, why.text);
    if (died && !bad && coset_mean_last_error(mean, &why) != COSET_OK)
        bad = group_fail(c, "the mean blames itself for a death: %s", why.text);
    coset_mean_destroy(mean);
    free(memory);
    return bad;
}

static int run(const char *transport, int size, plan *p)
{
    group g = GROUP(transport, size);
    memset(p->hash, 0, sizeof p->hash);
    g.expect_dead = p->dying_rank >= 0;
    return abs(group_run(&g, body, p));
}

static int same_everywhere(plan *p, const char *protocol)
{
    const char *const transports[] = {"threads", "shm", "tcp"};
    uint64_t first = 0;
    int bad = 0;
    p->protocol = protocol;
    for (int size = 2; size <= 3; size++)
        for (size_t i = 0; i < 3; i++) {
            bad += run(transports[i], size, p);
            first = i ? first : p->hash[0];
            for (int r = 0; r < size; r++)
                if (p->hash[r] != first) {
                    fprintf(stderr, "%s, %s, %d ranks: rank %d has other bits\n", protocol, transports[i], size, r);
                    bad++;
                }
        }
    return bad;
}

int main(void)
{
    plan *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 2;
    *p = (plan){.odd_rank = -1, .dying_rank = -1};
    int bad = same_everywhere(p, "sharded-star") + same_everywhere(p, "homomorphic");
    p->odd_rank = 1;
    bad += run("tcp", 3, p) + run("shm", 3, p);
    p->odd_rank = -1;
    p->dying_rank = 1;
    bad += run("tcp", 3, p) + run("shm", 3, p);
    return bad != 0;
}
