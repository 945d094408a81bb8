/* SPDX-License-Identifier: Apache-2.0 */
/* From a caller's options and the environment to the settings of a communicator. */
#ifndef CST_API_SETTINGS_H
#define CST_API_SETTINGS_H
#include "comm/comm.h"

/* Explicit options win over the environment, the environment over defaults. ARGUMENT names the option or variable. */
coset_status cst_settings_from(const coset_comm_options *options, cst_settings *settings, coset_error *why);
#endif
