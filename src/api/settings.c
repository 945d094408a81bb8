/* SPDX-License-Identifier: Apache-2.0 */
#include "api/settings.h"

#include "base/env.h"
#include "base/error.h"
#include "bootstrap/job.h"
#include "coll/select.h"
#include "cpu/cpu.h"

#include <stdio.h>
#include <string.h>

/* Long enough for the slowest data loader, short enough to learn of a lost job the same day. */
#define LATE_MS_DEFAULT 600000
/* A link that comes back within it has not killed its host. */
#define DEAD_MS_DEFAULT 10000
#define LATE_MS_LEAST   1
#define DEAD_MS_LEAST   100
#define DAY_MS          86400000

/* `from`: the variable or option that gave the name. */
static coset_status choose_algorithm(const char *from, const char *name, cst_settings *s, coset_error *why)
{
    s->algorithm = name ? cst_algo_parse(name) : CST_ALGO_AUTO;
    if (s->algorithm >= 0)
        return COSET_OK;
    return cst_fail(why, COSET_ERR_ARGUMENT, -1, "%s: no algorithm '%.40s'; there are %s", from, name, cst_algo_list());
}

static coset_status choose_transport(const char *name, cst_settings *s, coset_error *why)
{
    if (name && strlen(name) >= sizeof s->transport)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "transport name '%.40s...' is too long", name);
    snprintf(s->transport, sizeof s->transport, "%s", name ? name : "");
    return COSET_OK;
}

static coset_status choose_progress(const char *name, cst_settings *s, coset_error *why)
{
    if (name && strcmp(name, "thread") && strcmp(name, "caller"))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_PROGRESS=%s: expected thread or caller", name);
    s->progress = name && !strcmp(name, "caller") ? COSET_PROGRESS_CALLER : COSET_PROGRESS_THREAD;
    return COSET_OK;
}

/* What the environment says, defaults elsewhere. */
static coset_status read_environment(cst_settings *s, coset_error *why)
{
    *s = (cst_settings){.late_ms = LATE_MS_DEFAULT, .dead_ms = DEAD_MS_DEFAULT};
    coset_status status = choose_transport(cst_env("COSET_TRANSPORT"), s, why);
    if (status == COSET_OK)
        status = choose_algorithm("COSET_ALGO", cst_env("COSET_ALGO"), s, why);
    if (status == COSET_OK)
        status = choose_progress(cst_env("COSET_PROGRESS"), s, why);
    if (status == COSET_OK)
        status = cst_env_int("COSET_RANK_ORDER", 0, 1, &s->rank_order, why);
    if (status == COSET_OK)
        status = cst_env_int("COSET_LATE_MS", LATE_MS_LEAST, DAY_MS, &s->late_ms, why);
    if (status == COSET_OK)
        status = cst_env_int("COSET_DEAD_MS", DEAD_MS_LEAST, DAY_MS, &s->dead_ms, why);
    return status;
}

/* *value = option, unless it is zero. */
static coset_status take_number(const char *name, int option, int low, int high, int *value, coset_error *why)
{
    if (option && (option < low || option > high))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "options.%s is %d: expected %d to %d", name, option, low, high);
    if (option)
        *value = option;
    return COSET_OK;
}

/* Options that are given win over what *s says. */
static coset_status take_options(const coset_comm_options *o, cst_settings *s, coset_error *why)
{
    coset_status status = o->transport ? choose_transport(o->transport, s, why) : COSET_OK;
    if (status == COSET_OK && o->algorithm)
        status = choose_algorithm("options.algorithm", o->algorithm, s, why);
    if (status == COSET_OK)
        status = take_number("progress", o->progress, COSET_PROGRESS_THREAD, COSET_PROGRESS_CALLER, &s->progress, why);
    if (status == COSET_OK)
        status = take_number("rank_order", o->rank_order, 0, 1, &s->rank_order, why);
    if (status == COSET_OK)
        status = take_number("late_ms", o->late_ms, LATE_MS_LEAST, DAY_MS, &s->late_ms, why);
    if (status == COSET_OK)
        status = take_number("dead_ms", o->dead_ms, DEAD_MS_LEAST, DAY_MS, &s->dead_ms, why);
    s->checksum = o->checksum != 0;
    return status;
}

coset_status cst_settings_check_env(coset_error *why)
{
    cst_settings unused;
    return read_environment(&unused, why);
}

coset_status cst_settings_from(const coset_comm_options *options, cst_settings *s, coset_error *why)
{
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    if (options) {
        if (options->struct_size < sizeof options->struct_size || options->struct_size > 4096)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "options.struct_size is not set: use COSET_COMM_OPTIONS_INIT");
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    }
    cst_env_warn_unknown();
    coset_status status = cst_cpu_check(why);
    if (status == COSET_OK)
        status = cst_job_check_env(why);
    if (status == COSET_OK)
        status = read_environment(s, why);
    return status == COSET_OK ? take_options(&o, s, why) : status;
}
