/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host.h"

#include "base/env.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *cst_host_name(char out[64])
{
    if (gethostname(out, 64) || !*out)
        strcpy(out, "?");
    out[63] = 0;
    return out;
}

/* Differs between machines and between boots; the same in all containers of a machine. */
static void boot_id(char out[40])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, 36);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = 0;
}

const char *cst_host_identity(char out[CST_HOST_ID_BYTES])
{
    const char *set = cst_env("COSET_HOSTID");
    if (set) {
        snprintf(out, CST_HOST_ID_BYTES, "%s", set);
        return out;
    }
    char boot[40], name[64];
    struct stat ns;
    boot_id(boot);
    unsigned long long inode = stat("/proc/self/ns/net", &ns) ? 0 : (unsigned long long)ns.st_ino;
    snprintf(out, CST_HOST_ID_BYTES, "%s:%s:%llu", boot, cst_host_name(name), inode);
    return out;
}
