/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/root.h"

#include "base/error.h"
#include "net/descriptors.h"
#include "net/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What has failed at the root, such as two ranks with one number, ranks that come so soon after the last hear of too. */
#define LAST_WORDS_MS 1000

cst_root *cst_root_new(int size, int listener, const cst_token *token)
{
    cst_root *root = calloc(1, sizeof *root + (size_t)size * sizeof root->line[0]);
    if (!root) {
        cst_close(listener);
        return NULL;
    }
    root->size = size;
    root->joined = 1;
    cst_gate_open(&root->gate, listener, token, 1u << CST_PURPOSE_BOOTSTRAP);
    for (int r = 0; r < size; r++)
        root->line[r].fd = -1;
    return root;
}

void cst_root_free(cst_root *root)
{
    if (!root)
        return;
    cst_gate_close(&root->gate);
    for (int r = 1; r < root->size; r++)
        cst_close(root->line[r].fd);
    free(root->set);
    free(root);
}

/* "1, 4-6": the ranks that have not joined. */
static void name_missing(const cst_root *root, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (int r = 1; r < root->size; r++) {
        int first = r;
        if (root->line[r].fd >= 0)
            continue;
        while (r + 1 < root->size && root->line[r + 1].fd < 0)
            r++;
        if (n + 30 > size) {
            snprintf(out + n, size - n, ", ...");
            return;
        }
        n += (size_t)snprintf(out + n, size - n, first == r ? "%s%d" : "%s%d-%d", n ? ", " : "", first, r);
    }
}

static coset_status missing(const cst_root *root, coset_error *why)
{
    char list[100], turned_away[60] = "";
    name_missing(root, list, sizeof list);
    if (root->gate.foreign)
        snprintf(turned_away, sizeof turned_away, " (%d of other jobs or versions were turned away)",
                 root->gate.foreign);
    return cst_fail(why, COSET_ERR_LATE, atoi(list), "%d of %d ranks have not joined in time: rank %s%s",
                    root->size - root->joined, root->size, list, turned_away);
}

static coset_status lost(int rank, coset_error *why)
{
    return cst_fail(why, COSET_ERR_PEER, rank, "rank %d closed its connection while the job was starting", rank);
}

static void say_failure(int fd, const coset_error *error)
{
    uint8_t out[CST_FRAME_BYTES + CST_FAILURE_BYTES];
    const cst_frame frame = {CST_FRAME_FAILURE, 0, CST_FAILURE_BYTES};
    cst_frame_write(&frame, out);
    cst_failure_write(error, out + CST_FRAME_BYTES);
    /* Best effort: a rank whose connection is full, in the middle of another frame, sees it closed instead. */
    ssize_t sent = send(fd, out, sizeof out, MSG_NOSIGNAL);
    (void)sent;
}

/* Tells everybody and hangs up. */
static coset_status fail_all(cst_root *root, const coset_error *error)
{
    for (int r = 1; r < root->size; r++) {
        if (root->line[r].fd < 0)
            continue;
        if (!root->line[r].cut)
            say_failure(root->line[r].fd, error);
        cst_close(root->line[r].fd);
        root->line[r].fd = -1;
        root->line[r].told = true;
    }
    return error->status;
}

/* Room for the gate and every line. Without memory for more, waiting gets coarser, not wrong. */
static struct pollfd *poll_room(cst_root *root)
{
    int wanted = cst_gate_poll_count(&root->gate) + root->size;
    if (wanted > root->room) {
        struct pollfd *grown = realloc(root->set, (size_t)wanted * sizeof *grown);
        if (!grown)
            return NULL;
        root->set = grown;
        root->room = wanted;
    }
    return root->set;
}

/* Says it to a newcomer, and hangs up. */
static void fail_newcomer(cst_root *root, int fd, const cst_hello *h, const coset_error *error)
{
    say_failure(fd, error);
    cst_close(fd);
    if (h->rank < (uint32_t)root->size)
        root->line[h->rank].told = true;
}

static bool all_told(const cst_root *root)
{
    for (int r = 1; r < root->size; r++)
        if (!root->line[r].told)
            return false;
    return true;
}

/* Nothing will come of it: ranks that are on their way are told as well. */
static void fail_latecomers(cst_root *root, const coset_error *error)
{
    cst_deadline until = cst_deadline_in(LAST_WORDS_MS);
    while (!all_told(root) && !cst_deadline_passed(until) && poll_room(root)) {
        cst_hello hello;
        int fd;
        if (cst_gate_next(&root->gate, &fd, &hello, NULL))
            return;
        if (fd >= 0) {
            fail_newcomer(root, fd, &hello, error);
            until = cst_deadline_in(LAST_WORDS_MS);
            continue;
        }
        cst_gate_poll_set(&root->gate, root->set);
        cst_poll(root->set, cst_gate_poll_count(&root->gate), cst_deadline_left(until, CST_GATE_CROWDED_MS));
    }
}

static void describe(int fd, uint32_t pid, char out[120])
{
    char text[CST_ADDR_TEXT];
    snprintf(out, 120, "process %u at %s", pid, cst_socket_peer_text(fd, text));
}

/* A newcomer that has shown the token: can it be the rank that it says it is? If not it is told why. */
static coset_status place(cst_root *root, int fd, const cst_hello *h, coset_error *why)
{
    char newcomer[120], older[120];
    describe(fd, h->pid, newcomer);
    coset_status status = COSET_ERR_MISMATCH;
    if (h->size != (uint32_t)root->size) {
        cst_fail(why, status, -1, "rank %u (%s) was told a size of %u, rank 0 of %d", h->rank, newcomer, h->size,
                 root->size);
    } else if (h->rank >= (uint32_t)root->size) {
        cst_fail(why, status, -1, "%s says it is rank %u, but the size is %d", newcomer, h->rank, root->size);
    } else if (h->rank == 0) {
        cst_fail(why, status, 0, "%s says it is rank 0, as process %d does", newcomer, (int)getpid());
    } else if (root->line[h->rank].fd >= 0) {
        describe(root->line[h->rank].fd, root->line[h->rank].pid, older);
        cst_fail(why, status, (int)h->rank, "two processes say they are rank %u: %s, and %s", h->rank, older, newcomer);
    } else {
        root->line[h->rank] = (cst_line){.fd = fd, .pid = h->pid};
        root->joined++;
        return COSET_OK;
    }
    fail_newcomer(root, fd, h, why);
    return status;
}

/* Puts the lines of ranks [1, size) into the poll set at `at`; returns the end. Closed lines keep their place. */
static int poll_lines(cst_root *root, int at, short events)
{
    for (int r = 1; r < root->size; r++)
        root->set[at++] = (struct pollfd){root->line[r].fd, events, 0};
    return at;
}

/* A rank that has joined says nothing until all have, so the only news on its line is its end. */
static coset_status check_lines(const cst_root *root, const struct pollfd *set, coset_error *why)
{
    for (int r = 1; r < root->size; r++) {
        char byte;
        if (!(set[r - 1].revents & (POLLIN | POLLHUP | POLLERR)))
            continue;
        ssize_t n = recv(root->line[r].fd, &byte, 1, MSG_PEEK);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return lost(r, why);
        if (n > 0)
            return cst_fail(why, COSET_ERR_CORRUPT, r, "rank %d spoke before all had joined", r);
    }
    return COSET_OK;
}

static coset_status let_in(cst_root *root, coset_error *why)
{
    cst_hello hello;
    int fd;
    do {
        coset_status status = cst_gate_next(&root->gate, &fd, &hello, why);
        if (!status && fd >= 0)
            status = place(root, fd, &hello, why);
        if (status)
            return status;
    } while (fd >= 0);
    return COSET_OK;
}

static coset_status admit_all(cst_root *root, cst_deadline deadline, coset_error *why)
{
    for (;;) {
        coset_status status = let_in(root, why);
        if (status || root->joined == root->size)
            return status;
        if (cst_deadline_passed(deadline))
            return missing(root, why);
        if (!poll_room(root))
            return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory for %d ranks", root->size);
        int lines_at = cst_gate_poll_count(&root->gate);
        cst_gate_poll_set(&root->gate, root->set);
        int n = poll_lines(root, lines_at, POLLIN);
        /* a second at most: silent guests have to be sent away */
        if (cst_poll(root->set, n, cst_deadline_left(deadline, 1000)) <= 0)
            continue;
        status = check_lines(root, root->set + lines_at, why);
        if (status)
            return status;
    }
}

/* A line for each rank, and one for a stranger. */
static coset_status check_descriptors(const cst_root *root, coset_error *why)
{
    cst_descriptors lines;
    coset_status status = cst_descriptors_hold(&lines, root->size, "rank 0, where the ranks meet,", why);
    if (!status)
        cst_descriptors_free(&lines);
    return status;
}

coset_status cst_root_admit(cst_root *root, cst_deadline deadline, coset_error *why)
{
    coset_error error = COSET_ERROR_INIT;
    coset_status status = check_descriptors(root, &error);
    if (!status)
        status = admit_all(root, deadline, &error);
    if (status) {
        fail_all(root, &error);
        if (status != COSET_ERR_LATE)
            fail_latecomers(root, &error);
        cst_error_copy(why, &error);
    }
    cst_gate_close(&root->gate);
    return status;
}

/* What a gathering does on each line: reads a part, or writes the whole. */
typedef struct {
    bool writing;
    cst_frame frame; /* what is sent, or must arrive */
    uint8_t *body;   /* reading: rank r's part is at r * frame.bytes; writing: the same for all */
} transfer;

static coset_status check_part(const cst_line *line, int rank, const transfer *t, coset_error *why)
{
    cst_frame frame;
    if (!cst_frame_read(line->head, &frame) || frame.kind != t->frame.kind || frame.number != t->frame.number)
        return cst_fail(why, COSET_ERR_CORRUPT, rank, "rank %d sent something that is no part of the gathering", rank);
    if (frame.bytes != t->frame.bytes && t->frame.number) /* versions agree, or the first gathering would have failed */
        return cst_fail(why, COSET_ERR_PEER, rank,
                        "rank %d and rank 0 are at different steps of creation: one of them has failed before", rank);
    if (frame.bytes != t->frame.bytes)
        return cst_fail(why, COSET_ERR_MISMATCH, rank,
                        "rank %d gathers %llu bytes, rank 0 %llu: are the versions the same?", rank,
                        (unsigned long long)frame.bytes, (unsigned long long)t->frame.bytes);
    return COSET_OK;
}

/* Moves what can be moved on one line. IN_PROGRESS: wait for it. */
static coset_status move_line(cst_line *line, int rank, const transfer *t, coset_error *why)
{
    uint8_t *body = t->writing ? t->body : t->body + (size_t)rank * t->frame.bytes;
    for (;;) {
        bool in_head = line->head_done < CST_FRAME_BYTES;
        size_t left = in_head ? CST_FRAME_BYTES - line->head_done : t->frame.bytes - line->body_done;
        line->cut = t->writing && line->head_done && left;
        if (left == 0)
            return COSET_OK;
        uint8_t *at = in_head ? line->head + line->head_done : body + line->body_done;
        ssize_t n = t->writing ? send(line->fd, at, left, MSG_NOSIGNAL | (in_head && t->frame.bytes ? MSG_MORE : 0))
                               : recv(line->fd, at, left, 0);
        if (n < 0 && errno == EAGAIN)
            return COSET_IN_PROGRESS;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return lost(rank, why);
        *(in_head ? &line->head_done : &line->body_done) += (size_t)n;
        if (!t->writing && in_head && line->head_done == CST_FRAME_BYTES) {
            coset_status status = check_part(line, rank, t, why);
            if (status)
                return status;
        }
    }
}

static coset_status move_all(cst_root *root, const transfer *t, cst_deadline deadline, coset_error *why)
{
    if (!poll_room(root))
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory for %d ranks", root->size);
    for (int r = 1; r < root->size; r++) {
        root->line[r].head_done = root->line[r].body_done = 0;
        cst_frame_write(&t->frame, root->line[r].head); /* overwritten when reading */
    }
    poll_lines(root, 0, t->writing ? POLLOUT : POLLIN);
    int left = root->size - 1;
    for (;;) {
        int late = 0;
        for (int r = 1; r < root->size; r++) {
            struct pollfd *p = &root->set[r - 1];
            if (p->fd < 0)
                continue;
            coset_status status = move_line(&root->line[r], r, t, why);
            if (status == COSET_OK) {
                p->fd = -1;
                left--;
            } else if (status != COSET_IN_PROGRESS) {
                return status;
            } else {
                late = r;
            }
        }
        if (left == 0)
            return COSET_OK;
        if (cst_deadline_passed(deadline))
            return cst_fail(why, COSET_ERR_LATE, late, "rank %d did not %s in time while the job was starting", late,
                            t->writing ? "take its data" : "send its part");
        cst_poll(root->set, root->size - 1, cst_deadline_left(deadline, 1000));
    }
}

/* Runs one transfer; what fails here fails on every rank. */
static coset_status transfer_all(cst_root *root, const transfer *t, cst_deadline deadline, coset_error *why)
{
    coset_error error = COSET_ERROR_INIT;
    coset_status status = move_all(root, t, deadline, &error);
    if (status) {
        fail_all(root, &error);
        cst_error_copy(why, &error);
    }
    return status;
}

coset_status cst_root_welcome(cst_root *root, cst_deadline deadline, coset_error *why)
{
    const transfer joined = {true, {CST_FRAME_JOINED, 0, 0}, NULL};
    return transfer_all(root, &joined, deadline, why);
}

coset_status cst_root_gather(cst_root *root, const void *send, void *recv, size_t bytes, cst_deadline deadline,
                             coset_error *why)
{
    const uint32_t number = root->number++;
    const transfer parts = {false, {CST_FRAME_PART, number, bytes}, recv};
    const transfer all = {true, {CST_FRAME_ALL, number, bytes * (size_t)root->size}, recv};
    if (bytes && recv != send)
        memmove(recv, send, bytes);
    coset_status status = transfer_all(root, &parts, deadline, why);
    return status ? status : transfer_all(root, &all, deadline, why);
}

cst_addr cst_root_address(const cst_root *root)
{
    cst_addr any = {0};
    for (int r = 1; r < root->size; r++) {
        cst_addr own = cst_socket_own(root->line[r].fd);
        if (own.length && (!any.length || (cst_addr_is_loopback(&any) && !cst_addr_is_loopback(&own))))
            any = own;
    }
    if (any.length)
        cst_addr_set_port(&any, 0);
    return any;
}
