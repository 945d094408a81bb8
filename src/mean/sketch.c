/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/sketch.h"

#include "base/error.h"
#include "codec/portable.h"

#include <math.h>
#include <stdlib.h>

/* What an owner tells of a run: s^2, energy of the mean (s^2/n in it), energy of the vectors. */
enum { ENERGIES = 3 };

/* Coordinates per block. Pooled over a tensor, 1024 of them and more say s^2 and the energy of the mean to a few percent (512
 * of many ranks, whose differences all count); more than 16 of a block would cost more than they save. */
static uint32_t samples_of(const cst_sketch *s, const cst_sketch_run *run)
{
    uint32_t blocks = s->tensors[s->layout->blocks[run->first].span]->nblocks;
    uint32_t enough = s->ranks == 2 ? 2048 : s->ranks < 16 ? 1024 : 512;
    uint32_t samples = (enough + blocks - 1) / blocks;
    return samples < 2 ? 2 : samples > 16 ? 16 : samples;
}

static bool wants(const cst_tensor *t)
{
    return !t->known && !cst_small_tensor(t->count);
}

static void find_runs(cst_sketch *s)
{
    for (int j = 0; j < s->ranks; j++)
        for (uint32_t b = s->first[j]; b < s->first[j + 1]; b++) {
            const cst_block *block = &s->layout->blocks[b];
            if (!wants(s->tensors[block->span]))
                continue;
            bool joins = b > s->first[j] && s->layout->blocks[b - 1].span == block->span;
            if (!joins)
                s->runs[s->nruns++] = (cst_sketch_run){.first = b, .owner = j};
            s->runs[s->nruns - 1].end = b + 1;
        }
}

/* Per run a 16-bit exponent, then its floats; per run three energies. */
static void size_frames(cst_sketch *s)
{
    size_t up = 0, down = 0;
    for (uint32_t i = 0; i < s->nruns; i++) {
        bool next = i == 0 || s->runs[i].owner != s->runs[i - 1].owner;
        up = (next ? 0 : up) + 2 + 4 * (size_t)samples_of(s, &s->runs[i]) * (s->runs[i].end - s->runs[i].first);
        down = (next ? 0 : down) + ENERGIES * 2;
        s->up_bytes = up > s->up_bytes ? up : s->up_bytes;
        s->down_bytes = down > s->down_bytes ? down : s->down_bytes;
    }
    if (s->nruns) {
        s->up_bytes += CST_BRIEF_HEADER;
        s->down_bytes += CST_BRIEF_HEADER;
    }
}

coset_status cst_sketch_init(cst_sketch *s, const cst_layout *layout, cst_tensor *const *tensors,
                             const cst_vector *vector, int rank, int ranks)
{
    *s = (cst_sketch){.layout = layout, .tensors = tensors, .vector = vector, .rank = rank, .ranks = ranks};
    size_t blocks = layout->nblocks ? layout->nblocks : 1;
    uint32_t *weights = calloc(blocks, sizeof *weights);
    s->first = calloc((size_t)ranks + 1, sizeof *s->first);
    s->runs = calloc(blocks, sizeof *s->runs);
    bool enough = weights && s->first && s->runs;
    if (enough) {
        for (uint32_t b = 0; b < layout->nblocks; b++)
            weights[b] = layout->blocks[b].n;
        cst_layout_deal(weights, layout->nblocks, ranks, s->first);
        find_runs(s);
        size_frames(s);
    }
    free(weights);
    if (!enough)
        cst_sketch_free(s);
    return enough ? COSET_OK : COSET_ERR_MEMORY;
}

void cst_sketch_free(cst_sketch *s)
{
    free(s->first);
    free(s->runs);
    *s = (cst_sketch){0};
}

static void put_float(cst_writer *w, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    cst_put(w, bits, 4);
}

static float get_float(cst_reader *r)
{
    uint32_t bits = cst_get32(r);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static cst_frame_header filled(cst_frame_header h, cst_frame_kind kind, int sender, int receiver)
{
    h.kind = (uint8_t)kind;
    h.sender = (uint16_t)sender;
    h.receiver = (uint16_t)receiver;
    return h;
}

/* One for all blocks of a run: that of the largest. */
static int exponent_of(const cst_sketch *s, const cst_sketch_run *run)
{
    const int none = -3000;
    int most = none;
    for (uint32_t b = run->first; b < run->end; b++) {
        const cst_own_block *own = &s->vector->own[b];
        most = own->kind == CST_BLOCK_USUAL && own->exponent > most ? own->exponent : most;
    }
    return most == none ? 0 : most;
}

void cst_sketch_write(const cst_sketch *s, int owner, cst_frame_header header, uint8_t *frame)
{
    memset(frame, 0, s->up_bytes);
    cst_writer w = cst_writer_of(frame, s->up_bytes);
    cst_room(&w, CST_BRIEF_HEADER);
    for (uint32_t i = 0; i < s->nruns; i++) {
        const cst_sketch_run *run = &s->runs[i];
        if (run->owner != owner)
            continue;
        int exponent = exponent_of(s, run);
        cst_put(&w, (uint16_t)exponent, 2);
        for (uint32_t b = run->first; b < run->end; b++) {
            float room[CST_BLOCK];
            const float *x = cst_vector_rotated(s->vector, b, room);
            bool finite = s->vector->own[b].kind != CST_BLOCK_EXACT;
            float scale = (float)cst_vector_scale(s->vector, b, exponent);
            for (uint32_t k = 0; k < samples_of(s, run); k++)
                put_float(&w, finite ? x[k] * scale : NAN);
        }
    }
    header = filled(header, CST_FRAME_SKETCH, s->rank, owner);
    cst_brief_seal(frame, &header, s->up_bytes);
}

typedef struct {
    double spread, mean, energy, samples;
    int unit;
} pooled;

/* One block's samples of all ranks, in units of 2^(2 unit). */
static void pool_block(const cst_sketch *s, cst_reader *from, const int *exponents, uint32_t block, uint32_t samples,
                       pooled *p)
{
    double scale = 1 / cst_rotation_energy(s->layout->blocks[block].n);
    double spread = 0, mean = 0, energy = 0;
    for (uint32_t k = 0; k < samples; k++) {
        double sum = 0, squares = 0, first = 0;
        bool alike = true;
        for (int u = 0; u < s->ranks; u++) {
            double x = cst_scale2(get_float(&from[u]), exponents[u] - p->unit);
            first = u == 0 ? x : first;
            alike &= x == first;
            sum += x;
            squares += x * x;
        }
        /* no spread at all says that the ranks have the same, and that must not come of rounding */
        spread += alike ? 0 : fmax(squares - sum * sum / s->ranks, 0x1p-50 * squares);
        mean += sum * sum / s->ranks / s->ranks;
        energy += squares / s->ranks;
    }
    if (!isfinite(spread) || !isfinite(energy))
        return; /* a rank has NaN or Inf in this block */
    p->spread += scale * (spread > 0 ? spread : 0);
    p->mean += scale * mean;
    p->energy += scale * energy;
    p->samples += samples;
}

/* The energy of all ranks' vectors: as sampled, or, where that is no different, this rank's own, which it knows better. */
static double better_energy(const cst_sketch *s, const cst_sketch_run *run, const pooled *p)
{
    double own = 0, coords = 0, sampled = p->energy / p->samples;
    for (uint32_t b = run->first; b < run->end; b++) {
        const cst_block *block = &s->layout->blocks[b];
        coords += block->count;
        own += block->count * cst_scale2(s->vector->own[b].energy, 2 * (s->vector->own[b].exponent - p->unit));
    }
    own /= coords;
    double doubt = 4 * sqrt(2 / p->samples);
    return fabs(own - sampled) < doubt * sampled ? own : sampled;
}

static void answer_runs(const cst_sketch *s, cst_reader *from, int *exponents, cst_writer *w)
{
    for (uint32_t i = 0; i < s->nruns; i++) {
        const cst_sketch_run *run = &s->runs[i];
        if (run->owner != s->rank)
            continue;
        pooled p = {.unit = -3000};
        for (int u = 0; u < s->ranks; u++) {
            exponents[u] = (int16_t)cst_get16(&from[u]);
            p.unit = exponents[u] > p.unit ? exponents[u] : p.unit;
        }
        for (uint32_t b = run->first; b < run->end; b++)
            pool_block(s, from, exponents, b, samples_of(s, run), &p);
        double samples = p.samples > 0 ? p.samples : 1;
        cst_put(w, cst_energy_index(p.spread / samples / (s->ranks - 1), p.unit), 2);
        cst_put(w, cst_energy_index(p.mean / samples, p.unit), 2);
        cst_put(w, cst_energy_index(p.samples > 0 ? better_energy(s, run, &p) : 0, p.unit), 2);
    }
}

coset_status cst_sketch_answer(const cst_sketch *s, const uint8_t *frames, cst_frame_header header, uint8_t *frame,
                               coset_error *why)
{
    cst_reader *from = calloc((size_t)s->ranks, sizeof *from);
    int *exponents = calloc((size_t)s->ranks, sizeof *exponents);
    coset_status status = from && exponents ? COSET_OK : cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for sketches");
    for (int u = 0; !status && u < s->ranks; u++) {
        cst_frame_header want = filled(header, CST_FRAME_SKETCH, u, s->rank);
        status = cst_brief_open(frames + s->up_bytes * (size_t)u, s->up_bytes, &want, &from[u], why);
    }
    if (!status) {
        cst_writer w = cst_writer_of(frame, s->down_bytes);
        memset(frame, 0, s->down_bytes);
        cst_room(&w, CST_BRIEF_HEADER);
        answer_runs(s, from, exponents, &w);
        header = filled(header, CST_FRAME_STATS, s->rank, CST_TO_ALL);
        cst_brief_seal(frame, &header, s->down_bytes);
    }
    free(from);
    free(exponents);
    return status;
}

coset_status cst_sketch_take(cst_sketch *s, int owner, const uint8_t *frame, cst_frame_header header, coset_error *why)
{
    cst_reader r;
    header = filled(header, CST_FRAME_STATS, owner, CST_TO_ALL);
    coset_status status = cst_brief_open(frame, s->down_bytes, &header, &r, why);
    for (uint32_t i = 0; !status && i < s->nruns; i++)
        for (int e = 0; s->runs[i].owner == owner && e < ENERGIES; e++)
            s->runs[i].told[e] = cst_get16(&r);
    return status;
}

/* Means over runs first .. end of one tensor, in units of 2^(2 unit). */
static void pool_runs(const cst_sketch *s, uint32_t first, uint32_t end, int unit, double mean[ENERGIES])
{
    double blocks = 0;
    for (int e = 0; e < ENERGIES; e++)
        mean[e] = 0;
    for (uint32_t i = first; i < end; i++) {
        double weight = s->runs[i].end - s->runs[i].first;
        blocks += weight;
        for (int e = 0; e < ENERGIES; e++)
            mean[e] += weight * cst_energy_value(s->runs[i].told[e], unit);
    }
    for (int e = 0; e < ENERGIES; e++)
        mean[e] /= blocks;
}

/* R^2 can be had from the energy of the mean, less s^2/n, or from that of the vectors, less s^2: of the two the one that
 * is known better. */
static double common_energy(double s2, double mean, double energy, double ranks)
{
    double r2 = mean * mean < s2 * s2 / (ranks - 1) ? mean - s2 / ranks : energy - s2;
    return r2 > 0 ? r2 : 0;
}

void cst_sketch_conclude(cst_sketch *s, bool bits_given)
{
    for (uint32_t first = 0, end; first < s->nruns; first = end) {
        uint32_t span = s->layout->blocks[s->runs[first].first].span;
        uint16_t top = 0;
        for (end = first; end < s->nruns && s->layout->blocks[s->runs[end].first].span == span; end++)
            top = s->runs[end].told[2] > top ? s->runs[end].told[2] : top;
        int unit = ((int)top - 32768) / 32;
        double mean[ENERGIES];
        pool_runs(s, first, end, unit, mean);
        cst_tensor *t = s->tensors[span];
        cst_block_stat stat = {cst_energy_index(mean[0], unit),
                               cst_energy_index(common_energy(mean[0], mean[1], mean[2], s->ranks), unit)};
        for (uint32_t b = 0; b < t->nblocks; b++)
            t->stat[b] = stat;
        const int far = 3 * 16; /* sixteenths of an octave: R^2 eight times s^2 */
        t->margins = bits_given ? (cst_margins){0} : cst_margins_of(stat.r2 > stat.s2 + far);
        t->known = true;
    }
}
