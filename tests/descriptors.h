/* SPDX-License-Identifier: Apache-2.0 */
/* Few descriptors. */
#ifndef CST_TESTS_DESCRIPTORS_H
#define CST_TESTS_DESCRIPTORS_H
#include <fcntl.h>
#include <sys/resource.h>

/* RLIM_INFINITY: as many as this process may have. */
static inline void limit_descriptors(rlim_t soft)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* The limit that leaves `room` descriptors. */
static inline rlim_t limit_for(int room)
{
    int fd = 0;
    for (; room > 0; fd++)
        room -= fcntl(fd, F_GETFD) < 0;
    return (rlim_t)fd;
}
#endif
