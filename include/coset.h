/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coset: the mean of vectors held by many ranks, exact or compressed without bias.
 *
 * THE MINIMAL PROGRAM
 *
 *     coset_comm *comm;
 *     coset_error why = COSET_ERROR_INIT;
 *     if (coset_comm_create_env(NULL, &comm, &why)) { fprintf(stderr, "%s\n", why.text); return 1; }
 *     float *grad;
 *     coset_alloc(comm, n * sizeof *grad, (void **)&grad);      // or any memory of your own: slower
 *     ... fill grad ...
 *     coset_allreduce(grad, grad, n, COSET_F32, COSET_AVG, comm);
 *     coset_free(comm, grad);
 *     coset_comm_destroy(comm);
 *
 * started as `coset run -n 4 -- ./program`, or under mpirun, srun or torchrun.
 *
 * RULES THAT HOLD FOR EVERY CALL
 *
 * Order.      On one communicator every rank makes the same collective calls in the same order; communicators are
 *             independent of each other. A difference (kind, count, dtype, op, root, codec) is detected and every
 *             rank gets COSET_ERR_MISMATCH naming two ranks and both values.
 * Counts      are elements of the dtype, size_t, zero allowed (the call still has to be made by every rank).
 * In place    means send == recv, for reduce-scatter and all-gather as stated there. Any other overlap of the two
 *             buffers is an argument error.
 * Results     are written only on success; after a failure the receive buffers are undefined, and live peers may
 *             write into them until coset_comm_destroy or coset_comm_shrink has returned.
 * Same bits.  Every rank ends with the same bits, for every algorithm, transport and mixture of processors.
 * Threads.    Functions may be called from any thread; calls on one communicator are put in order by the order in
 *             which they are made, so threads that share one must agree on that order themselves.
 * Fork.       A child made by fork() may not use the parent's communicators (COSET_ERR_UNSUPPORTED); its exit does
 *             not disturb them.
 * The library never exits, prints (but to the log sink that COSET_DEBUG asks for), or installs signal handlers.
 */
#ifndef COSET_H
#define COSET_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define COSET_VERSION_MAJOR 0
#define COSET_VERSION_MINOR 1
#define COSET_VERSION_PATCH 0
/* Version of what ranks say to each other. Ranks of different wire versions refuse each other at creation. */
#define COSET_WIRE_VERSION 1

/* "0.1.0"; a constant string. */
const char *coset_version(void);

/* What this build can do on this machine: fn is called once per fact, before the call returns, with strings that live
 * that long. Groups and names: "cpu" ("level"), "kernel" (a kind of inner loop; the value is the variant chosen),
 * "transport" (each one known; the value is "usable", or one line that says why not), "machine" ("source": "hwloc" or
 * "sysconf"; "packages", "cores", "threads", "numa_nodes", "l2_bytes", "l3_bytes" of one core; 0: unknown). */
void coset_describe(void (*fn)(void *ctx, const char *group, const char *name, const char *value), void *ctx);

typedef struct coset_comm coset_comm;       /* a group of ranks: this rank's end of it */
typedef struct coset_request coset_request; /* an operation under way */

/* -------------------------------------------------------------------------------------------------------------
 * Status. The groups say what is lost: 1.. the call only; 16.. nothing, not finished; 32.. the communicator, on
 * which only abort, last_error, destroy and shrink remain useful; 64.. the system refused something. Numbers are stable.
 */
typedef enum {
    COSET_OK = 0,
    COSET_ERR_ARGUMENT = 1,    /* an argument of this call is wrong; the text says which and why */
    COSET_ERR_UNSUPPORTED = 2, /* this build, machine or option cannot do it; the text says what can */
    COSET_ERR_MEMORY = 3,      /* out of memory (or the host's shared memory is full) */
    COSET_IN_PROGRESS = 16,    /* not finished; the request is still owned by the caller */
    COSET_ERR_PEER = 32,       /* a rank died or fell silent; the error names it */
    COSET_ERR_LATE = 33,       /* a rank did not arrive within late_ms; the error names it */
    COSET_ERR_MISMATCH = 34,   /* ranks disagree about the call, an option or the version; both values are named */
    COSET_ERR_ABORTED = 35,    /* coset_comm_abort was called here or on another rank */
    COSET_ERR_CORRUPT = 36,    /* bytes from a peer or a file failed a check */
    COSET_ERR_SYSTEM = 64      /* a system call failed; the text has its name and errno */
} coset_status;

/* One line for a status, without context; a constant string, never NULL. */
const char *coset_strerror(coset_status status);

/* What went wrong, where. Caller-owned; set struct_size (COSET_ERROR_INIT). */
typedef struct {
    size_t struct_size;
    coset_status status;
    int rank;       /* the rank that reports, -1 if unknown */
    int peer;       /* the rank that is the cause, -1 if none */
    uint64_t op;    /* operation number on the communicator (0 is the first), UINT64_MAX outside operations */
    char host[64];  /* host of `peer`, or of `rank` if there is no peer */
    char text[256]; /* one line: what happened and what to do */
} coset_error;
#define COSET_ERROR_INIT {sizeof(coset_error), COSET_OK, -1, -1, UINT64_MAX, {0}, {0}}

/* -------------------------------------------------------------------------------------------------------------
 * Elements and operators.
 * Sums of integers wrap. 16-bit floats are accumulated in f32 and rounded once. AVG is the sum, then one division
 * by the number of ranks (integers: truncated towards zero). MIN and MAX: if any input is NaN the result is NaN;
 * -0 is less than +0. Every NaN that a reduction produces is the canonical quiet NaN of its type.
 */
typedef enum {
    COSET_F32 = 0, COSET_F64, COSET_F16, COSET_BF16, COSET_I8, COSET_U8, COSET_I32, COSET_U32, COSET_I64, COSET_U64
} coset_dtype;
#define COSET_DTYPE_COUNT 10
typedef enum { COSET_SUM = 0, COSET_AVG, COSET_MIN, COSET_MAX, COSET_PROD } coset_op;
#define COSET_OP_COUNT 5

/* Bytes of one element; 0 for a value that is no dtype. */
size_t coset_dtype_size(coset_dtype dtype);
/* "f32", "sum": constant strings; "?" for a value that is none. */
const char *coset_dtype_name(coset_dtype dtype);
const char *coset_op_name(coset_op op);

/* -------------------------------------------------------------------------------------------------------------
 * Creating a communicator.
 */
enum { COSET_PROGRESS_THREAD = 0, COSET_PROGRESS_CALLER = 1 };

struct coset_transport_ops; /* coset_transport.h: a transport of the user's own */

/* Zero (or NULL) in any field is the default. All ranks must give the same values (checked at creation). */
typedef struct {
    size_t struct_size;
    const char *transport; /* "threads", "shm", "tcp", "mpi", "fault:NAME"; default: COSET_TRANSPORT, else shm on one
                              host, tcp on several */
    const char *algorithm; /* all-reduce algorithm (docs/algorithms.md); default: COSET_ALGO, else "auto" */
    int progress;          /* COSET_PROGRESS_THREAD: a sleeping thread drives asynchronous operations nobody waits for;
                              COSET_PROGRESS_CALLER: operations advance only inside coset_ calls (MPI's FUNNELED) */
    int rank_order;        /* 1: sums are taken in rank order, so results depend on no message size, segment or
                              transport; COSET_RANK_ORDER=1 does the same */
    int late_ms;           /* a rank that does not arrive in this time is late: default 600000 (COSET_LATE_MS) */
    int dead_ms;           /* a silent host is dead after this time: default 10000 (COSET_DEAD_MS) */
    int checksum;          /* 1: exact payload over the network carries checksums too (compressed blocks always do) */
    const struct coset_transport_ops *plugin; /* a transport of the caller's own; overrides `transport` */
} coset_comm_options;
#define COSET_COMM_OPTIONS_INIT {sizeof(coset_comm_options), 0, 0, 0, 0, 0, 0, 0, 0}

/* Looks at all COSET_ variables that are set (docs/environment.md), also those that nothing in this process would read.
 * fn (may be NULL) is called, before the call returns, with one line for each unknown name (status COSET_OK: it has no
 * effect), and for the first value that means nothing; that one makes the call return COSET_ERR_ARGUMENT. The create calls
 * look by themselves, and log unknown names. */
coset_status coset_check_environment(void (*fn)(void *ctx, coset_status status, const char *line), void *ctx);

/* The one primitive every bootstrap reduces to. `allgather` collects `bytes` from each rank into recv[size * bytes],
 * in rank order; it blocks until all have given theirs or timeout_ms has passed (COSET_ERR_LATE). It is used only
 * until the create call returns, always from the thread that called create. Wraps MPI_Allgather, a c10d Store, ... */
typedef struct {
    size_t struct_size;
    int rank, size;
    void *ctx;
    coset_status (*allgather)(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms);
} coset_oob;

/* Names a job: made on one rank, given to all others by any means (as ncclUniqueId). */
typedef struct { uint8_t bytes[128]; } coset_unique_id;

/* Makes an id. The calling process listens on a port until rank 0's coset_comm_create_id takes it over; so rank 0's
 * process makes it. COSET_ERR_SYSTEM if no usable address is found. */
coset_status coset_unique_id_create(coset_unique_id *id);

/* The create calls are collective and block until all ranks have joined, or the deadline (late_ms) has passed.
 * *comm is written only on success; `why` may be NULL, and is filled on failure. `options` may be NULL.
 * ARGUMENT: rank or size out of range, an option or environment value that means nothing. PEER, LATE: a rank is
 * missing (named). MISMATCH: options, library or wire versions differ. SYSTEM: the network or shared memory refused. */

/* Rank and size from COSET_RANK and COSET_SIZE, or torchrun's, Open MPI's, PMI's or Slurm's variables; meeting point
 * from COSET_ROOT=host:port, else MASTER_ADDR with MASTER_PORT + 1, else Slurm's first host; else, with all ranks on
 * this host, a socket named by the job (COSET_JOB). docs/environment.md has all variables. */
coset_status coset_comm_create_env(const coset_comm_options *options, coset_comm **comm, coset_error *why);
coset_status coset_comm_create_id(const coset_unique_id *id, int rank, int size, const coset_comm_options *options,
                                  coset_comm **comm, coset_error *why);
/* `path` names a file, which must not exist before, on a file system that all ranks share; removed when all have joined. */
coset_status coset_comm_create_file(const char *path, int rank, int size, const coset_comm_options *options,
                                    coset_comm **comm, coset_error *why);
coset_status coset_comm_create_oob(const coset_oob *oob, const coset_comm_options *options, coset_comm **comm,
                                   coset_error *why);
/* All ranks of one process at once: comms[0..size) are written, comms[r] to be used by one thread as rank r. Not
 * collective. */
coset_status coset_comm_create_threads(int size, const coset_comm_options *options, coset_comm *comms[],
                                       coset_error *why);

/* A communicator per color, ranks ordered by (key, old rank), with the options of `comm`. Collective; color < 0 gives
 * *sub = NULL. The two are independent: each is destroyed, in any order. Errors as of any collective, and MEMORY, SYSTEM. */
coset_status coset_comm_split(coset_comm *comm, int color, int key, coset_comm **sub);
/* The ranks that still live, after COSET_ERR_PEER or an abort; collective among them; blocks until they agree
 * (a survivor that does not come is late after late_ms). Old ranks keep their order. Poisoned `comm` must still be destroyed. */
coset_status coset_comm_shrink(coset_comm *comm, coset_comm **survivors);
/* Makes every pending and later operation on every rank return COSET_ERR_ABORTED. Local, never blocks, any thread. */
coset_status coset_comm_abort(coset_comm *comm, const char *why);
/* Frees the communicator and returns OK; NULL is a no-op. Not collective: says goodbye and waits (bounded) until no peer can still
 * write into this rank's memory. Outstanding requests end with COSET_ERR_ABORTED first, their callbacks are called, and
 * they are freed: their handles are invalid afterwards. */
coset_status coset_comm_destroy(coset_comm *comm);

/* The first error that poisoned the communicator, else the last one of a call on it. Any thread. Returns out->status. */
coset_status coset_last_error(const coset_comm *comm, coset_error *out);
/* -1 for NULL. */
int coset_comm_rank(const coset_comm *comm);
int coset_comm_size(const coset_comm *comm);
/* "shm", "tcp", ...; valid as long as the communicator. */
const char *coset_comm_transport(const coset_comm *comm);
/* A descriptor that polls readable while completed requests wait to be collected; with COSET_PROGRESS_CALLER while
 * coset_progress may have something to do, and -1 on transports that have none (threads, shm, mpi). Owned by the
 * communicator. */
int coset_comm_fd(const coset_comm *comm);

/* Counters since creation; those of the communicators that it made for the ranks of a host and between hosts count. */
typedef struct {
    size_t struct_size;
    uint64_t operations;       /* operations completed */
    uint64_t sent_bytes;       /* payload that others took from this rank: messages, and what they read of its memory or
                                  it wrote into theirs */
    uint64_t received_bytes;
    uint64_t wire_sent_bytes;  /* with headers */
    uint64_t wire_received_bytes;
    double wait_s;             /* time in which this rank had nothing to do but wait for others */
} coset_stats;
/* Set out->struct_size. Any thread. */
coset_status coset_comm_stats(const coset_comm *comm, coset_stats *out);
/* Writes the last operations (flight recorder) as JSON to `path`; done by itself, to COSET_FLIGHT_FILE, on an error. Any
 * thread. SYSTEM if the file cannot be written. */
coset_status coset_comm_flight(const coset_comm *comm, const char *path);

/* Memory that every rank of the host can reach directly: collectives on it need no copy. Collective, the same `bytes`
 * on every rank; zeroed, 64-byte aligned, populated in every process. Owned by the communicator: coset_free or
 * coset_comm_destroy frees it. MEMORY if /dev/shm-like memory is exhausted. */
coset_status coset_alloc(coset_comm *comm, size_t bytes, void **ptr);
/* Collective. ARGUMENT if ptr is not a pointer that coset_alloc gave. */
coset_status coset_free(coset_comm *comm, void *ptr);

/* -------------------------------------------------------------------------------------------------------------
 * Collectives. Blocking until this rank's part is done: its send buffer may be reused and its result is there.
 */
coset_status coset_allreduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op,
                             coset_comm *comm);
/* send has size * recvcount elements. In place: recv == send + rank * recvcount elements. */
coset_status coset_reduce_scatter(const void *send, void *recv, size_t recvcount, coset_dtype dtype, coset_op op,
                                  coset_comm *comm);
/* recv has size * sendcount elements. In place: send == recv + rank * sendcount elements. */
coset_status coset_allgather(const void *send, void *recv, size_t sendcount, coset_dtype dtype, coset_comm *comm);
/* send and recv have size * count_per_peer elements, block i for / from rank i. Not in place. */
coset_status coset_alltoall(const void *send, void *recv, size_t count_per_peer, coset_dtype dtype, coset_comm *comm);
/* send is read on the root only, and may be NULL elsewhere. */
coset_status coset_broadcast(const void *send, void *recv, size_t count, coset_dtype dtype, int root, coset_comm *comm);
/* recv is written on the root only, and may be NULL elsewhere. */
coset_status coset_reduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op, int root,
                          coset_comm *comm);
coset_status coset_barrier(coset_comm *comm);

/* Point to point. Messages between two ranks match in the order of the calls; count and dtype must be equal on both
 * sides. A send may block until the receive is posted. They are not part of the collectives' order, and wait as long as
 * their peer lives, whatever late_ms: coset_isend, coset_irecv and coset_wait bound it. */
coset_status coset_send(const void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm);
coset_status coset_recv(void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm);

/* Asynchronous forms: the buffers belong to the library until the request is done. *request is written on success. */
coset_status coset_iallreduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op,
                              coset_comm *comm, coset_request **request);
coset_status coset_ireduce_scatter(const void *send, void *recv, size_t recvcount, coset_dtype dtype, coset_op op,
                                   coset_comm *comm, coset_request **request);
coset_status coset_iallgather(const void *send, void *recv, size_t sendcount, coset_dtype dtype, coset_comm *comm,
                              coset_request **request);
coset_status coset_ialltoall(const void *send, void *recv, size_t count_per_peer, coset_dtype dtype, coset_comm *comm,
                             coset_request **request);
coset_status coset_ibroadcast(const void *send, void *recv, size_t count, coset_dtype dtype, int root, coset_comm *comm,
                              coset_request **request);
coset_status coset_ireduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op, int root,
                           coset_comm *comm, coset_request **request);
coset_status coset_ibarrier(coset_comm *comm, coset_request **request);
coset_status coset_isend(const void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm,
                         coset_request **request);
coset_status coset_irecv(void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm,
                         coset_request **request);

/* *done = 1 when the operation has ended; never blocks, drives the communicator a little. The request stays owned. */
coset_status coset_test(coset_request *request, int *done);
/* Waits until the operation has ended, at most timeout_ms (< 0: as long as it takes). COSET_IN_PROGRESS at the timeout:
 * the request is alive and still owned. Otherwise the operation's status; the request is freed and *request = NULL. One
 * thread waits for a request. */
coset_status coset_wait(coset_request **request, int timeout_ms);
/* Calls fn(ctx, status) once, when the operation ends, on the thread that drives it (at once if it has ended). fn may
 * start operations but must not wait for any. The request must still be waited for. ARGUMENT if it has one already. */
coset_status coset_request_on_complete(coset_request *request, void (*fn)(void *ctx, coset_status status), void *ctx);
/* Drives pending operations without blocking; *active (may be NULL) = how many remain. */
coset_status coset_progress(coset_comm *comm, int *active);

/* -------------------------------------------------------------------------------------------------------------
 * Which algorithm, and why.
 */
/* What `auto` takes for an all-reduce, and what the cost model (docs/algorithms.md) predicts for each algorithm. */
typedef struct {
    const char *algorithm;
    double rounds, messages, sent_bytes; /* of the rank that has most */
    double crowded_bytes;                /* of these, sent while others send to the same rank */
    double added_bytes;                  /* operands of its sums */
    double us;                                        /* predicted, with a core for each rank */
} coset_tuning_row;
typedef struct {
    size_t struct_size;
    const char *place;  /* whose prices the prediction uses: "shared memory", "one host", "network" */
    const char *chosen; /* one of the rows */
    int rows;
    coset_tuning_row row[10];
} coset_tuning;
/* For a vector of `bytes` of f32 on `ranks` ranks, as many on each of `hosts` hosts, over a transport by name ("shm",
 * "tcp", "mpi", ...). Set out->struct_size; the strings are constant. Reads tables only; any thread. ARGUMENT: ranks not in
 * 2..1024, hosts not a divisor of ranks, no such transport, "shm" and "threads" with several hosts. */
coset_status coset_tuning_of(const char *transport, int ranks, int hosts, size_t bytes, coset_tuning *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
