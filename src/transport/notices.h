/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of notices, bounded by what a group can sensibly say. Not thread-safe. */
#ifndef CST_TRANSPORT_NOTICES_H
#define CST_TRANSPORT_NOTICES_H
#include <coset_transport.h>
#include <stdbool.h>

typedef struct cst_notice_node cst_notice_node;
typedef struct {
    cst_notice_node *first, **last;
    size_t count, limit;
} cst_notices;

/* `limit` notices at most are kept; later ones are dropped: the first ones tell the cause. */
void cst_notices_init(cst_notices *q, size_t limit);
/* False when the queue is full or memory is. The text is cut to size and terminated. */
bool cst_notices_push(cst_notices *q, const coset_notice *notice);
/* Takes the oldest; false if there is none. */
bool cst_notices_pop(cst_notices *q, coset_notice *out);
/* Moves everything from `from` to the end of `to`. */
void cst_notices_move(cst_notices *to, cst_notices *from);
void cst_notices_free(cst_notices *q);

/* A notice with a formatted text. */
coset_notice cst_notice_make(coset_notice_kind kind, int about, coset_status status, int peer, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Are the fields of a notice from outside in range for `size` ranks? */
bool cst_notice_valid(const coset_notice *notice, int size);
#endif
