/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/viewer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Lines longer than this are hard to read; 78 is what a pipe gets. */
enum { NARROWEST = 40, WIDEST = 90, PIPE = 78 };

bool learn_is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
}

learn_style learn_output_style(void)
{
    struct winsize size;
    const char *plain = getenv("NO_COLOR"), *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO))
        return (learn_style){PIPE, false};
    int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0 ? PIPE : size.ws_col - 1;
    width = width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
    return (learn_style){width, !(plain && *plain) && term && strcmp(term, "dumb")};
}

bool learn_show(const learn_pages *pages, learn_style style)
{
    char *line = NULL;
    size_t room = 0, at = 0;
    bool stopped = false;
    while (at < pages->count && !stopped) {
        fputs("\033[H\033[2J", stdout);
        fputs(pages->page[at], stdout);
        learn_look_on(stdout, style, LEARN_DIM);
        printf("\nEnter: %s   b: back   q: stop ", at + 1 < pages->count ? "next" : "end");
        learn_look_on(stdout, style, LEARN_PLAIN);
        fflush(stdout);
        if (getline(&line, &room, stdin) < 0) {
            putchar('\n');
            stopped = true;
        } else if ((line[0] | 32) == 'q') {
            stopped = true;
        } else if ((line[0] | 32) == 'b') {
            at -= at > 0;
        } else {
            at++;
        }
    }
    free(line);
    return !stopped;
}
