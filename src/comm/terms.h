/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other while a communicator is made: who they are and what they want, and then how each of them fares. */
#ifndef CST_COMM_TERMS_H
#define CST_COMM_TERMS_H
#include "base/host.h"
#include "comm/comm.h"

/* Exchanged once; every byte is initialised, so that records can be compared as they are. */
typedef struct {
    uint64_t magic;
    uint32_t wire_version, struct_bytes;
    uint64_t job; /* rank 0's counts */
    char library[16];
    char transport[32];
    int32_t algorithm, progress, rank_order, late_ms, dead_ms, checksum;
    int32_t status;                   /* COSET_ERR_MEMORY: there is none for a communicator */
    int32_t cores;                    /* that the ranks of its host have together, as this one sees it */
    char identity[CST_HOST_ID_BYTES]; /* of the host */
    char host[64];
} cst_terms;

typedef struct {
    int32_t status, blamed; /* the rank that it is about, -1: none */
    char text[184];
} cst_verdict;

void cst_terms_make(cst_terms *out, const cst_settings *settings, coset_status status);
/* Do all terms fit together? MISMATCH or MEMORY, naming a rank: the same on all ranks, since all see the same terms. */
coset_status cst_terms_check(const cst_terms *all, int size, coset_error *why);

/* Collective. Tells all ranks how this one fares, `mine` and *why. OK only if all are; else the verdict of the rank that is
 * the cause, on every rank (but the caller's mistake there is a disagreement elsewhere). `all` has room for everybody's: a
 * rank must be able to say that it is out of memory. */
coset_status cst_verdict_agree(const coset_oob *oob, coset_status mine, int timeout_ms, cst_verdict *all,
                               coset_error *why);
#endif
