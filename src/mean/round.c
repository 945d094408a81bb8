/* SPDX-License-Identifier: Apache-2.0 */
/* A call: begin, next, end, whatever the protocol. */
#include "base/clock.h"
#include "base/error.h"
#include "cpu/fpmode.h"
#include "kernels/flush.h"
#include "mean/internal.h"
#include "mean/public.h"

#include <stdlib.h>

static bool overlaps(const coset_span *s, size_t bytes)
{
    uintptr_t a = (uintptr_t)s->send, b = (uintptr_t)s->recv;
    return a != b && a < b + bytes && b < a + bytes;
}

coset_status cst_mean_check_spans(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype)
{
    coset_error *why = &mean->error;
    if (dtype != COSET_F32 && dtype != COSET_F64 && dtype != COSET_F16 && dtype != COSET_BF16)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "a compressed mean takes f32, f64, f16 or bf16, not %s",
                        coset_dtype_name(dtype));
    if (nspans && !spans)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "spans is NULL");
    for (size_t i = 0; i < nspans; i++) {
        const coset_span *s = &spans[i];
        size_t bytes = s->count * coset_dtype_size(dtype);
        if (s->count > SIZE_MAX / 16)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "tensor %llu: too many elements", (unsigned long long)s->id);
        if (s->count && (!s->send || !s->recv))
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "tensor %llu: NULL buffer", (unsigned long long)s->id);
        if (s->count && overlaps(s, bytes))
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "tensor %llu: send and recv overlap",
                            (unsigned long long)s->id);
    }
    return COSET_OK;
}

/* Finds the tensors and marks them busy; a tensor that already is was named twice. */
static coset_status take_tensors(coset_round *round)
{
    coset_mean *mean = round->mean;
    for (size_t i = 0; i < round->nspans; i++) {
        const coset_span *s = &round->spans[i];
        cst_tensor *t = cst_track_find(&mean->track, s->id);
        if (t && t->busy)
            return cst_fail(&mean->error, COSET_ERR_ARGUMENT, -1, "tensor %llu is in a call already",
                            (unsigned long long)s->id);
        t = cst_track_get(&mean->track, s->id, s->count);
        if (!t)
            return cst_fail(&mean->error, COSET_ERR_MEMORY, -1, "no memory");
        t->busy = true;
        round->tensors[i] = t;
        round->roots[i] = cst_stream_root_of(mean->seed, s->id, t->calls);
    }
    return COSET_OK;
}

/* Tensors that are new are cut into blocks; where those are dealt to owners, in regard to all of the call. */
static coset_status cut_tensors(coset_round *round)
{
    coset_mean *mean = round->mean;
    cst_cut *cut = calloc(round->nspans ? round->nspans : 1, sizeof *cut);
    coset_status status = cut ? COSET_OK : COSET_ERR_MEMORY;
    for (size_t i = 0; cut && i < round->nspans; i++) {
        cut[i] = round->tensors[i]->cut;
        if (!cut[i].block && !mean->protocol->dealt)
            cut[i].block = CST_BLOCK;
    }
    if (!status && mean->protocol->dealt)
        status = cst_layout_choose(round->spans, cut, round->nspans, mean->size);
    for (size_t i = 0; !status && i < round->nspans; i++) {
        if (!round->tensors[i]->cut.block && !cst_tensor_cut(round->tensors[i], &cut[i]))
            status = COSET_ERR_MEMORY;
        round->agreement = cst_tensor_hash(round->tensors[i], round->agreement);
    }
    if (!status)
        status = cst_layout_make(&round->layout, round->spans, cut, round->nspans, &mean->error);
    free(cut);
    return status;
}

static void release(coset_round *round)
{
    if (round->state)
        round->mean->protocol->end(round);
    for (size_t i = 0; i < round->nspans && round->tensors; i++)
        if (round->tensors[i])
            round->tensors[i]->busy = false;
    cst_vector_free(&round->vector);
    cst_layout_free(&round->layout);
    free(round->spans);
    free(round->tensors);
    free(round->roots);
    free(round);
}

static coset_status prepare(coset_round *round, const coset_span *spans)
{
    coset_mean *mean = round->mean;
    size_t n = round->nspans ? round->nspans : 1;
    round->spans = malloc(n * sizeof *round->spans);
    round->tensors = calloc(n, sizeof *round->tensors);
    round->roots = calloc(n, sizeof *round->roots);
    if (!round->spans || !round->tensors || !round->roots)
        return cst_fail(&mean->error, COSET_ERR_MEMORY, -1, "no memory");
    if (round->nspans)
        memcpy(round->spans, spans, round->nspans * sizeof *spans);
    uint64_t seed = (uint64_t)round->dtype << 56 ^ mean->agreement;
    round->agreement = seed + round->nspans;
    coset_status status = take_tensors(round);
    if (!status)
        status = cut_tensors(round);
    if (!status && mean->size > 1 && mean->protocol->blocks)
        status = cst_vector_load(&round->vector, mean->tools, &mean->pace, &round->layout, round->spans, round->roots,
                                 round->dtype);
    if (!status && mean->size > 1)
        status = mean->protocol->begin(round);
    if (status && mean->error.status != status)
        cst_fail(&mean->error, status, -1, "%s", coset_strerror(status));
    return status;
}

static double seconds_since(uint64_t start)
{
    return (double)(cst_now_ns() - start) * 1e-9;
}

coset_status cst_mean_begin(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                            coset_round **out)
{
    uint64_t start = cst_now_ns();
    cst_error_clear(&mean->error);
    coset_status status = cst_mean_check_spans(mean, spans, nspans, dtype);
    if (status)
        return status;
    coset_round *round = calloc(1, sizeof *round);
    if (!round)
        return cst_fail(&mean->error, COSET_ERR_MEMORY, -1, "no memory");
    round->mean = mean;
    round->nspans = nspans;
    round->dtype = dtype;
    round->call = mean->calls;
    status = prepare(round, spans);
    if (status) {
        release(round);
        return status;
    }
    mean->calls++;
    mean->open++;
    round->report.codec_s = seconds_since(start);
    *out = round;
    return COSET_OK;
}

cst_packer cst_borrow_packer(coset_mean *mean)
{
    cst_packer packer = mean->packer;
    mean->packer = (cst_packer){0};
    return packer;
}

void cst_return_packer(coset_mean *mean, cst_packer *packer)
{
    cst_packer_free(&mean->packer); /* of a round that ended earlier */
    mean->packer = *packer;
    *packer = (cst_packer){0};
}

/* One rank alone, or nothing to average: the result is the input. */
static void copy_inputs(const coset_round *round)
{
    for (size_t i = 0; i < round->nspans; i++) {
        const coset_span *s = &round->spans[i];
        if (s->count && s->send != s->recv)
            memcpy(s->recv, s->send, s->count * coset_dtype_size(round->dtype));
    }
}

cst_frame_header cst_header_of(const coset_round *round, cst_frame_kind kind, int pass, int sender, int receiver)
{
    return (cst_frame_header){.kind = (uint8_t)kind,
                              .round = (uint16_t)pass,
                              .sender = (uint16_t)sender,
                              .receiver = (uint16_t)receiver,
                              .call = round->call,
                              .agreement = round->agreement};
}

coset_status cst_hand_out(coset_round *round, coset_xfer *xfer, coset_xfer_kind kind, const void *send, void *recv,
                          size_t bytes, coset_dtype unit)
{
    uint64_t peers = (uint64_t)round->mean->size - 1;
    xfer->kind = kind;
    xfer->send = send;
    xfer->recv = recv;
    xfer->bytes = bytes;
    xfer->unit = unit;
    round->report.transfers++;
    /* An integer all-reduce moves 2 (n-1)/n of its buffer each way, as the best of them do. */
    uint64_t bits =
        kind == COSET_XFER_SUM_WRAP ? 16 * (uint64_t)bytes * peers / (peers + 1) : 8 * (uint64_t)bytes * peers;
    round->report.bits_sent += bits;
    round->report.bits_received += bits;
    return COSET_OK;
}

coset_status cst_mean_next(coset_round *round, coset_xfer *xfer)
{
    coset_xfer x = COSET_XFER_INIT;
    if (round->status)
        return round->status;
    if (!round->finished) {
        uint64_t start = cst_now_ns();
        if (round->mean->size == 1 || round->layout.coords == 0) {
            copy_inputs(round);
        } else {
            cst_fpmode mode = cst_fpmode_enter();
            cst_flush_mode flush = cst_flush_enter();
            cst_error_clear(&round->mean->error);
            round->status = round->mean->protocol->next(round, &x);
            cst_flush_leave(flush);
            cst_fpmode_leave(mode);
        }
        if (round->status && round->mean->error.status != round->status)
            cst_fail(&round->mean->error, round->status, -1, "%s", coset_strerror(round->status));
        if (round->status)
            return round->status;
        round->finished = x.kind == COSET_XFER_DONE;
        round->report.codec_s += seconds_since(start);
    }
    size_t size = xfer->struct_size;
    x.struct_size = size;
    memcpy(xfer, &x, size < sizeof x ? size : sizeof x);
    return COSET_OK;
}

coset_status cst_mean_end(coset_round *round, coset_mean_report *report)
{
    coset_mean *mean = round->mean;
    coset_status status = round->status;
    if (!status && !round->finished)
        status = cst_fail(&mean->error, COSET_ERR_ARGUMENT, -1, "the call was ended before it was finished");
    for (size_t i = 0; i < round->nspans; i++) {
        round->tensors[i]->calls++;
        if (status)
            cst_tensor_forget(round->tensors[i]);
    }
    if (!status && report) {
        round->report.coords = round->layout.coords;
        round->report.struct_size = report->struct_size;
        memcpy(report, &round->report, report->struct_size < sizeof *report ? report->struct_size : sizeof *report);
    }
    mean->open--;
    release(round);
    return status;
}
