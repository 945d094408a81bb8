/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks find each other: each form below yields the same thing, an all-gather between all ranks (coset_oob), which
 * is all that the layers above need until their own connections stand.
 *
 * Rank 0 is the root. The others connect to it and stay connected until cst_bootstrap_close; the root collects what
 * they send and gives everybody everything. Creating a bootstrap is collective: it returns on success when every rank
 * has joined, and on failure tells the cause on every rank that has:
 *   LATE      ranks that have not joined by the deadline, by number;
 *   MISMATCH  two processes with one rank, a rank with another size, another job's root, another wire version;
 *   PEER      a rank that went away before all had joined;
 *   ARGUMENT  a rank out of range, variables that contradict each other or are missing (the text says what to set);
 *   SYSTEM    no listener, no name, no descriptors.
 * Strangers on the root's port cannot disturb it (net/gate.h).
 */
#ifndef CST_BOOTSTRAP_H
#define CST_BOOTSTRAP_H
#include <coset.h>

typedef struct cst_bootstrap cst_bootstrap;

/* From the environment: rank, size and meeting place as coset.h says under coset_comm_create_env. */
coset_status cst_bootstrap_env(int timeout_ms, cst_bootstrap **out, coset_error *why);
coset_status cst_bootstrap_id(const coset_unique_id *id, int rank, int size, int timeout_ms, cst_bootstrap **out,
                              coset_error *why);
/* The file holds rank 0's unique id while ranks join; rank 0 makes it (it must not exist) and removes it. */
coset_status cst_bootstrap_file(const char *path, int rank, int size, int timeout_ms, cst_bootstrap **out,
                                coset_error *why);
/* out[0..size): one for each rank of this process, each to be used by its own thread. Not collective. */
coset_status cst_bootstrap_threads(int size, cst_bootstrap *out[], coset_error *why);

/* Makes an id and listens for those who have it, until cst_bootstrap_id as rank 0 in this process takes over. */
coset_status cst_unique_id_create(coset_unique_id *id, coset_error *why);

/* Valid until close. */
const coset_oob *cst_bootstrap_oob(const cst_bootstrap *b);
/* What went wrong in the oob's last failed all-gather (its signature has no room to say): rank, peer and one line. */
void cst_bootstrap_why(const cst_bootstrap *b, coset_error *out);
/* This rank's address on the way to the root (on the root: on the way to a rank elsewhere), without port; "" if none is
 * known, as when all ranks met over a local socket. It is the address to advertise for the ranks' own connections. */
const char *cst_bootstrap_address(const cst_bootstrap *b);
/* Not collective; NULL is a no-op. */
void cst_bootstrap_close(cst_bootstrap *b);
#endif
