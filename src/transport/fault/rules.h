/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COSET_FAULT: what goes wrong, where. Read by the transports "fault:NAME" only.
 *
 *     COSET_FAULT = rule [; rule]...
 *     rule        = key=value [, key=value]...      `do` is needed, the rest has defaults
 *
 *     at=CALL     the call that it happens in: isend (default), irecv, cancel, progress, idle, announce, locate, map,
 *                 get, put, alloc, release, destroy. One operation on shared memory calls `locate` when it starts and
 *                 `map` when the peers have arrived, so these are its points "before" and "in the middle".
 *     rank=R      on this rank only; default: every rank
 *     op=K        only messages of operation K (isend and irecv); default: any
 *     peer=P      only calls that concern this peer (isend, irecv, map, get, put); default: any
 *     after=N     let N such calls pass; default 0
 *     times=M     happens M times, 0: for ever; default 1
 *     do=kill         raise(SIGKILL)
 *        exit[:CODE]  _exit(CODE), default 1
 *        hang         never returns
 *        delay:MS     a message is handed over MS milliseconds later; another call takes that much longer
 *        drop         (isend) the message is never sent, and said to be done
 *        truncate[:N] (isend) the message is N bytes shorter, default 1
 *        corrupt[:N]  (isend) the lowest bit of byte N is flipped, default 0
 *        entry        (isend) the lowest bit of the entry is flipped
 *
 * Example: COSET_FAULT="rank=1,op=3,after=2,do=kill;rank=0,at=progress,times=0,do=delay:1"
 */
#ifndef CST_TRANSPORT_FAULT_RULES_H
#define CST_TRANSPORT_FAULT_RULES_H
#include <coset.h>
#include <stdbool.h>

typedef enum {
    CST_AT_ISEND,
    CST_AT_IRECV,
    CST_AT_CANCEL,
    CST_AT_PROGRESS,
    CST_AT_IDLE,
    CST_AT_ANNOUNCE,
    CST_AT_LOCATE,
    CST_AT_MAP,
    CST_AT_GET,
    CST_AT_PUT,
    CST_AT_ALLOC,
    CST_AT_RELEASE,
    CST_AT_DESTROY,
    CST_AT_COUNT
} cst_fault_point;
typedef enum {
    CST_DO_NOTHING,
    CST_DO_KILL,
    CST_DO_EXIT,
    CST_DO_HANG,
    CST_DO_DELAY,
    CST_DO_DROP,
    CST_DO_TRUNCATE,
    CST_DO_CORRUPT,
    CST_DO_ENTRY
} cst_fault_action;

typedef struct {
    cst_fault_point at;
    cst_fault_action action;
    long amount;     /* of the action: code, milliseconds, bytes */
    long rank, peer; /* -1: any */
    long op;         /* -1: any */
    long after, times;
    long seen, done; /* calls that matched; times that it happened */
} cst_fault_rule;

enum { CST_FAULT_RULES = 16 };
typedef struct {
    int count;
    cst_fault_rule rule[CST_FAULT_RULES];
} cst_fault_rules;

/* ARGUMENT: *why quotes the part that means nothing. NULL is no rule. */
coset_status cst_fault_parse(const char *text, cst_fault_rules *rules, coset_error *why);

/* The action due in this call, and its amount. op and peer: -1 where the call has none. */
cst_fault_action cst_fault_due(cst_fault_rules *rules, cst_fault_point at, int rank, int peer, long op, long *amount);
#endif
