/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env.h"

#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Every variable that any part of the library or the tool reads (docs/environment.md). */
static const char *const known[] = {
    "COSET_ALGO",    "COSET_CPU",         "COSET_DEAD_MS",    "COSET_DEBUG",      "COSET_DEBUG_FILE",
    "COSET_FAULT",   "COSET_FLIGHT_FILE", "COSET_HOSTID",     "COSET_IFNAME",     "COSET_JOB",
    "COSET_LATE_MS", "COSET_LOCAL_RANK",  "COSET_LOCAL_SIZE", "COSET_PORT_RANGE", "COSET_PROGRESS",
    "COSET_RANK",    "COSET_RANK_ORDER",  "COSET_ROOT",       "COSET_SHM_METHOD", "COSET_SIZE",
    "COSET_SOCKETS", "COSET_TRANSPORT",
};

const char *cst_env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

int cst_parse_long(const char *text, long low, long high, long *value)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end || errno || v < low || v > high)
        return -1;
    *value = v;
    return 0;
}

coset_status cst_env_int(const char *name, long low, long high, int *value, coset_error *why)
{
    const char *text = cst_env(name);
    long v;
    if (!text)
        return COSET_OK;
    if (cst_parse_long(text, low, high, &v))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "%s=%s: expected a number from %ld to %ld", name, text, low, high);
    *value = (int)v;
    return COSET_OK;
}

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == length && !strncmp(known[i], name, length))
            return true;
    return false;
}

void cst_env_unknown(void (*fn)(void *ctx, const char *line), void *ctx)
{
    for (char **e = environ; e && *e; e++) {
        size_t length = strcspn(*e, "=");
        if (strncmp(*e, "COSET_", 6) || is_known(*e, length))
            continue;
        char line[160];
        snprintf(line, sizeof line, "unknown variable %.*s: it has no effect", length < 100 ? (int)length : 100, *e);
        fn(ctx, line);
    }
}

static void log_line(void *ctx, const char *line)
{
    (void)ctx;
    cst_log(CST_LOG_WARN, "%s", line);
}

static void warn_unknown(void)
{
    cst_env_unknown(log_line, NULL);
}

void cst_env_warn_unknown(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, warn_unknown);
}
