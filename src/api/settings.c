/* SPDX-License-Identifier: Apache-2.0 */
#include "api/settings.h"

#include "base/env.h"
#include "base/error.h"
#include "coll/select.h"
#include "cpu/cpu.h"

#include <string.h>

/* Long enough for the slowest data loader, short enough to learn of a lost job the same day. */
#define LATE_MS_DEFAULT 600000
/* A link that comes back within it has not killed its host. */
#define DEAD_MS_DEFAULT 10000
#define DAY_MS          86400000

static coset_status choose_algorithm(const char *name, cst_settings *s, coset_error *why)
{
    s->algorithm = name ? cst_algo_parse(name) : CST_ALGO_AUTO;
    if (s->algorithm >= 0)
        return COSET_OK;
    return cst_fail(why, COSET_ERR_ARGUMENT, -1, "no algorithm '%s'; there are %s", name, cst_algo_list());
}

static coset_status choose_transport(const char *name, cst_settings *s, coset_error *why)
{
    if (!name)
        return COSET_OK;
    if (strlen(name) >= sizeof s->transport)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "transport name '%.40s...' is too long", name);
    strncpy(s->transport, name, sizeof s->transport - 1);
    return COSET_OK;
}

/* `option`, else the variable, else `fallback`, in *value. */
static coset_status choose_number(int option, const char *variable, int low, int high, int fallback, int *value,
                                  coset_error *why)
{
    *value = option ? option : fallback;
    if (option && (option < low || option > high))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "option %s=%d: expected %d to %d", variable, option, low, high);
    return option ? COSET_OK : cst_env_int(variable, low, high, value, why);
}

static coset_status choose_progress(int option, cst_settings *s, coset_error *why)
{
    const char *name = cst_env("COSET_PROGRESS");
    s->progress = option;
    if (option != COSET_PROGRESS_THREAD && option != COSET_PROGRESS_CALLER)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "progress=%d: expected COSET_PROGRESS_THREAD or COSET_PROGRESS_CALLER", option);
    if (option || !name)
        return COSET_OK;
    if (strcmp(name, "thread") && strcmp(name, "caller"))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_PROGRESS=%s: expected thread or caller", name);
    s->progress = !strcmp(name, "caller");
    return COSET_OK;
}

coset_status cst_settings_from(const coset_comm_options *options, cst_settings *s, coset_error *why)
{
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    if (options) {
        if (options->struct_size < sizeof options->struct_size || options->struct_size > 4096)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "options.struct_size is not set: use COSET_COMM_OPTIONS_INIT");
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    }
    memset(s, 0, sizeof *s);
    cst_env_warn_unknown();
    coset_status status = cst_cpu_check(why);
    if (status == COSET_OK)
        status = choose_transport(o.transport ? o.transport : cst_env("COSET_TRANSPORT"), s, why);
    if (status == COSET_OK)
        status = choose_algorithm(o.algorithm ? o.algorithm : cst_env("COSET_ALGO"), s, why);
    if (status == COSET_OK)
        status = choose_progress(o.progress, s, why);
    if (status == COSET_OK)
        status = choose_number(o.rank_order, "COSET_RANK_ORDER", 0, 1, 0, &s->rank_order, why);
    if (status == COSET_OK)
        status = choose_number(o.late_ms, "COSET_LATE_MS", 1, DAY_MS, LATE_MS_DEFAULT, &s->late_ms, why);
    if (status == COSET_OK)
        status = choose_number(o.dead_ms, "COSET_DEAD_MS", 100, DAY_MS, DEAD_MS_DEFAULT, &s->dead_ms, why);
    s->checksum = o.checksum != 0;
    return status;
}
