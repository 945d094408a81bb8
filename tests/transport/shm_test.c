/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite over shm, and what only shm can meet: limits, permissions, intruders. */
#include "base/clock.h"
#include "transport/conformance.h"
#include "transport/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Everything is the same with and without process_vm. */
static void with_method(rank_env *e, const char *method, uint32_t get_put)
{
    setenv("COSET_SHM_METHOD", method, 1);
    rank_create(e);
    CHECK_INT(e->ops->caps(e->t)->flags & (COSET_CAN_GET_PUT | COSET_PREFERS_GET_PUT), get_put);
    test_sizes(e);
    rank_destroy(e);
    void (*const tests[])(rank_env *) = {test_random, test_pieces, test_mismatch, test_cancel,
                                         test_cancel_frees_memory};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        rank_create(e);
        tests[i](e);
        rank_destroy(e);
    }
}

static void staged(rank_env *e)
{
    with_method(e, "staged", 0);
}

static void pulled(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    setenv("COSET_SHM_METHOD", "cma", 1);
    coset_status status = e->ops->create(&e->oob, &e->config, &e->t, &why);
    if (status == COSET_ERR_UNSUPPORTED) /* this host does not allow it */
        return;
    CHECK_INT(status, COSET_OK);
    rank_destroy(e);
    with_method(e, "cma", COSET_CAN_GET_PUT | COSET_PREFERS_GET_PUT);
}

static void bad_method(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    if (e->rank)
        setenv("COSET_SHM_METHOD", "magic", 1);
    CHECK_INT(e->ops->create(&e->oob, &e->config, &e->t, &why), e->rank ? COSET_ERR_ARGUMENT : COSET_ERR_MISMATCH);
    CHECK(strstr(why.text, "COSET_SHM_METHOD"));
}

static void different_methods(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    setenv("COSET_SHM_METHOD", e->rank ? "staged" : "auto", 1);
    CHECK_INT(e->ops->create(&e->oob, &e->config, &e->t, &why), COSET_ERR_MISMATCH);
}

/* No right to read other processes: not dumpable, and not the superuser's privilege either. */
static void give_up_ptrace(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK_INT(syscall(SYS_capget, &head, data), 0);
    data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    CHECK_INT(syscall(SYS_capset, &head, data), 0);
    CHECK_INT(prctl(PR_SET_DUMPABLE, 0), 0);
}

static void no_ptrace(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    give_up_ptrace();
    rank_create(e);
    CHECK(!(e->ops->caps(e->t)->flags & COSET_CAN_GET_PUT));
    test_sizes(e);
    rank_destroy(e);
    setenv("COSET_SHM_METHOD", "cma", 1);
    CHECK_INT(e->ops->create(&e->oob, &e->config, &e->t, &why), COSET_ERR_UNSUPPORTED);
    CHECK(strstr(why.text, "COSET_SHM_METHOD=cma"));
}

/* One of two processes becomes unreadable after creation: messages go on, staged. */
static void ptrace_lost(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    setenv("COSET_SHM_METHOD", "cma", 1);
    if (e->ops->create(&e->oob, &e->config, &e->t, &why)) /* this host does not allow it from the start */
        return;
    give_up_ptrace();
    rank_barrier(e);
    test_sizes(e);
    rank_destroy(e);
}

static void limit(int what, rlim_t value)
{
    struct rlimit r = {value, value};
    CHECK_INT(setrlimit(what, &r), 0);
}

/* A file size limit would kill by a signal, were it not looked at. */
static void file_size_limit(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    void *ptr = NULL;
    rank_create(e);
    limit(RLIMIT_FSIZE, 1 << 20);
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 8 << 20, &ptr, &why), COSET_ERR_MEMORY);
    CHECK(strstr(why.text, e->rank ? "rank 0" : "ulimit -f"));
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 100000, &ptr, &why), COSET_OK);
    rank_destroy(e);
    limit(RLIMIT_FSIZE, 4096);
    CHECK_INT(e->ops->create(&e->oob, &e->config, &e->t, &why), COSET_ERR_MEMORY);
}

/* In use now; sanitizers use much. */
static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    CHECK(f && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    return (rlim_t)pages * 4096;
}

static void address_space_limit(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    void *ptr = NULL;
    rank_create(e);
    if (e->rank == 1)
        limit(RLIMIT_AS, address_space() + ((rlim_t)100 << 20));
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 150 << 20, &ptr, &why), COSET_ERR_MEMORY);
    CHECK(strstr(why.text, e->rank ? "ulimit -v" : "rank 1"));
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 1 << 20, &ptr, &why), COSET_OK);
    memset(ptr, 1, 1 << 20);
    rank_destroy(e);
}

/* Whichever descriptor is the one too many, all ranks fail at once, and know whose fault it is. */
static void descriptor_limit(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    int next = dup(0);
    struct rlimit before;
    CHECK(next >= 0 && !getrlimit(RLIMIT_NOFILE, &before));
    close(next);
    for (rlim_t more = 0; more < 8; more++) {
        struct rlimit r = {(rlim_t)next + more, before.rlim_max};
        if (e->rank == 1)
            CHECK_INT(setrlimit(RLIMIT_NOFILE, &r), 0);
        CHECK_INT(e->ops->create(&e->oob, &e->config, &e->t, &why), COSET_ERR_SYSTEM);
        CHECK(strstr(why.text, e->rank ? "ulimit -n" : "rank 1"));
    }
    if (e->rank == 1)
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
    rank_create(e);
    rank_destroy(e);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

/* A control group with little memory: an error, not a visit of the kernel's killer. Needs the right to make one. */
static void control_group(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    char path[256], file[300], pid[32];
    void *ptr = NULL;
    snprintf(path, sizeof path, "/sys/fs/cgroup/memory/coset-test-%d", getppid());
    bool usable = !mkdir(path, 0755) || errno == EEXIST;
    rank_barrier(e);
    snprintf(file, sizeof file, "%s/memory.limit_in_bytes", path);
    usable = usable && (e->rank || write_text(file, "67108864"));
    rank_barrier(e);
    snprintf(file, sizeof file, "%s/cgroup.procs", path);
    snprintf(pid, sizeof pid, "%d", getpid());
    usable = usable && write_text(file, pid);
    uint8_t mine = usable, all[2];
    CHECK_INT(e->oob.allgather(e->oob.ctx, &mine, all, 1, 10000), COSET_OK);
    if (all[0] && all[1]) {
        rank_create(e);
        CHECK_INT(e->ops->alloc(e->t, &e->oob, 80 << 20, &ptr, &why), COSET_ERR_MEMORY);
        CHECK(strstr(why.text, e->rank ? "rank 0" : "control group"));
        CHECK_INT(e->ops->alloc(e->t, &e->oob, 4 << 20, &ptr, &why), COSET_OK);
        memset(ptr, 1, 4 << 20);
        rank_destroy(e);
    }
    write_text("/sys/fs/cgroup/memory/cgroup.procs", pid);
    rank_barrier(e);
    if (!e->rank)
        rmdir(path);
}

/* Makes a system call fail with ENOSYS in this process. */
static void forbid(int call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* No memfd_create, and a /dev/shm too small for what is asked: an error, never a bus error. */
static void tiny_dev_shm(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    void *ptr = NULL;
    bool usable = !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
                  !mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=16m");
    uint8_t mine = usable, all[2];
    CHECK_INT(e->oob.allgather(e->oob.ctx, &mine, all, 1, 10000), COSET_OK);
    if (!all[0] || !all[1]) /* not the superuser */
        return;
    forbid(SYS_memfd_create);
    rank_create(e);
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 12 << 20, &ptr, &why), COSET_ERR_MEMORY);
    CHECK_INT(e->ops->alloc(e->t, &e->oob, 1 << 20, &ptr, &why), COSET_OK);
    memset(ptr, 1, 1 << 20);
    rank_destroy(e);
}

/* The abstract name of rank 0's listener, once it is there. */
static struct sockaddr_un find_listener(socklen_t *length)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char wanted[48];
    snprintf(wanted, sizeof wanted, "@coset-%016llx-0-", (unsigned long long)ranks_config(1).job);
    for (int i = 0; i < 5000; i++, usleep(1000)) {
        char line[512];
        FILE *f = fopen("/proc/net/unix", "re");
        CHECK(f);
        while (fgets(line, sizeof line, f)) {
            char *name = strstr(line, wanted);
            if (!name)
                continue;
            size_t n = strcspn(name + 1, "\n");
            memcpy(a.sun_path + 1, name + 1, n);
            *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
            fclose(f);
            return a;
        }
        fclose(f);
    }
    rank_fail(__FILE__, __LINE__, "no listener");
}

static coset_status gather_then_intrude(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    static int calls;
    coset_oob *inner = ctx;
    coset_status status = inner->allgather(inner->ctx, send, recv, bytes, timeout_ms);
    if (calls++)
        return status;
    /* rank 0 waits for us; before we connect, strangers do */
    socklen_t length;
    struct sockaddr_un a = find_listener(&length);
    for (int i = 0; i < 80; i++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        char garbage[300];
        memset(garbage, i, sizeof garbage);
        CHECK(fd >= 0);
        CHECK_INT(connect(fd, (struct sockaddr *)&a, length), 0);
        if (i % 4 == 1)
            CHECK(write(fd, garbage, 1) == 1);
        if (i % 4 == 2)
            CHECK(write(fd, garbage, sizeof garbage) > 0);
        if (i % 4 == 3)
            close(fd); /* the others stay, most of them silent */
    }
    return status;
}

static void intruder(rank_env *e)
{
    coset_oob inner = e->oob;
    if (e->rank)
        e->oob = (coset_oob){sizeof(coset_oob), e->rank, e->size, &inner, gather_then_intrude};
    rank_create(e);
    e->oob = inner;
    sync_by_messages(e, 1);
    rank_destroy(e);
}

static coset_status gather_then_die(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    rank_env *e = ctx;
    coset_status status = e->second.allgather(e->second.ctx, send, recv, bytes, timeout_ms);
    if (e->rank)
        rank_die(e);
    return status;
}

/* Rank 1 dies after it has told where it listens and before it connects: rank 0 does not wait for the deadline. */
static void death_before_connect(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    e->oob = (coset_oob){sizeof(coset_oob), e->rank, e->size, e, gather_then_die};
    e->config.late_ms = 100000;
    CHECK_INT(e->ops->create(&e->oob, &e->config, &e->t, &why), COSET_ERR_PEER);
    CHECK_INT(why.peer, 1);
}

/* Rank 0 finds out in the first step of coset_alloc that the last rank has died or given up, before it hands memory out.
 * The others, who have gone on to the second step, cannot know that; they must not wait for it until the deadline. */
typedef struct {
    rank_env *e;
    coset_oob inner;
    bool dies;
    int calls;
} first_step;

static coset_status first_step_only(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    first_step *s = ctx;
    if (s->calls++)
        return COSET_ERR_PEER;
    coset_status status = s->inner.allgather(s->inner.ctx, send, recv, bytes, timeout_ms);
    if (s->e->rank == s->e->size - 1 && s->dies)
        rank_die(s->e);
    return s->e->rank ? status : COSET_ERR_PEER;
}

static void alloc_alone(rank_env *e, bool dies)
{
    coset_error why = COSET_ERROR_INIT;
    void *ptr;
    e->config.late_ms = 100000;
    rank_create(e);
    first_step s = {e, e->oob, dies, 0};
    coset_oob oob = {sizeof oob, e->rank, e->size, &s, first_step_only};
    if (e->rank < e->size - 1 || dies) {
        cst_deadline end = cst_deadline_in(5000); /* as for any death */
        CHECK_INT(e->ops->alloc(e->t, &oob, 1000, &ptr, &why), e->rank && !dies ? COSET_ERR_ABORTED : COSET_ERR_PEER);
        CHECK(!cst_deadline_passed(end));
    } else {
        coset_notice n = {.kind = COSET_NOTICE_ABORT, .about = e->rank, .status = COSET_ERR_ABORTED, .peer = -1};
        uint64_t vote[2] = {0, 1000}, all[2 * RANKS_MAX];
        CHECK_INT(e->oob.allgather(e->oob.ctx, vote, all, sizeof vote, 10000), COSET_OK);
        e->ops->announce(e->t, &n);
    }
    atomic_fetch_add(&e->shared->word[0], 1);
    while (atomic_load(&e->shared->word[0]) < 2) /* the end of rank 0 would tell rank 1, too */
        drive(e);
    rank_destroy(e);
}

static void death_in_alloc(rank_env *e)
{
    alloc_alone(e, true);
}

static void abort_in_alloc(rank_env *e)
{
    alloc_alone(e, false);
}

static const rank_test more[] = {
    {"staged", staged, true, NULL},
    {"pulled", pulled, true, NULL},
    {"bad_method", bad_method, true, NULL},
    {"different_methods", different_methods, true, NULL},
    {"no_ptrace", no_ptrace, true, NULL},
    {"ptrace_lost", ptrace_lost, true, NULL},
    {"file_size_limit", file_size_limit, true, NULL},
    {"address_space_limit", address_space_limit, true, NULL},
    {"descriptor_limit", descriptor_limit, true, NULL},
    {"control_group", control_group, true, NULL},
    {"tiny_dev_shm", tiny_dev_shm, true, NULL},
    {"intruder", intruder, true, NULL},
    {"death_before_connect", death_before_connect, true, NULL},
    {NULL, NULL, false, NULL},
};

static const rank_test more_of_three[] = {
    {"death_in_alloc", death_in_alloc, true, NULL},
    {"abort_in_alloc", abort_in_alloc, true, NULL},
    {NULL, NULL, false, NULL},
};

int main(int argc, char **argv)
{
    const conformance_target target = {
        .transport = "shm", .processes = true, .more = more, .more_of_three = more_of_three};
    return conformance_main(&target, argc, argv);
}
