/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book and the questions as one page that needs no network: DIR/index.html.
 *
 * The lessons are laid out here, from the same blocks as on a terminal; what moves (ring, timeline, plane, questions)
 * is drawn by page/page.js from the JSON that html_data.c embeds. Without scripts the page shows the still drawings.
 */
#ifndef COSET_LEARN_HTML_H
#define COSET_LEARN_HTML_H
#include "learn/lessons.h"

#include <cjson/cJSON.h>

/* Makes the folder if needed and replaces the file as a whole. Returns 0, or -1 after one line on standard error. */
int learn_html_write(const char *folder, const learn_book *b, const learn_choice *choice);
/* The page, to `out`. */
void learn_html_print(FILE *out, const learn_book *b, const learn_choice *choice);
/* What page.js works on: every ring of 2..8 ranks, the timelines, the plane with decodings to check against, and
 * all versions of all questions. */
cJSON *learn_html_data(const learn_choice *choice);

/* page/page.css and page/page.js, made into C by the build. */
extern const char learn_page_css[], learn_page_js[];
#endif
