/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/hosts.h"

#include <stdlib.h>
#include <string.h>

/* The identities come from other processes: they may lack the zero at the end. */
static bool same_host(const cst_place *a, const cst_place *b)
{
    return !strncmp(a->host, b->host, sizeof a->host);
}

static void look_at_shape(cst_hosts *h)
{
    h->uniform = h->blocks = true;
    for (int i = 1; i < h->count; i++)
        h->uniform = h->uniform && h->local_size[i] == h->local_size[0];
    for (int r = 0; r < h->size; r++)
        h->blocks = h->blocks && r == h->leader[h->host[r]] + h->local[r];
}

int cst_hosts_build(cst_hosts *out, const cst_place *places, int size)
{
    cst_hosts h = {.size = size};
    int *all = calloc(4 * (size_t)size, sizeof *all); /* at most as many hosts as ranks */
    if (!all)
        return -1;
    h.host = all;
    h.local = all + size;
    h.local_size = all + 2 * (size_t)size;
    h.leader = all + 3 * (size_t)size;
    for (int r = 0; r < size; r++) {
        int host = 0;
        while (host < h.count && !same_host(&places[h.leader[host]], &places[r]))
            host++;
        if (host == h.count)
            h.leader[h.count++] = r;
        h.host[r] = host;
        h.local[r] = h.local_size[host]++;
    }
    look_at_shape(&h);
    *out = h;
    return 0;
}

void cst_hosts_free(cst_hosts *hosts)
{
    free(hosts->host); /* one block */
    memset(hosts, 0, sizeof *hosts);
}
