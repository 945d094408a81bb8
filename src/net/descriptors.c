/* SPDX-License-Identifier: Apache-2.0 */
#include "net/descriptors.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

int cst_descriptors_exhausted(int error)
{
    return error == EMFILE || error == ENFILE;
}

static coset_status too_few(int had, int count, const char *what, coset_error *why)
{
    struct rlimit limit;
    if (errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit))
        return cst_fail_errno(why, "%s needs %d more descriptors, %d can be had", what, count, had);
    unsigned long long now = limit.rlim_cur;
    return cst_fail(why, COSET_ERR_SYSTEM, -1,
                    "%s needs %d more descriptors, the limit of %llu leaves %d: raise it (ulimit -n %llu or more)",
                    what, count, now, had, now + (unsigned)(count - had));
}

/* Event descriptors, since they mean nothing to anybody who might inherit one. */
coset_status cst_descriptors_hold(cst_descriptors *d, int count, const char *what, coset_error *why)
{
    *d = (cst_descriptors){0, count > 0 ? malloc((size_t)count * sizeof *d->fd) : NULL};
    if (count > 0 && !d->fd)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "%s: out of memory", what);
    while (d->count < count) {
        int fd = d->count ? fcntl(d->fd[0], F_DUPFD_CLOEXEC, 0) : eventfd(0, EFD_CLOEXEC);
        if (fd < 0) {
            int had = d->count, error = errno;
            cst_descriptors_free(d);
            errno = error;
            return too_few(had, count, what, why);
        }
        d->fd[d->count++] = fd;
    }
    return COSET_OK;
}

static int poll_packed(struct pollfd *set, int count, int timeout_ms)
{
    int n = 0, ready;
    struct pollfd *packed = malloc((size_t)count * sizeof *packed);
    if (!packed)
        return -1;
    for (int i = 0; i < count; i++)
        if (set[i].fd >= 0)
            packed[n++] = set[i];
    ready = poll(packed, (nfds_t)n, timeout_ms);
    for (int i = count - 1; i >= 0; i--)
        set[i].revents = set[i].fd >= 0 ? packed[--n].revents : 0;
    free(packed);
    return ready;
}

int cst_poll(struct pollfd *set, int count, int timeout_ms)
{
    int ready = poll(set, (nfds_t)count, timeout_ms);
    return ready < 0 && errno == EINVAL ? poll_packed(set, count, timeout_ms) : ready;
}

void cst_descriptors_free(cst_descriptors *d)
{
    while (d->count > 0)
        close(d->fd[--d->count]);
    free(d->fd);
    d->fd = NULL;
}
