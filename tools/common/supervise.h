/* SPDX-License-Identifier: Apache-2.0 */
/* Starting processes and seeing that all of them end. */
#ifndef COSET_TOOLS_SUPERVISE_H
#define COSET_TOOLS_SUPERVISE_H

/* What has been printed leaves this process. Returns `status`, or says that it cannot be written and returns a failure. */
int tool_printed(int status);
/*
 * Forks `count` processes that run body(i, count, ctx) and exit with what it returns; waits for all. When one fails the
 * others get 10 s to end by themselves, then SIGTERM, then (2 s later) SIGKILL. SIGINT and SIGTERM are passed on. The
 * processes die with this one. Returns the exit status of the first that failed (128 + signal if a signal killed it).
 */
int tool_supervise(const char *command, int count, int (*body)(int index, int count, void *ctx), void *ctx);
#endif
