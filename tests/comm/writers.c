/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A communicator is destroyed while its operation is under way and a peer writes into this rank's memory: after destroy has
 * returned that memory is the program's again, and nobody writes there.
 */
#include "comm/comm.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 100000 };
static coset_comm *comms[2];
static int32_t send[2][N], sum[2][N];

static void *other_rank(void *status)
{
    *(coset_status *)status = coset_allreduce(send[1], sum[1], N, COSET_I32, COSET_SUM, comms[1]);
    return NULL;
}

static int touching(const coset_comm *c)
{
    return cst_flag_value(&c->control[1]->busy.word) & 1;
}

int main(void)
{
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    coset_error why = COSET_ERROR_INIT;
    coset_request *r;
    pthread_t thread;
    coset_status status;
    int done, written = 0;
    setenv("COSET_FAULT", "rank=1,at=map,times=0,do=delay:100", 1); /* between finding out that it may, and writing */
    o.transport = "fault:threads";
    o.progress = COSET_PROGRESS_CALLER;
    if (coset_comm_create_threads(2, &o, comms, &why) ||
        coset_iallreduce(send[0], sum[0], N, COSET_I32, COSET_SUM, comms[0], &r) || coset_test(r, &done) ||
        pthread_create(&thread, NULL, other_rank, &status))
        return 2;
    while (!touching(comms[0]))
        sched_yield();
    coset_comm_destroy(comms[0]);
    for (int i = 0; i < N; i++)
        sum[0][i] = 7;
    pthread_join(thread, NULL);
    for (int i = 0; i < N; i++)
        written += sum[0][i] != 7;
    coset_comm_destroy(comms[1]);
    printf("%d elements written after destroy; the other rank: %s\n", written, coset_strerror(status));
    return written || (status != COSET_OK && status != COSET_ERR_PEER);
}
