/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/pages.h"

#include "base/error.h"
#include "net/descriptors.h"
#include "transport/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3; where the administrator insists on it, nothing else is allowed */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Where memfd_create is forbidden (some sandboxes) an unnamed file in /dev/shm does the same, within its size. */
static int anonymous_fd(void)
{
    int fd = memfd_create("coset", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("coset", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES))
        fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd;
}

coset_status cst_pages_probe(char *why, size_t why_bytes)
{
    int fd = anonymous_fd();
    if (fd < 0 && !cst_descriptors_exhausted(errno)) { /* else creation says how many are needed */
        snprintf(why, why_bytes, "no anonymous shared memory: memfd_create and /dev/shm: %s", strerror(errno));
        return COSET_ERR_UNSUPPORTED;
    }
    if (fd >= 0)
        close(fd);
    if (why_bytes)
        *why = 0;
    return COSET_OK;
}

/* Growing a file beyond RLIMIT_FSIZE raises a signal that kills: look before. */
static coset_status check_room(size_t bytes, coset_error *why)
{
    struct rlimit r;
    if (!getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY && bytes > r.rlim_cur)
        return cst_fail(why, COSET_ERR_MEMORY, -1,
                        "%zu bytes of shared memory are over this process's file size limit of %llu (ulimit -f)", bytes,
                        (unsigned long long)r.rlim_cur);
    const char *where;
    size_t room = cst_memory_room(&where);
    if (bytes > room)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "%zu bytes of shared memory asked for, %zu available (%s)", bytes,
                        room, where);
    return COSET_OK;
}

coset_status cst_pages_create(size_t bytes, int *out, coset_error *why)
{
    coset_status status = check_room(bytes, why);
    if (status)
        return status;
    int fd = anonymous_fd();
    if (fd < 0)
        return cst_fail_errno(why, "no anonymous shared memory: memfd_create");
    if (ftruncate(fd, (off_t)bytes)) {
        status = cst_fail_errno(why, "shared memory of %zu bytes: ftruncate", bytes);
        close(fd);
        return status;
    }
    /* fails on a file in /dev/shm, which only its holders can shrink */
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    *out = fd;
    return COSET_OK;
}

coset_status cst_pages_map(int fd, size_t bytes, char **base, coset_error *why)
{
    struct stat st;
    if (fstat(fd, &st))
        return cst_fail_errno(why, "shared memory: fstat");
    if (st.st_size < 0 || (size_t)st.st_size != bytes)
        return cst_fail(why, COSET_ERR_CORRUPT, -1, "shared memory of %lld bytes instead of %zu", (long long)st.st_size,
                        bytes);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no address space for %zu bytes of shared memory (ulimit -v): %s",
                        bytes, strerror(errno));
    /* Only where the administrator allows huge pages for shared memory; elsewhere it does nothing. */
    madvise(p, bytes, MADV_HUGEPAGE);
    *base = p;
    return COSET_OK;
}

/* Before Linux 5.14: allocate (an error if it does not fit), then touch. A read is enough to map a page of shared
 * memory for writing too. */
static int populate_by_hand(char *base, size_t bytes, int fd, size_t offset, int owner)
{
    while (owner && fallocate(fd, 0, (off_t)offset, (off_t)bytes))
        if (errno != EINTR)
            return -1;
    for (size_t i = 0; i < bytes; i += 4096)
        (void)*(volatile char *)(base + i);
    return 0;
}

coset_status cst_pages_populate(char *base, size_t bytes, int fd, size_t offset, int owner, coset_error *why)
{
    if (!bytes || !madvise(base, bytes, MADV_POPULATE_WRITE))
        return COSET_OK;
    if (errno == EINVAL && !populate_by_hand(base, bytes, fd, offset, owner))
        return COSET_OK;
    /* EFAULT: touching would have raised SIGBUS */
    return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %zu bytes of shared memory: %s", bytes,
                    errno == EFAULT ? "it is full" : strerror(errno));
}
