/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/notices.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cst_notice_node {
    cst_notice_node *next;
    coset_notice notice;
};

void cst_notices_init(cst_notices *q, size_t limit)
{
    *q = (cst_notices){NULL, &q->first, 0, limit};
}

bool cst_notices_push(cst_notices *q, const coset_notice *notice)
{
    cst_notice_node *n = q->count < q->limit ? malloc(sizeof *n) : NULL;
    if (!n)
        return false;
    n->next = NULL;
    n->notice = *notice;
    n->notice.text[sizeof n->notice.text - 1] = 0;
    *q->last = n;
    q->last = &n->next;
    q->count++;
    return true;
}

bool cst_notices_pop(cst_notices *q, coset_notice *out)
{
    cst_notice_node *n = q->first;
    if (!n)
        return false;
    *out = n->notice;
    q->first = n->next;
    if (!q->first)
        q->last = &q->first;
    q->count--;
    free(n);
    return true;
}

void cst_notices_move(cst_notices *to, cst_notices *from)
{
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    to->count += from->count;
    cst_notices_init(from, from->limit);
}

void cst_notices_free(cst_notices *q)
{
    coset_notice ignored;
    while (cst_notices_pop(q, &ignored))
        ;
}

coset_notice cst_notice_make(coset_notice_kind kind, int about, coset_status status, int peer, const char *format, ...)
{
    coset_notice n = {kind, about, status, peer, UINT64_MAX, {0}};
    va_list args;
    va_start(args, format);
    vsnprintf(n.text, sizeof n.text, format, args);
    va_end(args);
    return n;
}

bool cst_notice_valid(const coset_notice *notice, int size)
{
    return notice->kind >= COSET_NOTICE_DEATH && notice->kind <= COSET_NOTICE_LATE && notice->about >= 0 &&
           notice->about < size && notice->peer >= -1 && notice->peer < size;
}
