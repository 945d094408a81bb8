/* SPDX-License-Identifier: Apache-2.0 */
/* Pages one at a time on a terminal. */
#ifndef COSET_LEARN_VIEWER_H
#define COSET_LEARN_VIEWER_H
#include "learn/text.h"

/* True where pages can be turned: both ends are a terminal that understands more than lines. */
bool learn_is_terminal(void);
/* The style for standard output: the terminal's width and colours (unless NO_COLOR is set), else plain. */
learn_style learn_output_style(void);
/* Shows the pages; Enter goes on, b back, q stops. Returns false if the reader stopped before the last page. */
bool learn_show(const learn_pages *pages, learn_style style);
#endif
