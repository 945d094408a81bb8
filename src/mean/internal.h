/* SPDX-License-Identifier: Apache-2.0 */
/* What a coset_mean and a call under way are made of, and what a protocol has to offer. */
#ifndef CST_MEAN_INTERNAL_H
#define CST_MEAN_INTERNAL_H
#include "codec/block.h"
#include "codec/parts.h"
#include "mean/hosts.h"
#include "mean/layout.h"
#include "mean/pool.h"
#include "mean/shared.h"
#include "mean/track.h"
#include "mean/vector.h"

#include <coset_mean.h>

typedef struct cst_protocol cst_protocol;

struct coset_mean {
    int rank, size;
    const cst_protocol *protocol;
    cst_plan_options plan; /* `element` is filled in per call */
    uint64_t seed;
    uint64_t options;   /* hash of size and options, but for the speed of the link */
    uint64_t agreement; /* hash of all of them */
    double link_gbps;   /* COSET_OBJECTIVE_TIME: what the link carries, given or loaded; else 0 */
    uint32_t calls;
    int open; /* rounds under way */
    cst_track track;
    coset_error error;
    cst_tools *tools;
    cst_pool pool;
    cst_pace pace;
    cst_packer packer;     /* its buffers, between calls (cst_borrow_packer) */
    void *settings;        /* the protocol's own, freed by it */
    cst_mean_hosts *hosts; /* for communicators where ranks share hosts; NULL: they are all alike to this protocol */
};

struct coset_round {
    coset_mean *mean;
    coset_span *spans;
    size_t nspans;
    coset_dtype dtype;
    cst_tensor **tensors;   /* per span */
    cst_stream_root *roots; /* per span */
    cst_layout layout;
    cst_vector vector; /* loaded if the protocol asks for it */
    uint32_t call;
    uint64_t agreement; /* of the mean, the spans and what is tracked of them */
    void *state;        /* the protocol's */
    coset_status status;
    bool finished;
    coset_mean_report report;
};

struct cst_protocol {
    const char *name;
    bool dealt;     /* deals blocks to owners: few are cut smaller */
    size_t segment; /* coordinates of the calls that a long one is cut into (cuts.h); 0: it must be whole */
    bool blocks;    /* works on rotated blocks: round->vector is loaded before begin */
    /* Checks the options that concern it, at creation; NULL: none do. May set mean->settings. */
    coset_status (*configure)(coset_mean *mean, const coset_mean_options *options, coset_error *why);
    coset_status (*begin)(coset_round *round);
    /* Takes in the last transfer, fills `xfer` with the next. COSET_XFER_DONE once the outputs are complete. */
    coset_status (*next)(coset_round *round, coset_xfer *xfer);
    void (*end)(coset_round *round);   /* frees round->state, which may be NULL */
    void (*destroy)(coset_mean *mean); /* frees mean->settings; NULL if there are none */
};

extern const cst_protocol cst_sharded_star;
extern const cst_protocol cst_star, cst_sublinear, cst_tree, cst_robust, cst_homomorphic;
extern const cst_protocol cst_plain;      /* sharded-star without compression */
extern const cst_protocol cst_codec_star; /* sharded-star with a baseline codec */

/* From which speed of the link on (10^9 bytes per second each way) plain f32 is quicker than codes. */
double cst_mean_breakeven_gbps(int size);

/* Are the arguments of a call in order? Else ARGUMENT, with mean->error filled in. */
coset_status cst_mean_check_spans(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype);

/* A packer whose buffers have their size already, if no other round of this mean has it; and back again. */
cst_packer cst_borrow_packer(coset_mean *mean);
void cst_return_packer(coset_mean *mean, cst_packer *packer);
/* Of a frame in pass (round) `pass` of the call under way; other fields zero. */
cst_frame_header cst_header_of(const coset_round *round, cst_frame_kind kind, int pass, int sender, int receiver);

/* Counts a transfer in the report and hands it out. */
coset_status cst_hand_out(coset_round *round, coset_xfer *xfer, coset_xfer_kind kind, const void *send, void *recv,
                          size_t bytes, coset_dtype unit);
#endif
