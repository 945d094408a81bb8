/* SPDX-License-Identifier: Apache-2.0 */
#include "train/plot.h"

#include "common/program.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool plot_possible(void)
{
    char path[4096];
    return tool_find_program("gnuplot", path, sizeof path);
}

/* A point is the mean of so many steps that a curve has at most this many points. */
enum { MOST_POINTS = 400 };

/* The named data of gnuplot that hold curve `i` over steps or over bytes. */
static void write_name(FILE *out, size_t i, int over_bytes)
{
    fprintf(out, "$%s%zu", over_bytes ? "bytes" : "steps", i);
}

static void write_data(FILE *out, const plot_curve *c, size_t i, int over_bytes)
{
    size_t width = (c->steps + MOST_POINTS - 1) / MOST_POINTS;
    double sent = 0;
    write_name(out, i, over_bytes);
    fprintf(out, " << end\n");
    for (size_t at = 0; at + width <= c->steps && width; at += width) {
        double loss = 0;
        for (size_t s = at; s < at + width; s++) {
            loss += c->loss[s] / (double)width;
            sent += c->sent[s];
        }
        fprintf(out, "%.9g %.9g\n", over_bytes ? sent / 1e6 : (double)(at + width), loss);
    }
    fprintf(out, "end\n");
}

static void write_panel(FILE *out, const plot_curve *curves, size_t count, int over_bytes)
{
    fprintf(out, "set xlabel '%s'\n%s\nplot ", over_bytes ? "megabytes sent by a rank" : "step",
            over_bytes ? "set logscale x" : "unset logscale x");
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", out);
        write_name(out, i, over_bytes);
        fprintf(out, " with lines linewidth 2 title '%s'", curves[i].label);
    }
    fprintf(out, "\n");
}

/* gnuplot notices no full disk: whether the end of the picture has come into the file. */
static bool complete(const char *path)
{
    enum { TAIL = 64 };
    char end[TAIL + 1] = "";
    struct stat s;
    if (stat(path, &s))
        return false;
    if (!S_ISREG(s.st_mode))
        return true; /* what has gone through a pipe cannot be looked at */
    FILE *in = fopen(path, "re");
    if (!in)
        return false;
    fseeko(in, s.st_size < TAIL ? 0 : s.st_size - TAIL, SEEK_SET);
    end[fread(end, 1, TAIL, in)] = 0;
    fclose(in);
    return strstr(end, "</svg>");
}

static bool anything_sent(const plot_curve *curves, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t s = 0; s < curves[i].steps; s++)
            if (curves[i].sent[s] > 0)
                return true;
    return false;
}

int plot_write(const char *command, const char *path, const plot_curve *curves, size_t count)
{
    signal(SIGPIPE, SIG_IGN); /* a gnuplot that gives up is an exit status, not our end */
    FILE *out = popen("gnuplot", "w");
    bool over_bytes = anything_sent(curves, count); /* a single rank sends nothing: no such panel */
    if (out) {
        /* Before the panels: within a multiplot gnuplot 6 takes no data from its input. */
        for (size_t i = 0; i < count; i++) {
            write_data(out, &curves[i], i, 0);
            write_data(out, &curves[i], i, 1);
        }
        fprintf(out,
                "set terminal svg size 800,900 background '#ffffff'\nset output '%s'\nset multiplot layout %d,1\n"
                "set grid\nset ylabel 'training loss'\n",
                path, over_bytes ? 2 : 1);
        write_panel(out, curves, count, 0);
        if (over_bytes)
            write_panel(out, curves, count, 1);
        fprintf(out, "unset multiplot\n");
    }
    if (out && pclose(out) == 0 && complete(path))
        return 0;
    fprintf(stderr, "%s: gnuplot could not write %s\n", command, path);
    return -1;
}
