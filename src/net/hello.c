/* SPDX-License-Identifier: Apache-2.0 */
#include "net/hello.h"

#include "base/error.h"
#include "net/socket.h"

#include <endian.h>
#include <string.h>
#include <sys/socket.h>

static const uint8_t hello_magic[8] = {'C', 'O', 'S', 'E', 'T', 'h', 'i', '\n'};
static const uint8_t answer_magic[8] = {'C', 'O', 'S', 'E', 'T', 'o', 'k', '\n'};
static const uint8_t choice[CST_CHOICE_BYTES] = {'C', 'O', 'S', 'E', 'T', 'h', 'r', '\n'};
#define TOKEN_AT   8
#define NUMBERS_AT 24

static void put32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof value);
}

static uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

void cst_hello_write(const cst_hello *hello, uint8_t out[CST_HELLO_BYTES])
{
    const uint32_t numbers[] = {hello->version, hello->purpose, hello->rank, hello->size,
                                hello->channel, hello->to_rank, hello->pid};
    memset(out, 0, CST_HELLO_BYTES);
    memcpy(out, hello_magic, sizeof hello_magic);
    memcpy(out + TOKEN_AT, hello->token.bytes, CST_TOKEN_BYTES);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put32(out + NUMBERS_AT + 4 * i, numbers[i]);
}

void cst_hello_read(const uint8_t in[CST_HELLO_BYTES], cst_hello *hello)
{
    memcpy(hello->token.bytes, in + TOKEN_AT, CST_TOKEN_BYTES);
    uint32_t *numbers[] = {&hello->version, &hello->purpose, &hello->rank, &hello->size,
                           &hello->channel, &hello->to_rank, &hello->pid};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = get32(in + NUMBERS_AT + 4 * i);
}

cst_hello_state cst_hello_check(const uint8_t *in, size_t got, const cst_token *token)
{
    if (memcmp(in, hello_magic, got < sizeof hello_magic ? got : sizeof hello_magic))
        return CST_HELLO_GARBAGE;
    if (got < NUMBERS_AT)
        return CST_HELLO_MORE;
    cst_token theirs;
    memcpy(theirs.bytes, in + TOKEN_AT, CST_TOKEN_BYTES);
    if (!cst_token_equal(&theirs, token))
        return CST_HELLO_FOREIGN_TOKEN;
    if (got < CST_HELLO_BYTES)
        return CST_HELLO_MORE;
    return get32(in + NUMBERS_AT) == COSET_WIRE_VERSION ? CST_HELLO_GOOD : CST_HELLO_FOREIGN_VERSION;
}

void cst_hello_answer(int fd, cst_verdict verdict)
{
    uint8_t out[CST_ANSWER_BYTES];
    memcpy(out, answer_magic, sizeof answer_magic);
    put32(out + 8, verdict);
    put32(out + 12, COSET_WIRE_VERSION);
    /* a peer that is gone already is noticed by whoever reads next */
    ssize_t sent = send(fd, out, sizeof out, MSG_NOSIGNAL);
    (void)sent;
}

bool cst_hello_choose(int fd)
{
    return send(fd, choice, sizeof choice, MSG_NOSIGNAL) == (ssize_t)sizeof choice;
}

bool cst_hello_is_choice(const uint8_t *in, size_t got)
{
    return !memcmp(in, choice, got < sizeof choice ? got : sizeof choice);
}

coset_status cst_hello_judge(int fd, const uint8_t answer[CST_ANSWER_BYTES], coset_error *why)
{
    char text[CST_ADDR_TEXT];
    cst_socket_peer_text(fd, text);
    const char *who = cst_socket_peer(fd).length ? text : "the local socket";
    if (memcmp(answer, answer_magic, sizeof answer_magic))
        return cst_fail(why, COSET_ERR_PEER, -1, "%s is not a coset process: is the port used by another program?",
                        who);
    switch (get32(answer + 8)) {
    case CST_WELCOME: return COSET_OK;
    case CST_REFUSED_TOKEN:
        return cst_fail(why, COSET_ERR_MISMATCH, -1,
                        "%s belongs to another coset job: give all ranks of this job the same "
                        "COSET_JOB, or another port",
                        who);
    case CST_REFUSED_VERSION:
        return cst_fail(why, COSET_ERR_MISMATCH, -1,
                        "%s speaks wire version %u, this rank %d: use one version of the "
                        "library everywhere",
                        who, get32(answer + 12), COSET_WIRE_VERSION);
    default: return cst_fail(why, COSET_ERR_MISMATCH, -1, "%s expects another rank", who);
    }
}

coset_status cst_hello_exchange(int fd, const cst_hello *hello, cst_deadline deadline, coset_error *why)
{
    uint8_t out[CST_HELLO_BYTES], answer[CST_ANSWER_BYTES];
    cst_hello_write(hello, out);
    coset_status status = cst_send_all(fd, out, sizeof out, deadline, why);
    if (!status)
        status = cst_recv_all(fd, answer, sizeof answer, deadline, why);
    if (!status)
        status = cst_hello_judge(fd, answer, why);
    return status ? status : cst_send_all(fd, choice, sizeof choice, deadline, why);
}
