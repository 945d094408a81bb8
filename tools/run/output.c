/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX_MAX 16

bool output_open(output_stream *s, int from, int to, int rank, output_patience patience)
{
    *s = (output_stream){.from = from, .to = to, .line = malloc(PREFIX_MAX + OUTPUT_LINE + 1), .patience = patience};
    if (!s->line)
        return false;
    s->prefix = (size_t)snprintf(s->line, PREFIX_MAX, "[%d] ", rank);
    return true;
}

/* Until `to` takes PIPE_BUF bytes without blocking: a reader that stands still must not keep us from all else. */
static bool wait_for_room(int to, const output_patience *patience)
{
    enum { SLICE_MS = 100 };
    for (int ms = 0;; ms = SLICE_MS) {
        struct pollfd p = {to, POLLOUT, 0};
        int n = poll(&p, 1, ms);
        if (n != 0)
            return n > 0 || errno == EINTR;
        if (!patience->ask(patience->ctx))
            return false;
    }
}

static bool write_all(int to, const char *bytes, size_t length, const output_patience *patience)
{
    while (length) {
        if (!wait_for_room(to, patience))
            return false;
        ssize_t n = write(to, bytes, length < PIPE_BUF ? length : PIPE_BUF);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        }
    }
    return true;
}

static bool emit(output_stream *s)
{
    s->line[s->prefix + s->length] = '\n';
    bool good = write_all(s->to, s->line, s->prefix + s->length + 1, &s->patience);
    s->length = 0;
    return good;
}

static bool add(output_stream *s, const char *bytes, size_t count)
{
    while (count) {
        const char *end = memchr(bytes, '\n', count);
        size_t piece = end ? (size_t)(end - bytes) : count, room = OUTPUT_LINE - s->length;
        if (piece > room)
            piece = room;
        memcpy(s->line + s->prefix + s->length, bytes, piece);
        s->length += piece;
        bool whole = end && bytes + piece == end;
        if ((whole || s->length == OUTPUT_LINE) && !emit(s))
            return false;
        bytes += piece + whole;
        count -= piece + whole;
    }
    return true;
}

bool output_move(output_stream *s)
{
    char bytes[16384];
    /* What is there now, and no more: a rank that writes faster than we do must not keep us from all else. */
    ssize_t left = fcntl(s->from, F_GETPIPE_SZ);
    while (s->from >= 0 && left > 0) {
        ssize_t n = read(s->from, bytes, sizeof bytes);
        if (n > 0) {
            left -= n;
            if (!add(s, bytes, (size_t)n))
                return false;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            close(s->from);
            s->from = -1;
        } else if (errno == EAGAIN) {
            break;
        }
    }
    return s->from >= 0 || s->length == 0 || emit(s);
}

bool output_close(output_stream *s)
{
    bool good = output_move(s);
    if (s->from >= 0)
        close(s->from);
    s->from = -1;
    if (good && s->length)
        good = emit(s);
    free(s->line);
    s->line = NULL;
    s->length = 0;
    return good;
}
