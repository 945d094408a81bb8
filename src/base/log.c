/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "base/host.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_once_t once;
    cst_log_level level;
    int fd;
} sink = {PTHREAD_ONCE_INIT, CST_LOG_NONE, 2};

static cst_log_level parse_level(const char *text)
{
    static const char *const names[] = {"none", "warn", "info", "trace"};
    if (!text || !*text)
        return CST_LOG_NONE;
    for (int i = 0; i < 4; i++)
        if (!strcasecmp(text, names[i]))
            return (cst_log_level)i;
    dprintf(2, "coset: COSET_DEBUG=%s means nothing: none, warn, info or trace; taken for warn\n", text);
    return CST_LOG_WARN;
}

static void expand(const char *pattern, char *out, size_t size)
{
    size_t n = 0;
    for (; *pattern && n + 1 < size; pattern++) {
        int put = 0;
        if (pattern[0] == '%' && pattern[1] == 'h') {
            char host[64];
            put = snprintf(out + n, size - n, "%s", cst_host_name(host));
        } else if (pattern[0] == '%' && pattern[1] == 'p') {
            put = snprintf(out + n, size - n, "%ld", (long)getpid());
        } else {
            out[n++] = *pattern;
            continue;
        }
        pattern++;
        n = put < 0 ? n : (n + (size_t)put < size ? n + (size_t)put : size - 1);
    }
    out[n] = 0;
}

static void open_sink(void)
{
    sink.level = parse_level(getenv("COSET_DEBUG"));
    const char *file = getenv("COSET_DEBUG_FILE");
    if (sink.level == CST_LOG_NONE || !file || !*file)
        return;
    char path[4096];
    expand(file, path, sizeof path);
    FILE *f = fopen(path, "ae");
    if (f) {
        sink.fd = dup(fileno(f));
        fclose(f);
    } else {
        dprintf(2, "coset: COSET_DEBUG_FILE: cannot write %s: %s; the log goes to standard error\n", path,
                strerror(errno));
    }
}

/* What COSET_DEBUG asks for. */
static cst_log_level asked(void)
{
    pthread_once(&sink.once, open_sink);
    return sink.level;
}

void cst_log(cst_log_level level, const char *format, ...)
{
    if (level > asked())
        return;
    static const char *const names[] = {"", "WARN", "INFO", "TRACE"};
    char line[1024];
    uint64_t now = cst_now_ns();
    int n =
        snprintf(line, sizeof line, "coset %ld %llu.%06llu %s ", (long)getpid(),
                 (unsigned long long)(now / 1000000000u), (unsigned long long)(now % 1000000000u / 1000), names[level]);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    size_t end = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (end > sizeof line - 2)
        end = sizeof line - 2;
    line[end] = '\n';
    /* one write per line, so that lines of several processes do not mix */
    if (write(sink.fd, line, end + 1) < 0)
        return;
}
