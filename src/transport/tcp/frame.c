/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/frame.h"

#include "base/hash.h"

#include <endian.h>
#include <string.h>

#define HEAD_MAGIC   0x68545343u /* "CSTh" */
#define TAIL_MAGIC   0x74545343u /* "CSTt" */
#define RECORD_MAGIC 0x72545343u /* "CSTr" */
#define HEAD_SUM_AT  (CST_HEAD_BYTES - 8)

static void put32(uint8_t *at, uint32_t v)
{
    v = htole32(v);
    memcpy(at, &v, sizeof v);
}

static void put64(uint8_t *at, uint64_t v)
{
    v = htole64(v);
    memcpy(at, &v, sizeof v);
}

static uint32_t get32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return le32toh(v);
}

static uint64_t get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return le64toh(v);
}

void cst_head_write(uint32_t tag, uint64_t op, uint64_t bytes, const coset_entry *entry, uint8_t out[CST_HEAD_BYTES])
{
    static const coset_entry none;
    put32(out, HEAD_MAGIC);
    put32(out + 4, tag);
    put64(out + 8, op);
    put64(out + 16, bytes);
    memcpy(out + 24, entry ? entry->bytes : none.bytes, sizeof none.bytes);
    put64(out + HEAD_SUM_AT, cst_hash64(0, out, HEAD_SUM_AT));
}

bool cst_head_read(const uint8_t in[CST_HEAD_BYTES], cst_head *head)
{
    if (get32(in) != HEAD_MAGIC || get64(in + HEAD_SUM_AT) != cst_hash64(0, in, HEAD_SUM_AT))
        return false;
    head->tag = get32(in + 4);
    head->op = get64(in + 8);
    head->bytes = get64(in + 16);
    memcpy(head->entry.bytes, in + 24, sizeof head->entry.bytes);
    return true;
}

void cst_tail_write(bool cancelled, uint64_t sum, uint8_t out[CST_TAIL_BYTES])
{
    put32(out, TAIL_MAGIC);
    put32(out + 4, cancelled);
    put64(out + 8, sum);
}

bool cst_tail_read(const uint8_t in[CST_TAIL_BYTES], bool *cancelled, uint64_t *sum)
{
    uint32_t how = get32(in + 4);
    *cancelled = how == 1;
    *sum = get64(in + 8);
    return get32(in) == TAIL_MAGIC && how <= 1;
}

/* -------- control -------- */

static uint64_t record_sum(const uint8_t *record, size_t bytes)
{
    cst_hash h;
    cst_hash_begin(&h, 0);
    cst_hash_add(&h, record, 8);
    cst_hash_add(&h, record + CST_RECORD_BYTES, bytes - CST_RECORD_BYTES);
    return cst_hash_end(&h);
}

static size_t finish_record(uint8_t *out, uint32_t kind, size_t bytes)
{
    put32(out, RECORD_MAGIC);
    put32(out + 4, kind);
    put64(out + 8, record_sum(out, bytes));
    return bytes;
}

size_t cst_beat_write(uint8_t out[CST_RECORD_BYTES])
{
    return finish_record(out, CST_RECORD_BEAT, CST_RECORD_BYTES);
}

size_t cst_notice_write(const coset_notice *n, uint8_t out[CST_RECORD_BYTES + CST_NOTICE_BYTES])
{
    uint8_t *body = out + CST_RECORD_BYTES;
    _Static_assert(sizeof n->text == CST_NOTICE_BYTES - 24, "the layout has no gap");
    put32(body, (uint32_t)n->kind);
    put32(body + 4, (uint32_t)n->about);
    put32(body + 8, (uint32_t)n->status);
    put32(body + 12, (uint32_t)n->peer);
    put64(body + 16, n->op);
    memset(body + 24, 0, sizeof n->text);
    memcpy(body + 24, n->text, strnlen(n->text, sizeof n->text - 1));
    return finish_record(out, CST_RECORD_NOTICE, CST_RECORD_BYTES + CST_NOTICE_BYTES);
}

static void read_notice(const uint8_t *body, coset_notice *n)
{
    n->kind = (coset_notice_kind)get32(body);
    n->about = (int32_t)get32(body + 4);
    n->status = (coset_status)get32(body + 8);
    n->peer = (int32_t)get32(body + 12);
    n->op = get64(body + 16);
    memcpy(n->text, body + 24, sizeof n->text);
    n->text[sizeof n->text - 1] = 0;
    for (char *c = n->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?'; /* it may end on a terminal */
}

int cst_record_read(const uint8_t *in, size_t got, bool *is_notice, coset_notice *notice)
{
    if (got < CST_RECORD_BYTES)
        return 0;
    uint32_t kind = get32(in + 4);
    if (get32(in) != RECORD_MAGIC || (kind != CST_RECORD_BEAT && kind != CST_RECORD_NOTICE))
        return -1;
    size_t bytes = CST_RECORD_BYTES + (kind == CST_RECORD_NOTICE ? CST_NOTICE_BYTES : 0);
    if (got < bytes)
        return 0;
    if (get64(in + 8) != record_sum(in, bytes))
        return -1;
    *is_notice = kind == CST_RECORD_NOTICE;
    if (*is_notice)
        read_notice(in + CST_RECORD_BYTES, notice);
    return (int)bytes;
}
