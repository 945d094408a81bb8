/* SPDX-License-Identifier: Apache-2.0 */
/* Small steps that the conformance tests are made of. */
#ifndef CST_TESTS_DRIVE_H
#define CST_TESTS_DRIVE_H
#include "transport/ranks.h"

/* No step of a test may take longer; a test that waits longer has hung. */
enum { STEP_MS = 15000 };

/* A buffer with a message on it. */
typedef struct {
    coset_msg msg;
    struct iovec iov;
    coset_entry entry;
    unsigned char *data;
    size_t bytes;
} parcel;

/* Private memory, or `memory` (the caller's). The entry is a function of op. */
void parcel_init(parcel *p, int peer, uint64_t op, uint32_t tag, size_t bytes, void *memory);
void parcel_free(parcel *p);
/* Contents that depend on all of these; check fails the test at the first wrong byte. */
void parcel_fill(parcel *p, int sender, int receiver);
void parcel_check(const parcel *p, int sender, int receiver);
coset_entry entry_of(uint64_t op);

void send_parcel(rank_env *e, parcel *p);
void receive_parcel(rank_env *e, parcel *p);
/* One turn: progress, or sleep if there is nothing to do. */
void drive(rank_env *e);
/* Drives until msg has its outcome, which is returned. */
coset_status wait_msg(rank_env *e, coset_msg *msg);
/* Drives until both are done, and both must be OK. */
void wait_both(rank_env *e, parcel *a, parcel *b);
/* Drives until a notice comes, within timeout_ms. */
coset_notice wait_notice(rank_env *e, int timeout_ms);
/* Drives until a notice of this kind about `about` comes; others are passed over. */
coset_notice wait_notice_of(rank_env *e, coset_notice_kind kind, int about, int timeout_ms);
/* An empty message to and from every peer: all have come here, and everything before has been driven. */
void sync_by_messages(rank_env *e, uint64_t op);

/* xorshift */
uint32_t next_random(uint32_t *state);
#endif
