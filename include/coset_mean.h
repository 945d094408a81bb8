/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compressed mean: every rank ends with the same unbiased estimate of the mean of the ranks' vectors, at a few bits
 * per coordinate, with an error set by how much the ranks disagree and not by how large their vectors are.
 *
 *     coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
 *     options.error_budget = 0.05;                  // excess variance, as a fraction of the sampling variance s^2 / n
 *     coset_mean *mean;
 *     if (coset_mean_create(rank, size, &options, &mean, &why)) ...
 *     for (every step) {
 *         coset_span spans[2] = {{1, w, w, nw}, {2, b, b, nb}};    // tensor id, input, output (here in place), count
 *         coset_mean_report report = COSET_MEAN_REPORT_INIT;
 *         coset_mean_allreduce(mean, spans, 2, COSET_F32, comm, &report);
 *     }
 *     coset_mean_destroy(mean);
 *
 * A coset_mean knows its rank and the number of ranks, not a communicator, so any engine can carry it. The example below
 * is all of it, for MPI; coset_mean_allreduce is the same loop over coset's own collectives:
 *
 *     coset_round *round;
 *     coset_mean_begin(mean, spans, nspans, COSET_F32, &round);
 *     coset_xfer x = COSET_XFER_INIT;
 *     while (coset_mean_next(round, &x) == COSET_OK && x.kind != COSET_XFER_DONE)
 *         switch (x.kind) {
 *         case COSET_XFER_ALLTOALL:  MPI_Alltoall(x.send, x.bytes, MPI_BYTE, x.recv, x.bytes, MPI_BYTE, comm); break;
 *         case COSET_XFER_ALLGATHER: MPI_Allgather(x.send, x.bytes, MPI_BYTE, x.recv, x.bytes, MPI_BYTE, comm); break;
 *         case COSET_XFER_SUM_WRAP:  MPI_Allreduce(x.send, x.recv, x.bytes, MPI_UINT8_T, MPI_SUM, comm); break;
 *         default: ...
 *         }
 *     coset_mean_end(round, &report);
 *
 * What is asked for, kinds and sizes, is the same on all ranks and agreed without talking; so ranks must make the same
 * calls in the same order, with the same options, tensors, counts and dtype, and must have the same history (a rank that
 * joins later loads a state that another saved). Ranks that differ in any of this find out by a hash in every frame:
 * COSET_ERR_MISMATCH.
 *
 * Threads. One thread at a time may be inside calls on one coset_mean and its rounds; several coset_means are independent.
 */
#ifndef COSET_MEAN_H
#define COSET_MEAN_H
#include <coset.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct coset_mean coset_mean;   /* options and what is remembered of each tensor */
typedef struct coset_round coset_round; /* one call under way */

/* One tensor of a call. Inputs are read until the call has ended, outputs written as parts of the result come in; they
 * may be the same memory, no other overlap. */
typedef struct {
    uint64_t id;       /* names the tensor from call to call; no two of a call alike */
    const void *send;
    void *recv;
    size_t count;      /* elements of the call's dtype; zero is fine */
} coset_span;

enum {
    COSET_OBJECTIVE_DEFAULT = 0, /* BITS for coset_mean, TIME for coset_ddp, which measures the link itself */
    COSET_OBJECTIVE_BITS = 1,    /* fewest bits */
    COSET_OBJECTIVE_TIME = 2     /* least time for link_gbps: quicker codes, or none at all if the link is quicker still */
};

/* Zero (or NULL) in any field is the default. All ranks must give the same values. */
typedef struct {
    size_t struct_size;
    const char *codec;    /* "lattice" (default: the planner chooses), "lattice:z", "lattice:e8", "lattice:entropy", "none",
                             or a baseline with its parameters, "qsgd:linf,bucket=512" (docs/codecs.md) */
    const char *protocol; /* "sharded-star" (default), "star", "tree", "homomorphic", "robust", "sublinear" (half a bit to one
                             per coordinate for a known y; unbiased, but with an error of many y: for want of bits only) */
    double error_budget;  /* excess variance over s^2/n that is allowed; default 0.05 */
    double bits;          /* if > 0: bits per coordinate and phase instead of a budget (2 x bits over both phases; the split
                             is the planner's); for codecs and protocols without a planner, bits per coordinate */
    double y;             /* star, tree, sublinear: known bound on the Euclidean distance of any two ranks' vectors */
    double sigma;         /* star, tree, robust: known sigma, E|x - mean|^2 <= sigma^2 */
    uint64_t seed;        /* of the shared randomness */
    int objective;        /* COSET_OBJECTIVE_... */
    double link_gbps;     /* COSET_OBJECTIVE_TIME: what the link carries each way, 10^9 bytes per second */
    int parameter;        /* tree: Algorithm 4's m; star, robust: q; 0: a default */
} coset_mean_options;
#define COSET_MEAN_OPTIONS_INIT {sizeof(coset_mean_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* What a call did. Set struct_size. */
typedef struct {
    size_t struct_size;
    uint64_t coords;          /* elements averaged */
    uint64_t bits_sent;       /* by this rank, everything counted: headers, statistics, checksums, repairs, padding */
    uint64_t bits_received;
    uint64_t transfers;       /* how many transfers the call took: 2 when nothing had to be repaired */
    double spread2;           /* estimated variance between ranks per coordinate (n - 1 in the denominator) */
    double mean2;             /* estimated energy of the mean per coordinate */
    double predicted_excess;  /* E|estimate - mean|^2 over the sampling variance, as the owners' steps imply it */
    uint64_t repaired;        /* blocks (of one sender) for which more digits had to be sent */
    uint64_t corrected;       /* blocks whose decoding was corrected by their checksum alone */
    uint64_t refined;         /* blocks whose step turned out too coarse and was refined */
    uint64_t exact;           /* blocks sent exactly: not finite, or too small to be worth a code */
    int plain;                /* 1: everything was sent exactly, since the link is faster than the codecs */
    double codec_s;           /* seconds of encoding and decoding on this rank, the wait for transfers not counted */
} coset_mean_report;
#define COSET_MEAN_REPORT_INIT {sizeof(coset_mean_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* ARGUMENT: rank or size out of range (size up to 65535), an unknown codec or protocol, a number out of range, a
 * combination that does not exist; the text says what would. Not collective. `options` and `why` may be NULL. */
coset_status coset_mean_create(int rank, int size, const coset_mean_options *options, coset_mean **mean, coset_error *why);
/* Frees it; NULL is a no-op. Its rounds must have ended. */
void coset_mean_destroy(coset_mean *mean);

/* A transfer that the engine has to carry before the next coset_mean_next. The buffers belong to the round and stay
 * where they are until then. */
typedef enum {
    COSET_XFER_DONE = 0,
    COSET_XFER_ALLTOALL,  /* send, recv: size * bytes; block i for, from rank i */
    COSET_XFER_ALLGATHER, /* send: bytes; recv: size * bytes, in order of ranks */
    COSET_XFER_SUM_WRAP,  /* send, recv: bytes; element-wise sum of unsigned `unit`s with wrap-around over all ranks */
    COSET_XFER_ROUTE      /* the messages of `routes`, each to or from one peer */
} coset_xfer_kind;

typedef struct {
    int peer;
    const void *send; /* NULL if this message is received */
    void *recv;       /* NULL if it is sent */
    size_t bytes;
} coset_route; /* at most one message each way between two ranks in one transfer */

typedef struct {
    size_t struct_size;
    coset_xfer_kind kind;
    const void *send;
    void *recv;
    size_t bytes;      /* ALLTOALL: per peer; ALLGATHER: per rank; SUM_WRAP: all */
    coset_dtype unit;  /* SUM_WRAP: COSET_U8, COSET_U32 or COSET_U64; else COSET_U8 */
    const coset_route *routes; /* ROUTE: this rank's messages; may be none */
    size_t nroutes;
} coset_xfer;
#define COSET_XFER_INIT {sizeof(coset_xfer), COSET_XFER_DONE, 0, 0, 0, COSET_U8, 0, 0}

/* Starts a call. The spans are copied, the vectors are not. dtype: COSET_F32, F64, F16 or BF16. A tensor may be in one
 * round at a time; rounds of different tensors may be under way together, if all ranks begin them in the same order.
 * ARGUMENT: no float dtype, an id twice or in another round, NULL with a count, send and recv overlapping otherwise than
 * in place. MEMORY. On failure nothing has begun. */
coset_status coset_mean_begin(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                              coset_round **round);
/* Takes in what the last transfer brought and says what to carry next; COSET_XFER_DONE: the outputs are complete.
 * CORRUPT: bytes from a peer failed a check that no repair can mend; MISMATCH: ranks differ; MEMORY. After an error the
 * round can only be ended, the outputs are undefined, and other ranks may wait for this one: abort the engine. */
coset_status coset_mean_next(coset_round *round, coset_xfer *xfer);
/* Ends the call, finished or not, and frees it. *report (may be NULL) is written only if it was finished. COSET_OK, or
 * the error that coset_mean_next returned, or ARGUMENT if the call was not finished: the tensors' statistics are then
 * forgotten. */
coset_status coset_mean_end(coset_round *round, coset_mean_report *report);
/* Why a call on this coset_mean or a round of it failed last. Returns out->status. */
coset_status coset_mean_last_error(const coset_mean *mean, coset_error *out);

/* begin, the loop over coset's collectives, end. Collective; blocking. On an error of its own (MISMATCH, CORRUPT, MEMORY)
 * the communicator is aborted, so that no other rank waits.
 *
 * A call of more than half a million coordinates is cut into several (tensors into pieces with ids of their own), and over a
 * network one is coded while others are on the wire.
 *
 * Where several ranks share a host (several hosts, as many ranks on each), the protocols sharded-star and homomorphic are exact
 * inside the hosts and compressed between them: the vectors that are compressed are then the hosts' means, each rank of a
 * host taking its share of them, and the report counts the bits that this rank exchanges with other hosts. s^2 / n, and so
 * the meaning of error_budget, is the same for ranks that differ at random. link_gbps is that of a host. What is remembered
 * of the tensors' shares lives as long as the communicator, and in saved states. A communicator with an all-reduce algorithm other than
 * auto and hier, or with rank_order, keeps the ranks' vectors apart instead. */
coset_status coset_mean_allreduce(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                                  coset_comm *comm, coset_mean_report *report);

/* What is remembered of the tensors, between calls. save: *bytes is the room in buf on entry and what is needed on return;
 * buf NULL only asks. ARGUMENT if the room is too small or a round is under way. MEMORY. load replaces everything: CORRUPT,
 * MISMATCH (other options, size, seed or format) or MEMORY leave it as it was.
 *
 * If every rank loads what it has saved itself, the job goes on bit for bit as if it had not been stopped. A state fits
 * other ranks too, those of a job that never stopped included: all get the same bits and the same accuracy. They are those of the
 * unstopped job if nothing in the state is a rank's own: how far its vector was from the last mean (of vectors near to each other
 * compared to their length, as models are and gradients are not), and, where several ranks share a host, what is
 * remembered of its share. link_gbps is taken from the state, since links are measured anew by each job. */
coset_status coset_mean_save(const coset_mean *mean, void *buf, size_t *bytes);
coset_status coset_mean_load(coset_mean *mean, const void *buf, size_t bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
