/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/machine.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#ifdef COSET_HAVE_HWLOC
#include <hwloc.h>

static uint64_t cache_of_first(hwloc_topology_t t, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(t, type, 0);
    return cache && cache->attr ? cache->attr->cache.size : 0;
}

static int own_node(hwloc_topology_t t)
{
    int node = -1;
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), nodes = hwloc_bitmap_alloc();
    if (cpus && nodes && !hwloc_get_cpubind(t, cpus, HWLOC_CPUBIND_PROCESS)) {
        hwloc_cpuset_to_nodeset(t, cpus, nodes);
        if (hwloc_bitmap_weight(nodes) == 1)
            node = hwloc_bitmap_first(nodes);
    }
    hwloc_bitmap_free(cpus);
    hwloc_bitmap_free(nodes);
    return node;
}

static bool look_with_hwloc(cst_machine *m)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t))
        return false;
    bool loaded = !hwloc_topology_load(t);
    if (loaded) {
        m->source = "hwloc";
        m->packages = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE);
        m->cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
        m->threads = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
        m->numa_nodes = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
        m->l2_bytes = cache_of_first(t, HWLOC_OBJ_L2CACHE);
        m->l3_bytes = cache_of_first(t, HWLOC_OBJ_L3CACHE);
        m->numa_node = own_node(t);
    }
    hwloc_topology_destroy(t);
    return loaded;
}
#else
static bool look_with_hwloc(cst_machine *m)
{
    (void)m;
    return false;
}
#endif

static uint64_t positive(long value)
{
    return value > 0 ? (uint64_t)value : 0;
}

void cst_machine_look(cst_machine *out)
{
    memset(out, 0, sizeof *out);
    out->numa_node = -1;
    if (look_with_hwloc(out))
        return;
    out->source = "sysconf";
    out->threads = (int)positive(sysconf(_SC_NPROCESSORS_ONLN));
    out->l2_bytes = positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
    out->l3_bytes = positive(sysconf(_SC_LEVEL3_CACHE_SIZE));
}
