/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/registry.h"

#include "transport/fault/fault.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"
#include "transport/threads/threads.h"

#include <stdio.h>
#include <string.h>

static const coset_transport_ops *const table[] = {
    &cst_transport_threads,
    &cst_transport_shm,
    &cst_transport_tcp,
};
enum { TABLE = sizeof table / sizeof *table };

const coset_transport_ops *cst_transport_at(int i)
{
    return i >= 0 && i < TABLE ? table[i] : NULL;
}

const coset_transport_ops *cst_transport_find(const char *name)
{
    if (!strncmp(name, "fault:", 6))
        return cst_transport_fault(name + 6);
    for (int i = 0; i < TABLE; i++)
        if (!strcmp(table[i]->name, name))
            return table[i];
    return NULL;
}

void cst_transport_names(char *text, size_t bytes)
{
    size_t used = 0;
    *text = 0;
    for (int i = 0; i < TABLE && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", table[i]->name);
}
