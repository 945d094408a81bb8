/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: the last operations of a communicator, written as JSON when something goes wrong or is asked. */
#ifndef CST_COMM_RECORDER_H
#define CST_COMM_RECORDER_H
#include "comm/call.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

/* Enough to see what every rank was doing around a failure; 64 records are 3 KiB. */
#define CST_RECORDS 64

typedef struct {
    uint64_t sequence, count;
    uint64_t began_ns, ended_ns; /* 0: too small an operation to read the clock for (see cst_record_timed) */
    uint8_t kind, dtype, op, algorithm;
    int16_t status; /* COSET_IN_PROGRESS while under way */
    int16_t root;
    char where[32]; /* the step it waited in last */
} cst_record;

typedef struct {
    cst_record ring[CST_RECORDS];
    _Atomic uint64_t written;
} cst_recorder;

/* A record for an operation that begins. Called by the driver of the communicator only. */
cst_record *cst_recorder_begin(cst_recorder *r, const cst_call *call, uint64_t sequence, int timed);
void cst_recorder_end(cst_record *record, coset_status status);
/* All records, oldest first, and `why`, as one JSON object in UTF-8. Any thread: operations that begin or end meanwhile may
 * show in part. Returns 0, or -1 with errno. */
int cst_recorder_write(const cst_recorder *r, int rank, int size, const coset_error *why, FILE *out);
#endif
