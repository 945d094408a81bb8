/* SPDX-License-Identifier: Apache-2.0 */
/* The log sink. Silent unless COSET_DEBUG=warn|info|trace; lines go to standard error or COSET_DEBUG_FILE (%h host,
 * %p process id). Any thread. */
#ifndef CST_BASE_LOG_H
#define CST_BASE_LOG_H
typedef enum { CST_LOG_NONE = 0, CST_LOG_WARN, CST_LOG_INFO, CST_LOG_TRACE } cst_log_level;
/* One line; nothing is made of it if COSET_DEBUG does not ask for its level. */
void cst_log(cst_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
