/* SPDX-License-Identifier: Apache-2.0 */
#include "net/resolve.h"

#include "base/error.h"
#include "base/log.h"

#include <ctype.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* getaddrinfo has no deadline of its own (resolv.conf's is about 10 s), so it runs on a thread that may be left
 * behind; whoever of the two ends last frees the query. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int owners;
    int done, code;
    struct addrinfo *found;
    char host[CST_HOST_TEXT];
} query;

static void query_drop(query *q)
{
    pthread_mutex_lock(&q->lock);
    int left = --q->owners;
    pthread_mutex_unlock(&q->lock);
    if (left)
        return;
    if (q->found)
        freeaddrinfo(q->found);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static void *query_run(void *ctx)
{
    query *q = ctx;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(q->host, NULL, &hints, &found);
    pthread_mutex_lock(&q->lock);
    q->code = code;
    q->found = code ? NULL : found;
    q->done = 1;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    query_drop(q);
    return NULL;
}

static query *query_new(const char *host)
{
    query *q = calloc(1, sizeof *q);
    pthread_condattr_t monotonic;
    if (!q)
        return NULL;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    q->owners = 2;
    strcpy(q->host, host);
    return q;
}

static void query_wait(query *q, cst_deadline deadline)
{
    struct timespec until = {(time_t)(deadline / 1000000000u), (long)(deadline % 1000000000u)};
    pthread_mutex_lock(&q->lock);
    while (!q->done) {
        if (deadline == CST_NEVER)
            pthread_cond_wait(&q->changed, &q->lock);
        else if (pthread_cond_timedwait(&q->changed, &q->lock, &until))
            break;
    }
    pthread_mutex_unlock(&q->lock);
}

static int collect(const struct addrinfo *found, uint16_t port, cst_addr *out, int max)
{
    int n = 0;
    for (; found && n < max; found = found->ai_next) {
        cst_addr a = cst_addr_from(found->ai_addr);
        int seen = a.length == 0;
        for (int i = 0; i < n && !seen; i++)
            seen = cst_addr_same(&a, &out[i]);
        if (seen)
            continue;
        cst_addr_set_port(&a, port);
        out[n++] = a;
    }
    return n;
}

/* One attempt. Returns how many addresses, 0 with *code (a getaddrinfo code; EAI_AGAIN when time ran out). */
static int ask(const char *host, uint16_t port, cst_deadline deadline, cst_addr *out, int max, int *code)
{
    pthread_t thread;
    query *q = query_new(host);
    *code = EAI_MEMORY;
    if (!q)
        return 0;
    if (pthread_create(&thread, NULL, query_run, q))
        query_run(q); /* no thread to be had: without a deadline then */
    else
        pthread_detach(thread);
    query_wait(q, deadline);
    pthread_mutex_lock(&q->lock);
    *code = q->done ? q->code : EAI_AGAIN;
    int n = q->done ? collect(q->found, port, out, max) : 0;
    pthread_mutex_unlock(&q->lock);
    query_drop(q);
    return n;
}

static bool can_be_name(const char *host)
{
    size_t n = strlen(host);
    if (n == 0 || n >= CST_HOST_TEXT - 1)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr("-._", host[i]))
            return false;
    return true;
}

/* What time may mend: a name that is not there yet, a server that does not answer. */
static bool may_change(int code)
{
    return code == EAI_AGAIN || code == EAI_NONAME || code == EAI_NODATA || code == EAI_FAIL || code == EAI_SYSTEM;
}

coset_status cst_resolve(const char *host, uint16_t port, cst_deadline deadline, cst_addr *out, int max, int *count,
                         coset_error *why)
{
    if (!cst_addr_parse(host, &out[0])) {
        cst_addr_set_port(&out[0], port);
        *count = 1;
        return COSET_OK;
    }
    if (!can_be_name(host))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "'%.100s' is neither a host name nor an address", host);
    int code = 0;
    for (int pause_ms = 100;; pause_ms = pause_ms < 1600 ? 2 * pause_ms : 1600) {
        int n = ask(host, port, deadline, out, max, &code);
        if (n > 0) {
            *count = n;
            return COSET_OK;
        }
        if (!may_change(code) || cst_deadline_passed(deadline))
            break;
        cst_log(CST_LOG_INFO, "cannot resolve %s yet (%s): asking again", host, gai_strerror(code));
        int ms = cst_deadline_left(deadline, pause_ms);
        nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
    }
    return cst_fail(why, COSET_ERR_SYSTEM, -1, "cannot resolve the host name '%.100s': %s", host, gai_strerror(code));
}
