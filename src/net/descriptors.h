/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are there enough descriptors for what is coming? Found out before ranks depend on each other: later one of them would
 * fail alone and the others would wait for it.
 */
#ifndef CST_NET_DESCRIPTORS_H
#define CST_NET_DESCRIPTORS_H
#include <coset.h>
#include <poll.h>

typedef struct {
    int count, *fd;
} cst_descriptors;

/* Holds `count` descriptors until cst_descriptors_free gives them back; ranks of one process that hold theirs at the
 * same time each find out whether there is enough for all of them. SYSTEM: there are not so many; the text says how
 * many `what` needs and how to raise the limit. MEMORY. On failure nothing is held. */
coset_status cst_descriptors_hold(cst_descriptors *d, int count, const char *what, coset_error *why);
void cst_descriptors_free(cst_descriptors *d);
/* errno: this process, or the host, has no descriptor left. */
int cst_descriptors_exhausted(int error);
/* poll(), which refuses sets larger than the limit of descriptors even if most of their entries are empty (fd -1). */
int cst_poll(struct pollfd *set, int count, int timeout_ms);
#endif
