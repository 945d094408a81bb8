/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bytes of every connection of a job, and the answer to them.
 *
 *   hello, 64 bytes                          answer, 16 bytes
 *    0  magic "COSEThi\n"                     0  magic "COSETok\n"
 *    8  token                                 8  verdict
 *   24  wire version                         12  wire version of who answers
 *   28  purpose
 *   32  sender's rank, size, channel,
 *   44  receiver's rank, process id
 *   52  zero
 *
 * A welcome is followed by the 8 bytes "COSEThr\n" of whoever wants this connection: see race.h.
 *
 * Numbers are little-endian. Until the token has been found right nothing after it is looked at, and a connection whose
 * first bytes are not the magic is closed without an answer.
 */
#ifndef CST_NET_HELLO_H
#define CST_NET_HELLO_H
#include "base/clock.h"
#include "net/token.h"

#include <coset.h>
#include <stdbool.h>
#include <stddef.h>

#define CST_HELLO_BYTES  64
#define CST_ANSWER_BYTES 16

enum { CST_PURPOSE_BOOTSTRAP = 1, CST_PURPOSE_DATA = 2, CST_PURPOSE_CONTROL = 3, CST_PURPOSE_SHM = 4 };

typedef struct {
    cst_token token;
    uint32_t version, purpose;
    uint32_t rank, size, channel, to_rank, pid;
} cst_hello;

typedef enum {
    CST_WELCOME = 0,
    CST_REFUSED_TOKEN = 1,   /* of another job */
    CST_REFUSED_VERSION = 2, /* another COSET_WIRE_VERSION */
    CST_REFUSED_RANK = 3     /* not who is expected here */
} cst_verdict;

void cst_hello_write(const cst_hello *hello, uint8_t out[CST_HELLO_BYTES]);
void cst_hello_read(const uint8_t in[CST_HELLO_BYTES], cst_hello *hello);

/* What the first `got` bytes of a connection are worth. */
typedef enum {
    CST_HELLO_MORE,
    CST_HELLO_GOOD,
    CST_HELLO_FOREIGN_TOKEN,
    CST_HELLO_FOREIGN_VERSION,
    CST_HELLO_GARBAGE
} cst_hello_state;
cst_hello_state cst_hello_check(const uint8_t *in, size_t got, const cst_token *token);

/* Sends the answer; never blocks (a new connection has room for 16 bytes). */
void cst_hello_answer(int fd, cst_verdict verdict);
/* After a welcome: this connection is the one that we want. False if it is broken. */
#define CST_CHOICE_BYTES 8
bool cst_hello_choose(int fd);
/* Are the `got` bytes the beginning of a choice? */
bool cst_hello_is_choice(const uint8_t *in, size_t got);
/* Sends our hello on a new connection, waits for the answer and chooses it. PEER: no coset process, or one that
 * closed the connection (which another try may mend); MISMATCH: a coset process that refuses us; LATE. */
coset_status cst_hello_exchange(int fd, const cst_hello *hello, cst_deadline deadline, coset_error *why);
/* Reads an answer. OK, or MISMATCH or PEER as above, with the text for it. */
coset_status cst_hello_judge(int fd, const uint8_t answer[CST_ANSWER_BYTES], coset_error *why);
#endif
