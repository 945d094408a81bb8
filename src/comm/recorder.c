/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/recorder.h"

#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

cst_record *cst_recorder_begin(cst_recorder *r, const cst_call *call, uint64_t sequence, int timed)
{
    uint64_t number = atomic_load_explicit(&r->written, memory_order_relaxed); /* only the driver counts */
    cst_record *record = &r->ring[number % CST_RECORDS];
    atomic_store_explicit(&r->written, number + 1, memory_order_relaxed);
    record->sequence = sequence;
    record->count = call->count;
    record->began_ns = timed ? cst_now_ns() : 0;
    record->ended_ns = 0;
    record->kind = (uint8_t)call->kind;
    record->dtype = (uint8_t)call->dtype;
    record->op = (uint8_t)call->op;
    record->algorithm = (uint8_t)call->algorithm;
    record->status = COSET_IN_PROGRESS;
    record->root = (int16_t)call->root;
    record->where[0] = 0;
    return record;
}

void cst_recorder_end(cst_record *record, coset_status status)
{
    record->status = (int16_t)status;
    if (record->began_ns)
        record->ended_ns = cst_now_ns();
}

/* Bytes of the character at `s` in UTF-8 (RFC 3629), 0 if it is none: a text may be anybody's, or cut in a character. */
static int utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    int length = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                               : 0;
    for (int i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* overlong, surrogates, beyond U+10FFFF */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return length;
}

static void write_string(FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', out);
    while (*s) {
        int length = utf8_length(s);
        if (!length)
            fputs("\\ufffd", out);
        else if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s < 0x20)
            fprintf(out, "\\u%04x", *s);
        else
            fwrite(s, 1, (size_t)length, out);
        s += length ? length : 1;
    }
    fputc('"', out);
}

static void write_record(FILE *out, const cst_record *r, const char *separator)
{
    fprintf(out,
            "%s\n    {\"op\": %" PRIu64 ", \"kind\": \"%s\", \"count\": %" PRIu64
            ", \"dtype\": \"%s\", \"redop\": \"%s\", \"algorithm\": %u, "
            "\"root\": %d, \"began_ns\": %" PRIu64 ", \"ended_ns\": %" PRIu64 ", \"status\": \"%s\", \"where\": ",
            separator, r->sequence, cst_kind_name(r->kind), r->count, coset_dtype_name((coset_dtype)r->dtype),
            coset_op_name((coset_op)r->op), r->algorithm, r->root, r->began_ns, r->ended_ns,
            coset_strerror((coset_status)r->status));
    write_string(out, r->where);
    fputc('}', out);
}

int cst_recorder_write(const cst_recorder *r, int rank, int size, const coset_error *why, FILE *out)
{
    fprintf(out,
            "{\"rank\": %d, \"size\": %d, \"now_ns\": %" PRIu64 ", \"status\": \"%s\", \"peer\": %d, \"text\": ", rank,
            size, cst_now_ns(), coset_strerror(why->status), why->peer);
    write_string(out, why->text);
    fprintf(out, ",\n  \"operations\": [");
    const uint64_t end = atomic_load(&r->written), first = end < CST_RECORDS ? 0 : end - CST_RECORDS;
    for (uint64_t i = first; i < end; i++)
        write_record(out, &r->ring[i % CST_RECORDS], i == first ? "" : ",");
    fprintf(out, "\n  ]}\n");
    return ferror(out) ? -1 : 0;
}
