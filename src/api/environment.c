/* SPDX-License-Identifier: Apache-2.0 */
/* All of coset's environment variables, looked at without making a communicator. */
#include "api/settings.h"
#include "base/env.h"
#include "bootstrap/job.h"
#include "cpu/cpu.h"
#include "transport/environment.h"

typedef struct {
    void (*fn)(void *ctx, coset_status status, const char *line);
    void *ctx;
} listener;

static void tell_unknown(void *ctx, const char *line)
{
    const listener *l = ctx;
    l->fn(l->ctx, COSET_OK, line);
}

coset_status coset_check_environment(void (*fn)(void *ctx, coset_status status, const char *line), void *ctx)
{
    static coset_status (*const checks[])(coset_error * why) = {cst_cpu_check, cst_settings_check_env,
                                                                cst_job_check_env, cst_transport_check_env};
    listener l = {fn, ctx};
    coset_status status = COSET_OK;
    if (fn)
        cst_env_unknown(tell_unknown, &l);
    for (size_t i = 0; i < sizeof checks / sizeof *checks && !status; i++) {
        coset_error why = COSET_ERROR_INIT;
        status = checks[i](&why);
        if (status && fn)
            fn(ctx, status, why.text);
    }
    return status;
}
