/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile bytes on connections of transport tcp. The first byte chooses: records of a control connection, a raw stream
 * into the engine, or a stream whose heads and tails carry right checks, so that fuzzing gets behind them. Receives are
 * posted for some messages; whatever comes, memory stays whole and every message keeps a status of the contract.
 */
#include "net/socket.h"
#include "transport/notices.h"
#include "transport/tcp/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECEIVES = 6, LARGEST = 9000 };

static void look_at_records(const uint8_t *data, size_t size)
{
    coset_notice notice;
    bool is_notice;
    int n;
    while ((n = cst_record_read(data, size, &is_notice, &notice)) > 0) {
        if ((size_t)n > size || (is_notice && memchr(notice.text, 0, sizeof notice.text) == NULL))
            abort();
        if (is_notice)
            cst_notice_valid(&notice, 3);
        data += n;
        size -= (size_t)n;
    }
    /* sealed as it stands, as a notice */
    if (size >= CST_NOTICE_BYTES) {
        uint8_t sealed[CST_RECORD_BYTES + CST_NOTICE_BYTES];
        memcpy(&notice, data, sizeof notice < size ? sizeof notice : size);
        cst_notice_write(&notice, sealed);
        if (cst_record_read(sealed, sizeof sealed, &is_notice, &notice) != (int)sizeof sealed)
            abort();
    }
}

static void ignore_end(void *ctx, int peer)
{
    (void)ctx;
    (void)peer;
}

static void ignore_nonsense(void *ctx, int peer, const char *text)
{
    (void)ctx;
    (void)peer;
    (void)text;
}

/* Turns input into a stream: a control byte, then what it says. */
static size_t make_stream(const uint8_t *data, size_t size, uint8_t *out, size_t room)
{
    size_t n = 0;
    while (size >= 4 && n + CST_HEAD_BYTES + 64 < room) {
        uint8_t what = data[0], a = data[1], b = data[2], c = data[3];
        data += 4;
        size -= 4;
        if (what % 4 == 0) {
            uint64_t bytes = a & 0x80 ? (uint64_t)b << (c % 64) : (uint64_t)(b + (c & 15) * 256);
            cst_head_write(a % 4, b % 3, bytes, NULL, out + n);
            n += CST_HEAD_BYTES;
        } else if (what % 4 == 1) {
            cst_tail_write(a & 1, b, out + n);
            n += CST_TAIL_BYTES;
        } else {
            size_t k = (size_t)(what % 4 == 2 ? b + (c & 15) * 256 : b % 32);
            k = k < room - n ? k : room - n;
            memset(out + n, c, k);
            n += k;
        }
    }
    return n;
}

static void feed(const uint8_t *data, size_t size, bool checksum)
{
    int ends[2], fds[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || cst_adopt(ends[0], NULL) || cst_adopt(ends[1], NULL))
        abort();
    fds[1] = ends[0];
    cst_engine e = {
        .rank = 0, .size = 2, .sockets = 1, .checksum = checksum, .events = {NULL, ignore_end, ignore_nonsense}};
    if (cst_engine_open(&e, fds, NULL))
        abort();
    coset_msg msg[RECEIVES];
    struct iovec iov[RECEIVES][2];
    static uint8_t memory[RECEIVES][LARGEST];
    for (uint32_t i = 0; i < RECEIVES; i++) {
        size_t bytes = i * 300;
        iov[i][0] = (struct iovec){memory[i], bytes / 3};
        iov[i][1] = (struct iovec){memory[i] + bytes / 3, bytes - bytes / 3};
        msg[i] = (coset_msg){.peer = 1, .tag = i % 4, .op = i % 3, .iov = iov[i], .iovcnt = 2};
        if (i < RECEIVES / 2)
            cst_engine_receive(&e, &msg[i], bytes);
    }
    bool other, posted = false;
    for (size_t at = 0; at < size;) {
        ssize_t n = send(ends[1], data + at, size - at < 700 ? size - at : 700, MSG_NOSIGNAL);
        cst_engine_poll(&e, 0, &other);
        cst_engine_move(&e);
        if (n <= 0 && posted)
            break;
        if (n <= 0 || at > size / 2) {
            for (uint32_t i = RECEIVES / 2; i < RECEIVES && !posted; i++)
                cst_engine_receive(&e, &msg[i], i * 300);
            posted = true;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    cst_close(ends[1]);
    cst_engine_drain(&e, 1);
    cst_engine_move(&e);
    if (msg[0].status == COSET_IN_PROGRESS)
        cst_engine_cancel(&e, &msg[0]);
    cst_engine_end_peer(&e, 1, COSET_ERR_PEER);
    cst_engine_close(&e);
    for (int i = 0; i < RECEIVES; i++)
        if ((i < RECEIVES / 2 || posted) && msg[i].status == COSET_IN_PROGRESS)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t stream[1 << 16];
    if (size < 1)
        return 0;
    switch (data[0] % 4) {
    case 0: look_at_records(data + 1, size - 1); break;
    case 1: feed(data + 1, size - 1, false); break;
    default: feed(stream, make_stream(data + 1, size - 1, stream, sizeof stream), data[0] % 4 == 3); break;
    }
    return 0;
}
