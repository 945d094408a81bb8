/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu.h"
#include "kernels/reduce/reduce.h"
#include "topo/machine.h"
#include "transport/registry.h"

#include <inttypes.h>
#include <stdio.h>

typedef void (*tell)(void *ctx, const char *group, const char *name, const char *value);

static void describe_transport(const coset_transport_ops *ops, tell fn, void *ctx)
{
    char why[256] = "";
    coset_status status = ops->probe ? ops->probe(why, sizeof why) : COSET_OK;
    fn(ctx, "transport", ops->name, !status ? "usable" : why[0] ? why : coset_strerror(status));
}

static void tell_number(tell fn, void *ctx, const char *group, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    fn(ctx, group, name, text);
}

static void describe_machine(tell fn, void *ctx)
{
    cst_machine m;
    cst_machine_look(&m);
    fn(ctx, "machine", "source", m.source);
    tell_number(fn, ctx, "machine", "packages", (uint64_t)m.packages);
    tell_number(fn, ctx, "machine", "cores", (uint64_t)m.cores);
    tell_number(fn, ctx, "machine", "threads", (uint64_t)m.threads);
    tell_number(fn, ctx, "machine", "numa_nodes", (uint64_t)m.numa_nodes);
    tell_number(fn, ctx, "machine", "l2_bytes", m.l2_bytes);
    tell_number(fn, ctx, "machine", "l3_bytes", m.l3_bytes);
}

void coset_describe(void (*fn)(void *ctx, const char *group, const char *name, const char *value), void *ctx)
{
    const coset_transport_ops *ops;
    fn(ctx, "cpu", "level", cst_cpu_name(cst_cpu_level()));
    fn(ctx, "kernel", "reduce", cst_reduce_variant());
    for (int i = 0; (ops = cst_transport_at(i)); i++)
        describe_transport(ops, fn, ctx);
    fn(ctx, "transport", "mpi", COSET_MPI_LIBRARIES);
    describe_machine(fn, ctx);
}
