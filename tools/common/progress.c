/* SPDX-License-Identifier: Apache-2.0 */
#include "common/progress.h"

#include "common/stats.h"

#include <stdio.h>
#include <unistd.h>

enum { BAR_CELLS = 30 };
static const double redraw_s = 0.1;

tool_progress tool_progress_start(const char *label)
{
    return (tool_progress){.label = label, .shown = isatty(STDERR_FILENO), .started = tool_now()};
}

void tool_progress_update(tool_progress *bar, double done, double total, const char *note)
{
    double now = tool_now();
    if (!bar->shown || (now - bar->drawn < redraw_s && done < total))
        return;
    bar->drawn = now;
    double part = total > 0 ? done / total : 1;
    char cells[BAR_CELLS + 1];
    for (int i = 0; i < BAR_CELLS; i++)
        cells[i] = i < part * BAR_CELLS ? '#' : '.';
    cells[BAR_CELLS] = 0;
    double left = part > 0 ? (now - bar->started) * (1 - part) / part : 0;
    fprintf(stderr, "\r\033[K%s [%s] %3.0f%% %4.0fs left %s", bar->label, cells, 100 * part, left, note ? note : "");
    fflush(stderr);
}

void tool_progress_clear(tool_progress *bar)
{
    if (bar->shown)
        fprintf(stderr, "\r\033[K");
    bar->drawn = 0;
}

void tool_progress_end(tool_progress *bar)
{
    tool_progress_clear(bar);
    bar->shown = false;
}
