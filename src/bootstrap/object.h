/* SPDX-License-Identifier: Apache-2.0 */
/* The part that every form has, first in its own structure. */
#ifndef CST_BOOTSTRAP_OBJECT_H
#define CST_BOOTSTRAP_OBJECT_H
#include "bootstrap/bootstrap.h"
#include "net/addr.h"

struct cst_bootstrap {
    coset_oob oob; /* ctx is the structure itself */
    coset_error error;
    char address[CST_ADDR_TEXT];
    void (*close)(cst_bootstrap *b);
};

/* ARGUMENT unless 0 <= rank < size. */
coset_status cst_bootstrap_check_rank(int rank, int size, coset_error *why);
/* A group of one: nothing to connect. */
coset_status cst_bootstrap_alone(cst_bootstrap **out, coset_error *why);
#endif
