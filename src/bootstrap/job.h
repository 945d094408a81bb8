/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher's environment says: who this rank is and where the ranks meet. Reads variables, talks to nobody. */
#ifndef CST_BOOTSTRAP_JOB_H
#define CST_BOOTSTRAP_JOB_H
#include "net/addr.h"

#include <coset.h>

typedef struct {
    int rank, size;
    const char *from;         /* the variable that gave the meeting place, for error texts */
    char host[CST_HOST_TEXT]; /* of the root; empty: a local socket */
    uint16_t port;
    char local[160]; /* name of the local socket */
    char name[160];  /* of the job: the token is made from it */
} cst_job;

/* ARGUMENT: a variable is missing or means nothing; the text names it and says what to set. */
coset_status cst_job_from_env(cst_job *job, coset_error *why);

/* ARGUMENT if one of our own variables that job_from_env may read is set and means nothing, whether or not this process
 * meets the others by the environment. Variables of launchers are not looked at. */
coset_status cst_job_check_env(coset_error *why);

/* The first host of a Slurm node list: "a[03-10,12],b" -> "a03". Returns 0, or -1. */
int cst_slurm_first_host(const char *list, char host[CST_HOST_TEXT]);
#endif
