/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *coset_version(void)
{
    return "0.1.0";
}

const char *coset_strerror(coset_status status)
{
    switch (status) {
    case COSET_OK: return "success";
    case COSET_ERR_ARGUMENT: return "invalid argument";
    case COSET_ERR_UNSUPPORTED: return "not supported here";
    case COSET_ERR_MEMORY: return "out of memory";
    case COSET_IN_PROGRESS: return "not finished";
    case COSET_ERR_PEER: return "a rank died or fell silent";
    case COSET_ERR_LATE: return "a rank did not arrive in time";
    case COSET_ERR_MISMATCH: return "ranks disagree about the call";
    case COSET_ERR_ABORTED: return "aborted";
    case COSET_ERR_CORRUPT: return "corrupt data";
    case COSET_ERR_SYSTEM: return "a system call failed";
    }
    return "unknown status";
}

/* The caller may have been compiled against a shorter or longer coset_error: touch struct_size bytes at most. */
static size_t usable(const coset_error *e)
{
    return e->struct_size < sizeof(coset_error) ? e->struct_size : sizeof(coset_error);
}

void cst_error_copy(coset_error *to, const coset_error *from)
{
    if (!to || usable(to) <= sizeof to->struct_size)
        return;
    size_t skip = sizeof to->struct_size;
    memcpy((char *)to + skip, (const char *)from + skip, usable(to) - skip);
}

void cst_error_clear(coset_error *why)
{
    const coset_error none = COSET_ERROR_INIT;
    cst_error_copy(why, &none);
}

static coset_status fail_v(coset_error *why, coset_status status, int peer, int saved_errno, const char *format,
                           va_list args)
{
    coset_error e = COSET_ERROR_INIT;
    e.status = status;
    e.peer = peer;
    if (why) {
        /* keep what a caller further in has filled */
        coset_error old = COSET_ERROR_INIT;
        memcpy(&old, why, usable(why));
        e.rank = old.rank;
        e.op = old.op;
        memcpy(e.host, old.host, sizeof e.host);
    }
    int n = vsnprintf(e.text, sizeof e.text, format, args);
    if (saved_errno && n >= 0 && (size_t)n < sizeof e.text)
        snprintf(e.text + n, sizeof e.text - (size_t)n, ": %s", strerror(saved_errno));
    cst_error_copy(why, &e);
    return status;
}

coset_status cst_fail(coset_error *why, coset_status status, int peer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_v(why, status, peer, 0, format, args);
    va_end(args);
    return status;
}

coset_status cst_fail_errno(coset_error *why, const char *format, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, format);
    fail_v(why, COSET_ERR_SYSTEM, -1, saved, format, args);
    va_end(args);
    errno = saved;
    return COSET_ERR_SYSTEM;
}
