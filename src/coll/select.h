/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithm: names, what each one can do, and the table that `auto` looks up. docs/algorithms.md explains them. */
#ifndef CST_COLL_SELECT_H
#define CST_COLL_SELECT_H
#include "coll/plan.h"

/* Numbers are compared between ranks: they are part of the wire version. */
typedef enum {
    CST_ALGO_AUTO = 0,
    CST_ALGO_FLAT,
    CST_ALGO_DIRECT,
    CST_ALGO_RING,
    CST_ALGO_RD,
    CST_ALGO_RHD,
    CST_ALGO_TREE,
    CST_ALGO_NAIVE,
    CST_ALGO_HIER
} cst_algo;
#define CST_ALGO_COUNT 9

/* "ring"; "?" for a value that is none. */
const char *cst_algo_name(int algo);
/* "ring" -> CST_ALGO_RING; -1 for a name that is none. */
int cst_algo_parse(const char *name);
/* "auto, flat, direct, ...": for error texts and help. */
const char *cst_algo_list(void);

/* Can `algo` serve this plan? UNSUPPORTED, with one line in *why (may be NULL) that says what can. AUTO always can. */
coset_status cst_algo_check(cst_algo algo, const cst_plan *plan, coset_error *why);
/* The algorithm by which a plan of any kind is carried out over messages: `wanted` if it is not AUTO (an all-reduce only;
 * other kinds choose for themselves), else the table's. Depends on what is the same on all ranks only. */
cst_algo cst_select(const cst_plan *plan, cst_algo wanted);
#endif
