/* SPDX-License-Identifier: Apache-2.0 */
/* From a caller's options and the environment to the settings of a communicator. */
#ifndef CST_API_SETTINGS_H
#define CST_API_SETTINGS_H
#include "comm/comm.h"

/* ARGUMENT, naming the variable, if one that settings come from is set and means nothing. */
coset_status cst_settings_check_env(coset_error *why);
/* Explicit options win over the environment, the environment over defaults. ARGUMENT names the option or variable,
 * also a variable that an option makes meaningless to read. */
coset_status cst_settings_from(const coset_comm_options *options, cst_settings *settings, coset_error *why);
#endif
