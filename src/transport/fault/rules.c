/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fault/rules.h"

#include "base/env.h"
#include "base/error.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

static const char *const points[CST_AT_COUNT] = {"isend",    "irecv",   "cancel", "progress", "idle",
                                                 "announce", "locate",  "map",    "get",      "put",
                                                 "alloc",    "release", "destroy"};

static const struct {
    const char *name;
    cst_fault_action action;
    long standard; /* amount if none is given; -1: one must be given */
    bool message;  /* makes sense for isend only */
} actions[] = {
    {"kill", CST_DO_KILL, 0, false},      {"exit", CST_DO_EXIT, 1, false},  {"hang", CST_DO_HANG, 0, false},
    {"delay", CST_DO_DELAY, -1, false},   {"drop", CST_DO_DROP, 0, true},   {"truncate", CST_DO_TRUNCATE, 1, true},
    {"corrupt", CST_DO_CORRUPT, 0, true}, {"entry", CST_DO_ENTRY, 0, true},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
    {"rank", offsetof(cst_fault_rule, rank)},   {"peer", offsetof(cst_fault_rule, peer)},
    {"op", offsetof(cst_fault_rule, op)},       {"after", offsetof(cst_fault_rule, after)},
    {"times", offsetof(cst_fault_rule, times)},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static bool parse_at(const char *value, cst_fault_rule *r)
{
    for (int i = 0; i < CST_AT_COUNT; i++)
        if (!strcmp(value, points[i])) {
            r->at = (cst_fault_point)i;
            return true;
        }
    return false;
}

static bool parse_do(char *value, cst_fault_rule *r)
{
    char *amount = strchr(value, ':');
    if (amount)
        *amount++ = 0;
    for (int i = 0; i < ACTIONS; i++)
        if (!strcmp(value, actions[i].name)) {
            r->action = actions[i].action;
            r->amount = actions[i].standard;
            if (amount)
                return !cst_parse_long(amount, 0, INT_MAX, &r->amount);
            return r->amount >= 0;
        }
    return false;
}

static bool parse_pair(char *pair, cst_fault_rule *r)
{
    char *value = strchr(pair, '=');
    if (!value)
        return false;
    *value++ = 0;
    if (!strcmp(pair, "at"))
        return parse_at(value, r);
    if (!strcmp(pair, "do"))
        return parse_do(value, r);
    for (int i = 0; i < NUMBERS; i++)
        if (!strcmp(pair, numbers[i].key))
            return !cst_parse_long(value, 0, LONG_MAX, (long *)((char *)r + numbers[i].offset));
    return false;
}

static bool sensible(const cst_fault_rule *r)
{
    for (int i = 0; i < ACTIONS; i++)
        if (actions[i].action == r->action)
            return !actions[i].message || r->at == CST_AT_ISEND;
    return false;
}

/* *rest: what follows the next delimiter, or NULL. */
static char *next_part(char *text, char delimiter, char **rest)
{
    *rest = strchr(text, delimiter);
    if (*rest)
        *(*rest)++ = 0;
    return text;
}

coset_status cst_fault_parse(const char *text, cst_fault_rules *rules, coset_error *why)
{
    char copy[1024];
    rules->count = 0;
    if (!text)
        return COSET_OK;
    if (strlen(text) >= sizeof copy)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_FAULT is too long (%zu characters)", strlen(text));
    strcpy(copy, text);
    for (char *rest, *at = copy; at; at = rest) {
        char *part = next_part(at, ';', &rest);
        cst_fault_rule r = {.rank = -1, .peer = -1, .op = -1, .times = 1};
        for (char *more, *p = part; p; p = more) {
            size_t offset = (size_t)(p - copy);
            char *pair = next_part(p, ',', &more);
            if (!parse_pair(pair, &r))
                return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                                "COSET_FAULT: '%.40s' means nothing (src/transport/fault/rules.h)", text + offset);
        }
        if (!sensible(&r) || rules->count == CST_FAULT_RULES)
            return cst_fail(
                why, COSET_ERR_ARGUMENT, -1,
                "COSET_FAULT: rule '%.60s': needs do=..., which must fit at=..., and there are at most %d rules",
                text + (part - copy), CST_FAULT_RULES);
        rules->rule[rules->count++] = r;
    }
    return COSET_OK;
}

static bool matches(const cst_fault_rule *r, cst_fault_point at, int rank, int peer, long op)
{
    return r->at == at && (r->rank < 0 || r->rank == rank) && (r->peer < 0 || r->peer == peer) &&
           (r->op < 0 || r->op == op);
}

cst_fault_action cst_fault_due(cst_fault_rules *rules, cst_fault_point at, int rank, int peer, long op, long *amount)
{
    for (int i = 0; i < rules->count; i++) {
        cst_fault_rule *r = &rules->rule[i];
        if (!matches(r, at, rank, peer, op) || r->seen++ < r->after || (r->times && r->done >= r->times))
            continue;
        r->done++;
        *amount = r->amount;
        return r->action;
    }
    return CST_DO_NOTHING;
}
