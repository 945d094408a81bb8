/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire.h"

#include "base/error.h"
#include "codec/portable.h"
#include "codec/model.h"
#include "kernels/pack/pack.h"

#include <endian.h>

static const uint8_t magic[4] = {'C', 'S', 'T', 'F'};

static inline uint64_t hash_word(uint64_t h, uint64_t w)
{
    h = (h ^ w) * 0xD6E8FEB86659FD93u; /* odd: a bijection, so that no single damaged word goes unseen */
    return h ^ h >> 32;
}

uint64_t cst_bytes_hash(const void *bytes, size_t n, uint64_t seed)
{
    const uint8_t *p = bytes;
    uint64_t h = seed ^ (uint64_t)n * 0x9E3779B97F4A7C15u, w;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&w, p, 8);
        h = hash_word(h, le64toh(w));
    }
    if (n) {
        w = 0;
        memcpy(&w, p, n);
        h = hash_word(h, le64toh(w));
    }
    h *= 0xD6E8FEB86659FD93u;
    return h ^ h >> 29;
}

size_t cst_frame_tables(const cst_frame_header *h)
{
    size_t each = h->kind == CST_FRAME_UP ? 4 + CST_CHECK_BYTES : h->kind == CST_FRAME_DOWN ? 8 + CST_CHECK_BYTES : 0;
    return (size_t)h->blocks * each + (size_t)h->requests * CST_REQUEST_BYTES;
}

static uint64_t frame_hash(const uint8_t *frame, size_t payload)
{
    uint64_t h = cst_bytes_hash(frame, CST_FRAME_CHECKED, 0);
    return cst_bytes_hash(frame + CST_FRAME_HEADER, payload - CST_FRAME_HEADER, h);
}

void cst_frame_seal(uint8_t *frame, const cst_frame_header *h)
{
    cst_writer w = cst_writer_of(frame, CST_FRAME_HEADER);
    cst_put_bytes(&w, magic, sizeof magic);
    cst_put(&w, CST_WIRE_FORMAT, 1);
    cst_put(&w, h->kind, 1);
    cst_put(&w, h->round, 2);
    cst_put(&w, h->sender, 2);
    cst_put(&w, h->receiver, 2);
    cst_put(&w, h->call, 4);
    cst_put(&w, h->agreement, 8);
    cst_put(&w, h->first_block, 4);
    cst_put(&w, h->blocks, 4);
    cst_put(&w, h->requests, 4);
    cst_put(&w, h->error, 2);
    cst_put(&w, h->corrected, 2);
    cst_put(&w, h->payload, 8);
    cst_put(&w, h->used, 8);
    cst_put(&w, h->need_up, 8);
    cst_put(&w, h->need_down, 8);
    cst_put(&w, frame_hash(frame, (size_t)h->payload), 8);
}

static bool header_read(cst_reader *r, cst_frame_header *h)
{
    h->kind = cst_get8(r);
    h->round = cst_get16(r);
    h->sender = cst_get16(r);
    h->receiver = cst_get16(r);
    h->call = cst_get32(r);
    h->agreement = cst_get64(r);
    h->first_block = cst_get32(r);
    h->blocks = cst_get32(r);
    h->requests = cst_get32(r);
    h->error = cst_get16(r);
    h->corrected = cst_get16(r);
    h->payload = cst_get64(r);
    h->used = cst_get64(r);
    h->need_up = cst_get64(r);
    h->need_down = cst_get64(r);
    return !r->bad && h->kind >= CST_FRAME_SKETCH && h->kind <= CST_FRAME_COLOURS;
}

coset_status cst_frame_open(const uint8_t *frame, size_t bytes, cst_frame_header *h, coset_error *why)
{
    if (bytes < CST_FRAME_HEADER)
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "a frame of %zu bytes is too short for its header", bytes);
    cst_reader r = cst_reader_of(frame, CST_FRAME_HEADER);
    if (memcmp(cst_take(&r, 4), magic, 4) != 0)
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "not a frame of the compressed mean");
    unsigned version = cst_get8(&r);
    if (version != CST_WIRE_FORMAT)
        return cst_fail(why, COSET_ERR_MISMATCH, -1, "frame format %u, this library has %d", version, CST_WIRE_FORMAT);
    if (!header_read(&r, h))
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "a frame header has a field out of range");
    uint64_t hash = cst_get64(&r);
    if (h->used > bytes || h->payload > h->used || h->payload < CST_FRAME_HEADER ||
        h->payload - CST_FRAME_HEADER != cst_frame_tables(h))
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "a frame's lengths do not fit (%zu bytes)", bytes);
    if (frame_hash(frame, (size_t)h->payload) != hash)
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "a frame's header or tables are damaged");
    return COSET_OK;
}

coset_status cst_frame_expect(const cst_frame_header *h, const cst_frame_header *want, coset_error *why)
{
    int peer = want->sender;
    if (h->kind != want->kind || h->round != want->round || h->sender != want->sender || h->receiver != want->receiver)
        return cst_fail(why, COSET_ERR_CORRUPT, peer,
                        "expected frame kind %u, round %u, from rank %u to %u; got kind %u, round %u, from %u to %u",
                        want->kind, want->round, want->sender, want->receiver, h->kind, h->round, h->sender,
                        h->receiver);
    if (h->agreement != want->agreement)
        return cst_fail(why, COSET_ERR_MISMATCH, peer,
                        "rank %d has other options, tensors or statistics for this compressed mean (it says "
                        "%016llx, this rank %016llx): all ranks need the same, also after loading a saved state",
                        peer, (unsigned long long)h->agreement, (unsigned long long)want->agreement);
    if (h->call != want->call)
        return cst_fail(why, COSET_ERR_CORRUPT, peer, "a frame of call %u came in call %u", h->call, want->call);
    return COSET_OK;
}

void cst_body_seal(uint8_t *frame, const cst_frame_header *header, size_t used, size_t capacity)
{
    cst_frame_header h = *header;
    h.payload = CST_FRAME_HEADER;
    h.used = used;
    cst_writer hash = cst_writer_of(frame + CST_FRAME_HEADER, 8);
    cst_put(&hash, cst_bytes_hash(frame + CST_BODY_AT, used - CST_BODY_AT, 0), 8);
    memset(frame + used, 0, capacity - used);
    cst_frame_seal(frame, &h);
}

bool cst_body_open(const uint8_t *frame, const cst_frame_header *h, cst_reader *body)
{
    *body = cst_reader_of(frame + CST_FRAME_HEADER, (size_t)(h->used - CST_FRAME_HEADER));
    uint64_t hash = cst_get64(body);
    return !body->bad && hash == cst_bytes_hash(body->at, (size_t)(body->end - body->at), 0);
}

static uint64_t brief_tag(const cst_frame_header *h)
{
    uint8_t bytes[20];
    cst_writer w = cst_writer_of(bytes, sizeof bytes);
    cst_put(&w, CST_WIRE_FORMAT, 1);
    cst_put(&w, h->kind, 1);
    cst_put(&w, h->round, 2);
    cst_put(&w, h->sender, 2);
    cst_put(&w, h->receiver, 2);
    cst_put(&w, h->call, 4);
    cst_put(&w, h->agreement, 8);
    return cst_bytes_hash(bytes, sizeof bytes, 0);
}

void cst_brief_seal(uint8_t *frame, const cst_frame_header *h, size_t bytes)
{
    cst_writer w = cst_writer_of(frame, CST_BRIEF_HEADER);
    cst_put(&w, brief_tag(h), 8);
    cst_put(&w, cst_bytes_hash(frame + CST_BRIEF_HEADER, bytes - CST_BRIEF_HEADER, 0), 8);
}

coset_status cst_brief_open(const uint8_t *frame, size_t bytes, const cst_frame_header *want, cst_reader *body,
                            coset_error *why)
{
    int peer = want->sender;
    *body = cst_reader_of(frame, bytes);
    uint64_t tag = cst_get64(body), hash = cst_get64(body);
    if (body->bad)
        return cst_fail(why, COSET_ERR_CORRUPT, peer, "a frame of %zu bytes is too short for its header", bytes);
    if (tag != brief_tag(want))
        return cst_fail(
            why, COSET_ERR_MISMATCH, peer,
            "rank %d has other options, tensors or statistics for this compressed mean: all ranks need the same, "
            "also after loading a saved state",
            peer);
    if (hash != cst_bytes_hash(body->at, (size_t)(body->end - body->at), 0))
        return cst_fail(why, COSET_ERR_CORRUPT, peer, "the sketch or statistics of rank %d are damaged", peer);
    return COSET_OK;
}

/* Which codes use a class, and up to where; which need a step. */
static const struct {
    uint8_t class_low, class_high;
    bool step;
} code_rules[CST_CODE_COUNT] = {
    [CST_CODE_EXACT] = {0, CST_CLASS_SAME, false},
    [CST_CODE_Z] = {CST_CLASS_MIN, CST_CLASS_MAX, true},
    [CST_CODE_E8] = {CST_CLASS_MIN, CST_CLASS_MAX, true},
    [CST_CODE_ENTROPY] = {0, CST_MODELS - 1, true},
    [CST_CODE_WIDE] = {1, 62, true},
    [CST_CODE_PLAIN] = {1, 64, true},
};

uint32_t cst_desc_pack(cst_block_desc d)
{
    return (uint32_t)d.code | (uint32_t)d.class << 3 | d.step << 10;
}

bool cst_desc_unpack(uint32_t bits, cst_block_desc *d)
{
    d->code = bits & 7;
    d->class = bits >> 3 & 127;
    d->step = bits >> 10;
    if (d->class < code_rules[d->code].class_low || d->class > code_rules[d->code].class_high)
        return false;
    if ((d->code == CST_CODE_Z || d->code == CST_CODE_E8) && !cst_class_valid(d->class))
        return false;
    if (d->code == CST_CODE_PLAIN && d->class > 16 && d->class != 32 && d->class != 64)
        return false;
    return code_rules[d->code].step ? d->step >= CST_STEP_LOW && d->step <= CST_STEP_HIGH : d->step == 0;
}

uint32_t cst_step_index(double x, int exponent)
{
    int own = cst_exponent(x), e = own + exponent;
    if (e < -1140)
        return CST_STEP_LOW;
    if (e >= 1023)
        return CST_STEP_HIGH;
    double m = cst_scale2(x, -own); /* 1 <= m < 2 */
    return (uint32_t)(e + 2048) << 10 | (uint32_t)((m - 1) * 1024);
}

double cst_step_value(uint32_t index, int exponent)
{
    return cst_scale2(1 + (double)(index & 1023) / 1024, (int)(index >> 10) - 2048 - exponent);
}

uint16_t cst_energy_index(double x, int exponent)
{
    if (!(x > 0))
        return 0;
    double i = 16 * (cst_log2(x) + 2.0 * exponent) + 32768.5;
    return i < 1 ? 1 : i > 65535 ? 65535 : (uint16_t)i;
}

double cst_energy_value(uint16_t index, int exponent)
{
    return index ? cst_exp2(((double)index - 32768) / 16 - 2.0 * exponent) : 0;
}

void cst_request_write(uint8_t *at, cst_request r)
{
    cst_writer w = cst_writer_of(at, CST_REQUEST_BYTES);
    cst_put(&w, r.block, 4);
    cst_put(&w, r.sender, 2);
    cst_put(&w, r.ask, 1);
    cst_put(&w, r.arg, 1);
}

bool cst_request_read(const uint8_t *at, cst_request *r)
{
    cst_reader in = cst_reader_of(at, CST_REQUEST_BYTES);
    r->block = cst_get32(&in);
    r->sender = cst_get16(&in);
    r->ask = cst_get8(&in);
    r->arg = cst_get8(&in);
    return r->ask >= CST_ASK_DIGITS && r->ask <= CST_ASK_REFINE;
}
