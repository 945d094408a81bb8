/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The saved form of a coset_mean: a frame of kind STATE (docs/wire-format.md). All that later calls depend on is in it, so
 * that a job that goes on from saved states makes the same bits as one that was never stopped.
 */
#ifndef CST_MEAN_SAVED_H
#define CST_MEAN_SAVED_H
#include "mean/track.h"

/* What goes with the tensors. */
typedef struct {
    uint64_t agreement;   /* hash of the options, but for the speed of the link, which jobs measure */
    uint32_t calls;       /* begun so far */
    double link_gbps;     /* that codes were chosen for */
    const uint8_t *hosts; /* saved form of the mean between hosts (hosts.h) */
    size_t hosts_bytes;   /* 0: there is none */
} cst_saved;

size_t cst_saved_bytes(const cst_track *track, size_t hosts_bytes);
/* Tensors in order of ids. `bytes` is what cst_saved_bytes says. MEMORY, or ARGUMENT if there is too little room. */
coset_status cst_saved_write(const cst_track *track, const cst_saved *with, uint8_t *out, size_t bytes);
/* Replaces *track and fills in the rest of *with; `hosts` points into `in`. Both are untouched on failure: CORRUPT;
 * MISMATCH if with->agreement differs; MEMORY. The bytes are untrusted. */
coset_status cst_saved_read(cst_track *track, cst_saved *with, const uint8_t *in, size_t bytes, coset_error *why);
#endif
