/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/nodes.h"

#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

coset_status cst_nodes_find(cst_nodes *n, int size, const char *(*identity)(const void *ctx, int rank), const void *ctx)
{
    size_t count = (unsigned)size;
    *n = (cst_nodes){.node_of = calloc(count, sizeof(int)), .local = calloc(count, sizeof(int))};
    int *ranks_on = calloc(count, sizeof(int));
    if (!n->node_of || !n->local || !ranks_on) {
        free(ranks_on);
        return COSET_ERR_MEMORY;
    }
    for (int r = 0; r < size; r++) {
        int first = 0;
        while (strcmp(identity(ctx, first), identity(ctx, r)))
            first++;
        n->node_of[r] = first == r ? n->nodes++ : n->node_of[first];
        n->local[r] = ranks_on[n->node_of[r]]++;
    }
    n->fewest = size;
    for (int k = 0; k < n->nodes; k++) {
        n->most = ranks_on[k] > n->most ? ranks_on[k] : n->most;
        n->fewest = ranks_on[k] < n->fewest ? ranks_on[k] : n->fewest;
    }
    free(ranks_on);
    return COSET_OK;
}

void cst_nodes_free(cst_nodes *n)
{
    if (n->node)
        cst_comm_destroy(n->node);
    if (n->cross)
        cst_comm_destroy(n->cross);
    free(n->node_of);
    free(n->local);
    *n = (cst_nodes){0};
}

coset_status cst_nodes_make(coset_comm *c, uint64_t sequence)
{
    cst_nodes *n = &c->nodes;
    if (n->made)
        return COSET_OK;
    int local = n->local[c->rank];
    cst_settings inside = c->settings, across = c->settings;
    inside.algorithm = across.algorithm = 0; /* each group chooses for itself */
    inside.transport[0] = 0;                 /* shared memory inside a host, whatever carries the world */
    coset_status status = cst_comm_split_as(c, sequence, 0, n->node_of[c->rank], c->rank, &inside, NULL, &n->node);
    if (status == COSET_OK)
        status =
            cst_comm_split_as(c, sequence, 1, local < n->fewest ? local : -1, c->rank, &across, c->plugin, &n->cross);
    n->made = status == COSET_OK;
    return status;
}
