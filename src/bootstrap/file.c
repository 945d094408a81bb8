/* SPDX-License-Identifier: Apache-2.0 */
/* Meeting by a file: it carries rank 0's unique id, no more. What ranks have to say goes over connections, so neither
 * the delays nor the caches of a network file system matter once the file has been seen. */
#include "base/error.h"
#include "bootstrap/id.h"
#include "bootstrap/star.h"
#include "net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 20

typedef struct {
    const char *path;
    cst_id id;
} meeting;

/* 1: an id is there; 0: not yet; -1: something else is wrong (errno). */
static int read_id(const char *path, cst_id *id)
{
    uint8_t bytes[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT || errno == ESTALE ? 0 : -1;
    ssize_t n = read(fd, bytes, sizeof bytes);
    int saved = errno;
    close(fd);
    errno = saved;
    if (n < 0)
        return errno == ESTALE ? 0 : -1;
    return n == (ssize_t)sizeof bytes && cst_id_read(bytes, id);
}

static coset_status find_by_file(void *ctx, cst_deadline deadline, cst_routes *routes, cst_token *token,
                                 coset_error *why)
{
    meeting *m = ctx;
    int found;
    while ((found = read_id(m->path, &m->id)) == 0) {
        if (cst_deadline_passed(deadline))
            return cst_fail(why, COSET_ERR_LATE, 0,
                            "rank 0 has not written %.150s: is it on a file system that all ranks share?", m->path);
        nanosleep(&(struct timespec){0, LOOK_AGAIN_MS * 1000000}, NULL);
    }
    if (found < 0)
        return cst_fail_errno(why, "cannot read %.150s", m->path);
    *token = m->id.token;
    return cst_id_routes(&m->id, routes, why);
}

static coset_status write_id(const meeting *m, coset_error *why)
{
    uint8_t bytes[128];
    cst_id_write(&m->id, bytes);
    int fd = open(m->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "%.150s exists: remove it if a killed job has left it, or name another file", m->path);
    if (fd < 0)
        return cst_fail_errno(why, "cannot create %.150s", m->path);
    bool written = write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes && !fsync(fd);
    int saved = errno;
    close(fd);
    if (written)
        return COSET_OK;
    unlink(m->path);
    errno = saved;
    return cst_fail_errno(why, "cannot write %.150s", m->path);
}

static void remove_file(void *ctx)
{
    unlink(((const meeting *)ctx)->path);
}

/* A root that was killed while ranks joined could not remove its file: whoever has joined it does so. */
static void remove_orphan(const meeting *m)
{
    cst_id now;
    if (read_id(m->path, &now) == 1 && cst_token_equal(&now.token, &m->id.token))
        unlink(m->path);
}

static coset_status as_root(meeting *m, int size, cst_deadline deadline, cst_bootstrap **out, coset_error *why)
{
    int listener;
    if (size == 1) {
        if (!access(m->path, F_OK))
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "%.150s exists: name another file", m->path);
        return cst_bootstrap_alone(out, why);
    }
    coset_status status = cst_id_make(&m->id, &listener, why);
    if (status)
        return status;
    status = write_id(m, why);
    if (status) {
        cst_close(listener);
        return status;
    }
    return cst_star_root(listener, &m->id.token, size, deadline, remove_file, m, out, why);
}

coset_status cst_bootstrap_file(const char *path, int rank, int size, int timeout_ms, cst_bootstrap **out,
                                coset_error *why)
{
    meeting m = {.path = path};
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    coset_status status = cst_bootstrap_check_rank(rank, size, why);
    if (status)
        return status;
    if (!path || !*path)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "path is empty: name a file on a file system that all ranks share");
    if (rank == 0)
        return as_root(&m, size, deadline, out, why);
    status = cst_star_join(find_by_file, &m, rank, size, deadline, out, why);
    if (status == COSET_ERR_PEER && m.id.count)
        remove_orphan(&m);
    return status;
}
