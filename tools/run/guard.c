/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* What goes through the pipe: a group to watch, minus a group to forget, or 0: dismissed. */

static _Noreturn void stand_guard(int from)
{
    pid_t *group = NULL, word;
    size_t count = 0;
    ssize_t n;
    setsid(); /* out of the reach of the terminal's signals */
    while ((n = read(from, &word, sizeof word)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof word || word == 0)
            _exit(0);
        if (word > 0) {
            pid_t *grown = realloc(group, (count + 1) * sizeof *grown);
            if (!grown)
                continue; /* one less to care for; its parent-death signal remains */
            group = grown;
            group[count++] = word;
            continue;
        }
        for (size_t i = 0; i < count; i++)
            if (group[i] == -word)
                group[i--] = group[--count];
    }
    for (size_t i = 0; i < count; i++)
        kill(-group[i], SIGKILL);
    _exit(0);
}

bool guard_start(guard *g)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return false;
    g->pid = fork();
    if (g->pid == 0) {
        close(ends[1]);
        stand_guard(ends[0]);
    }
    close(ends[0]);
    g->pipe = ends[1];
    if (g->pid < 0)
        close(ends[1]);
    return g->pid > 0;
}

static void tell(const guard *g, pid_t word)
{
    /* a guard that is gone cannot be helped, and a pipe takes 16,384 of these before it is full */
    ssize_t n = write(g->pipe, &word, sizeof word);
    (void)n;
}

void guard_watch(const guard *g, pid_t group)
{
    tell(g, group);
}

void guard_forget(const guard *g, pid_t group)
{
    tell(g, -group);
}

void guard_dismiss(guard *g)
{
    tell(g, 0);
    close(g->pipe);
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
