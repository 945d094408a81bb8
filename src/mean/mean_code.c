/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/mean_code.h"

#include "codec/model.h"
#include "codec/wide.h"
#include "mean/same.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float share_of_one(const cst_owner *o)
{
    return 1.0f / (float)o->listen.shared->options.rules.ranks;
}

static cst_block_id mean_block(const cst_owner *o, const cst_block_now *b, int unit)
{
    return (cst_block_id){o->listen.roots[b->layout->span],
                          b->layout->index,
                          (uint32_t)o->listen.rank,
                          CST_PHASE_DOWN,
                          b->layout->n,
                          unit};
}

/* Per unit, the class with which every receiver decodes `value`; false if one needs a modulus that there is not. */
static bool classes_for_all(const cst_owner *o, const cst_block_now *b, cst_block_desc d, const float *value, double a2,
                            uint8_t *classes)
{
    const cst_listener *l = &o->listen;
    const cst_quantise_kernels *kernels = cst_block_kernels(l->tools, d.code);
    uint32_t n = b->layout->n, units = n / CST_UNIT;
    double step = cst_step_value(d.step, b->g->unit);
    /* f32 rounding of values of this size, on both sides */
    double rounding = 0.02 + sqrt((b->s2 + b->r2) * 2) / step * 0x1p-18;
    float need[CST_BLOCK_UNITS] = {0}, most[CST_BLOCK_UNITS] = {0};
    for (int u = 0; u < l->shared->options.rules.ranks; u++) {
        if (u == l->rank)
            continue;
        memset(need, 0, sizeof need);
        kernels->need(value, b->g->x[u], n, (float)a2, (float)step, need);
        double off = a2 * cst_code_reach(b->g->code[u], d.code == CST_CODE_E8) * b->g->step[u] / step + rounding;
        for (uint32_t i = 0; i < units; i++)
            most[i] = fmaxf(most[i], need[i] + (float)off);
    }
    for (uint32_t i = 0; i < units; i++) {
        classes[i] = (uint8_t)cst_class_for(most[i]);
        if (!classes[i])
            return false;
    }
    return true;
}

static void store_mean(const cst_owner *o, const cst_block_now *b, cst_block_desc d, const int32_t *points,
                       float *value)
{
    int unit = cst_step_unit(d.step);
    if (unit != b->g->unit) {
        cst_block_id id = mean_block(o, b, unit);
        cst_lattice_block geometry = cst_block_geometry(o->listen.tools, &id, d);
        cst_block_kernels(o->listen.tools, d.code)->reconstruct(&geometry, points, value);
    }
    cst_vector_store(o->listen.vector, b->g->block, value, unit);
}

/* A block's elements in this rank's memory, where input and output are the same; NULL where they are not. */
static uint8_t *in_place(const cst_vector *v, uint32_t block, size_t *bytes)
{
    const cst_block *b = &v->layout->blocks[block];
    const coset_span *span = &v->spans[b->span];
    size_t element = cst_exact_bytes(v->dtype, false);
    *bytes = element * b->count;
    return span->send == span->recv ? (uint8_t *)span->recv + element * b->offset : NULL;
}

/* Before the result is stored of a block that may not fit into the frame: that is known when its stream ends. */
static bool keep_input(cst_owner *o, const cst_packer *packer, uint32_t block)
{
    size_t bytes, slot = sizeof(double) * CST_BLOCK;
    const uint8_t *elements = in_place(o->listen.vector, block, &bytes);
    if (!elements)
        return true;
    if (packer->in_stream == 0)
        cst_settle_stream(o, packer);
    if (!o->kept)
        o->kept = malloc(slot * CST_STREAM_BLOCKS);
    if (!o->kept)
        return false;
    memcpy(o->kept + slot * o->nkept, elements, bytes);
    o->kept_block[o->nkept++] = block;
    return true;
}

void cst_settle_stream(cst_owner *o, const cst_packer *packer)
{
    size_t bytes, slot = sizeof(double) * CST_BLOCK;
    for (uint32_t i = 0; i < o->nkept; i++) {
        uint8_t *elements = in_place(o->listen.vector, o->kept_block[i], &bytes);
        if (!cst_packer_has(packer, o->kept_block[i] - o->first))
            memcpy(elements, o->kept + slot * i, bytes);
    }
    o->nkept = 0;
}

static bool code_entropy(const cst_mean_coding *c, cst_block_desc d)
{
    const cst_tools *tools = c->o->listen.tools;
    uint32_t n = c->b->layout->n;
    int32_t *points = cst_packer_points(c->packer);
    _Alignas(64) float value[CST_BLOCK];
    if (!points || !keep_input(c->o, c->packer, c->b->g->block))
        return false;
    double step = cst_step_value(d.step, c->b->g->unit);
    d.class = (uint8_t)cst_model_class(c->b->mean_energy / n / (step * step));
    cst_block_id id = mean_block(c->o, c->b, c->b->g->unit);
    cst_lattice_block geometry = cst_block_geometry(tools, &id, d);
    cst_checksum sum = tools->z->quantise_both(&geometry, c->b->g->sum, share_of_one(c->o), points, value);
    store_mean(c->o, c->b, d, points, value);
    cst_packer_entropy(c->packer, c->part, d, sum, n);
    if (c->packer->in_stream == 0)
        cst_settle_stream(c->o, c->packer);
    return true;
}

/* False if it does not fit. */
static bool code_modulo(const cst_mean_coding *c, cst_block_desc d)
{
    const cst_tools *tools = c->o->listen.tools;
    const cst_quantise_kernels *kernels = cst_block_kernels(tools, d.code);
    uint32_t n = c->b->layout->n;
    int32_t points[CST_BLOCK];
    float value[CST_BLOCK];
    uint8_t classes[CST_BLOCK_UNITS];
    cst_block_id id = mean_block(c->o, c->b, c->b->g->unit);
    cst_lattice_block geometry = cst_block_geometry(tools, &id, d);
    cst_checksum sum = kernels->quantise_both(&geometry, c->b->g->sum, share_of_one(c->o), points, value);
    if (!classes_for_all(c->o, c->b, d, value, c->a2, classes)) {
        d.code = CST_CODE_ENTROPY; /* no reference needed */
        return code_entropy(c, d);
    }
    uint8_t nibbles[CST_BLOCK_UNITS];
    d.class = cst_classes_write(classes, n, nibbles);
    size_t side = cst_classes_bytes(n), bytes = cst_packed_bytes(classes, n / CST_UNIT);
    uint8_t *out = cst_packer_room(c->packer, side + bytes);
    if (!out)
        return false;
    memcpy(out, nibbles, side);
    if (d.code == CST_CODE_E8)
        tools->pack->pack_e8(points, n, classes, out + side);
    else
        tools->pack->pack_z(points, n, classes, out + side);
    cst_packer_set(c->packer, c->part, d, sum);
    store_mean(c->o, c->b, d, points, value);
    return true;
}

static bool code_wide(const cst_mean_coding *c, double *mean);

cst_plan cst_plan_mean(const cst_owner *o, const cst_block_now *b, double d2)
{
    if (d2 > 0 && b->planned_d2 == d2)
        return b->plan;
    const cst_shared *s = o->listen.shared;
    double factor = cst_rotation_energy(b->layout->n), share = (double)b->layout->count / b->layout->n;
    uint8_t up = CST_CODE_E8;
    for (int u = 0; u < s->options.rules.ranks; u++)
        if (b->g->step[u] > 0 && b->g->code[u] != CST_CODE_E8)
            up = CST_CODE_Z;
    cst_plan_rules rules = s->options.rules;
    double step = b->largest_step / sqrt(factor);
    cst_plan p = cst_plan_down(&rules, b->s2 * share, b->r2 * share, b->mean_error, d2, up, step);
    const cst_block_plan *ahead = &s->plan[b->g->block];
    if (p.code != CST_CODE_ENTROPY || ahead->kind != CST_PLAN_CODED || ahead->down.code == CST_CODE_ENTROPY)
        return p;
    /* A stream that the frame has no room for has to save more than what it takes beside the codes. */
    const double worth = 0.25;
    rules.may &= ~(unsigned)CST_MAY_ENTROPY;
    cst_plan modulo = cst_plan_down(&rules, b->s2 * share, b->r2 * share, b->mean_error, d2, up, step);
    return modulo.bits < p.bits + worth ? modulo : p;
}

static bool code_with_error(const cst_mean_coding *c)
{
    const cst_block_now *b = c->b;
    double root = sqrt(cst_rotation_energy(b->layout->n));
    cst_plan p = cst_plan_mean(c->o, b, c->d2);
    cst_block_desc d = {p.code, 0, cst_step_index(p.step * root, b->g->unit)};
    /* no coordinate is larger than the norm; only where that could be too large is the largest looked for */
    double largest = sqrt(b->mean_energy);
    if (largest >= 0.99 * CST_E8_LIMIT * cst_step_value(d.step, b->g->unit))
        largest = (double)c->o->listen.tools->norm->stats(b->g->sum, b->layout->n).max * share_of_one(c->o);
    if (d.code == CST_CODE_E8 && largest >= 0.99 * CST_E8_LIMIT * cst_step_value(d.step, b->g->unit))
        d = (cst_block_desc){CST_CODE_Z, 0, cst_step_index(sqrt(12 * c->d2) * root, b->g->unit)};
    if (largest >= 0.99 * CST_Z_LIMIT * cst_step_value(d.step, b->g->unit)) {
        double mean[CST_BLOCK];
        for (uint32_t i = 0; i < b->layout->n; i++)
            mean[i] = (double)b->g->sum[i] * share_of_one(c->o);
        return cst_keep_vectors(c->o, b->g) && code_wide(c, mean);
    }
    return d.code == CST_CODE_ENTROPY ? code_entropy(c, d) : cst_keep_vectors(c->o, b->g) && code_modulo(c, d);
}

/* A frame's last blocks may find a little less room than was expected: then they take a little less. */
static bool code_floats(cst_mean_coding *c)
{
    const double coarser = 1.3;
    for (int attempt = 0; attempt < 4; attempt++) {
        if (code_with_error(c))
            return true;
        if (c->d2 * coarser > c->most)
            break;
        c->d2 *= coarser;
    }
    return false;
}

static double vector_at(const cst_gathered *g, int u, uint32_t n, uint32_t i)
{
    return g->wide ? g->w[(size_t)u * n + i] : (double)g->x[u][i];
}

static bool is_wide(const cst_owner *o, uint32_t block, int u)
{
    const cst_listener *l = &o->listen;
    const cst_heard *h = &l->heard[(size_t)(block - o->first) * (size_t)l->shared->options.rules.ranks + (size_t)u];
    return u == l->rank || h->frame->parts[h->part].desc.code == CST_CODE_WIDE;
}

static bool code_wide(const cst_mean_coding *c, double *mean)
{
    const cst_listener *l = &c->o->listen;
    const cst_block_now *b = c->b;
    uint32_t n = b->layout->n;
    cst_block_desc d = {CST_CODE_WIDE, 0, cst_step_index(sqrt(12 * c->d2 * cst_rotation_energy(n)), b->g->unit)};
    double step = cst_step_value(d.step, b->g->unit), value[CST_BLOCK], most = 0;
    int64_t k[CST_BLOCK];
    cst_block_id id = mean_block(c->o, b, b->g->unit);
    cst_checksum sum = cst_wide_quantise(l->tools, &id, d, mean, k, value);
    /* codes in f32 tell of a vector that was rotated in f32; the receiver's own is not */
    double rounding = sqrt((b->s2 + b->r2) * 2 * cst_rotation_energy(n)) / step * 0x1p-18;
    for (int u = 0; u < l->shared->options.rules.ranks; u++) {
        double off = b->g->step[u] / step + (is_wide(c->o, b->g->block, u) ? 0 : rounding);
        for (uint32_t i = 0; u != l->rank && i < n; i++)
            most = fmax(most, 2 * fabs(value[i] - c->a2 * vector_at(b->g, u, n, i)) / step + off);
    }
    d.class = (uint8_t)(cst_log2(most + 1.1) + 1);
    uint8_t *out = d.class > 62 ? NULL : cst_packer_room(c->packer, cst_block_bytes(d, n, 0, 0));
    if (!out)
        return false;
    cst_wide_pack(k, n, d.class, out);
    cst_packer_set(c->packer, c->part, d, sum);
    int unit = cst_step_unit(d.step);
    id = mean_block(c->o, b, unit);
    if (unit != b->g->unit) /* as receivers do: scaling could round otherwise, or overflow */
        cst_wide_values(l->tools, &id, d, k, value);
    cst_vector_store_wide(l->vector, b->g->block, value, unit);
    return true;
}

static bool code_exact(const cst_mean_coding *c, const double *mean)
{
    const cst_listener *l = &c->o->listen;
    size_t bytes = c->b->layout->count * cst_exact_bytes(l->dtype, true);
    uint8_t *out = cst_packer_room(c->packer, bytes);
    if (!out)
        return false;
    cst_exact_write(l->dtype, mean, c->b->layout->count, out);
    cst_checksum sum = {{cst_bytes_hash(out, bytes, 1), cst_bytes_hash(out, bytes, 2)}};
    cst_packer_set(c->packer, c->part, (cst_block_desc){CST_CODE_EXACT, 0, 0}, sum);
    cst_vector_store_exact(l->vector, c->b->g->block, out);
    return true;
}

static bool code_same(const cst_mean_coding *c)
{
    const cst_vector *v = c->o->listen.vector;
    uint32_t block = c->b->g->block;
    cst_packer_set(c->packer, c->part, (cst_block_desc){CST_CODE_EXACT, CST_CLASS_SAME, 0}, cst_same_check(v, block));
    cst_same_store(v, block);
    return true;
}

static bool code_zero(const cst_mean_coding *c)
{
    cst_packer_set(c->packer, c->part, (cst_block_desc){CST_CODE_ZERO, 0, 0}, (cst_checksum){{0}});
    float zero[CST_BLOCK] = {0};
    cst_vector_store(c->o->listen.vector, c->b->g->block, zero, 0);
    return true;
}

bool cst_code_mean(cst_mean_coding *c, double *mean)
{
    const cst_block_now *b = c->b;
    if (b->g->same)
        return code_same(c);
    if (b->g->exact)
        return code_exact(c, mean);
    if (b->measured && b->s2 == 0 && b->r2 == 0)
        return code_zero(c);
    return b->g->wide ? code_wide(c, mean) : code_floats(c);
}
