/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of reducer.c, by topic in files of their own. Each runs its groups of ranks; 0: all is well. */
#ifndef CST_TESTS_DDP_CASES_H
#define CST_TESTS_DDP_CASES_H
int run_values(const char *transport);
int run_bits(const char *transport);
int run_link(const char *transport);
int run_hosts(const char *transport);
int run_unused(const char *transport);
int run_misuse(const char *transport);
int run_disagree(const char *transport);
int run_clip(const char *transport);
int run_uneven(const char *transport);
int run_state(const char *transport);
int run_late(const char *transport);
int run_fork(const char *transport);
int run_death(const char *transport);
int run_abort(const char *transport);
#endif
