/* SPDX-License-Identifier: Apache-2.0 */
/* A process that outlives `coset run` if that is killed, and then kills the groups of its ranks. */
#ifndef COSET_RUN_GUARD_H
#define COSET_RUN_GUARD_H
#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    int pipe;
    pid_t pid;
} guard;

/* False if no process can be made (errno). */
bool guard_start(guard *g);
/* From now on, and no longer: a group is forgotten before its leader is reaped, since its number may be used again. */
void guard_watch(const guard *g, pid_t group);
void guard_forget(const guard *g, pid_t group);
/* The job has ended well or ill, but it has ended. */
void guard_dismiss(guard *g);
#endif
