/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/recorder.h"

#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

cst_record *cst_recorder_begin(cst_recorder *r, const cst_call *call, uint64_t sequence, int timed)
{
    cst_record *record = &r->ring[r->written++ % CST_RECORDS];
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

static void write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
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
    uint64_t kept = r->written < CST_RECORDS ? r->written : CST_RECORDS;
    for (uint64_t i = r->written - kept; i < r->written; i++)
        write_record(out, &r->ring[i % CST_RECORDS], i == r->written - kept ? "" : ",");
    fprintf(out, "\n  ]}\n");
    return ferror(out) ? -1 : 0;
}
