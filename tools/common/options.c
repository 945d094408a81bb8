/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include "command.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Options without a letter get keys beyond every character. */
enum { KEY_HELP = 256, KEY_BASE = 257, MAX_OPTIONS = 64 };

typedef struct {
    char *name;
    const tool_option *options;
    bool positional_allowed;
    int first_positional;
} parse_state;

void tool_bad_input(const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(TOOL_USAGE);
}

int tool_parse_size(const char *text, size_t *value)
{
    if (*text < '0' || *text > '9')
        return -1;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    const char *units = "KMG", *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (errno || (*end && (!unit || end[1])) || v > SIZE_MAX >> shift)
        return -1;
    *value = (size_t)v << shift;
    return 0;
}

static void set_int(const parse_state *s, const tool_option *o, const char *text)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end || errno || v < o->low || v > o->high)
        tool_bad_input(s->name, "--%s=%s: expected a whole number from %.0f to %.0f", o->name, text, o->low, o->high);
    *(int *)o->value = (int)v;
}

static void set_real(const parse_state *s, const tool_option *o, const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= o->low && v <= o->high))
        tool_bad_input(s->name, "--%s=%s: expected a number from %g to %g", o->name, text, o->low, o->high);
    *(double *)o->value = v;
}

/* Looked at before the work, since it would be lost if the name was wrong. */
static void set_output(const parse_state *s, const tool_option *o, const char *text)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", text);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    const char *asked = access(text, F_OK) == 0 ? text : slash ? folder : ".";
    struct stat there;
    if (stat(text, &there) == 0 && S_ISDIR(there.st_mode))
        tool_bad_input(s->name, "--%s=%s: that is a folder, a file is asked for", o->name, text);
    if (!*text || (strcmp(text, "-") && access(asked, W_OK)))
        tool_bad_input(s->name, "--%s=%s: cannot write there: %s", o->name, text,
                       *text ? strerror(errno) : "the name is empty");
    *(const char **)o->value = text;
}

static void set_choice(const parse_state *s, const tool_option *o, const char *text)
{
    char list[512] = "";
    for (const char *const *c = o->choices; *c; c++) {
        if (!strcmp(*c, text)) {
            *(const char **)o->value = *c;
            return;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", c == o->choices ? "" : ", ", *c);
    }
    tool_bad_input(s->name, "--%s=%s: expected one of %s", o->name, text, list);
}

static void set(const parse_state *s, const tool_option *o, const char *text)
{
    switch (o->kind) {
    case TOOL_IS_FLAG: *(bool *)o->value = true; break;
    case TOOL_IS_INT: set_int(s, o, text); break;
    case TOOL_IS_SIZE:
        if (tool_parse_size(text, o->value))
            tool_bad_input(s->name, "--%s=%s: expected a size such as 4096, 64K, 25M or 1G", o->name, text);
        break;
    case TOOL_IS_REAL: set_real(s, o, text); break;
    case TOOL_IS_TEXT: *(const char **)o->value = text; break;
    case TOOL_IS_OUTPUT: set_output(s, o, text); break;
    case TOOL_IS_CHOICE: set_choice(s, o, text); break;
    }
}

static error_t on_key(int key, char *text, struct argp_state *state)
{
    parse_state *s = state->input;
    switch (key) {
    case KEY_HELP:
        argp_help(state->root_argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, s->name);
        exit(TOOL_OK);
    case ARGP_KEY_ARG:
        if (!s->positional_allowed)
            tool_bad_input(s->name, "'%s' is not expected here; see `%s --help`", text, s->name);
        s->first_positional = state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_ERROR:
        tool_bad_input(s->name, "'%s' is no option, or misses its value; see `%s --help`", state->argv[state->next - 1],
                       s->name);
    default: break;
    }
    for (int i = 0; s->options[i].name; i++)
        if (key == (s->options[i].letter ? s->options[i].letter : KEY_BASE + i)) {
            set(s, &s->options[i], text);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

int tool_options_parse(int argc, char **argv, const tool_option *options, const char *about, const char *positional)
{
    struct argp_option table[MAX_OPTIONS + 2] = {{"help", KEY_HELP, NULL, 0, "show this", -1}};
    for (int i = 0; options[i].name && i < MAX_OPTIONS; i++) {
        const tool_option *o = &options[i];
        table[i + 1] = (struct argp_option){o->name, o->letter ? o->letter : KEY_BASE + i, o->takes, 0, o->text, 0};
    }
    parse_state s = {argv[0], options, positional != NULL, argc};
    struct argp parser = {table, on_key, positional, about, NULL, NULL, NULL};
    /* argp's own errors take two lines and its help obeys NO_ERRS: on_key does both */
    bool mixed = positional && *positional == '+';
    positional += mixed;
    argp_parse(&parser, argc, argv, (mixed ? 0 : ARGP_IN_ORDER) | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &s);
    return s.first_positional;
}

/* The value as "=VALUE", "" for what has none; false if the option was not given and has no default. */
static bool value_text(const tool_option *o, char *text, size_t size)
{
    text[0] = 0;
    switch (o->kind) {
    case TOOL_IS_FLAG: return *(bool *)o->value;
    case TOOL_IS_INT: snprintf(text, size, "=%d", *(int *)o->value); return *(int *)o->value >= o->low;
    case TOOL_IS_SIZE: snprintf(text, size, "=%zu", *(size_t *)o->value); return true;
    case TOOL_IS_REAL: snprintf(text, size, "=%.12g", *(double *)o->value); return *(double *)o->value >= o->low;
    case TOOL_IS_OUTPUT: return *(const char **)o->value != NULL;
    case TOOL_IS_TEXT:
    case TOOL_IS_CHOICE: break;
    }
    const char *value = *(const char **)o->value;
    snprintf(text, size, "=%s", value ? value : "");
    return value != NULL;
}

void tool_options_text(const char *command, const tool_option *options, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s\n", command);
    for (const tool_option *o = options; o->name && used < size; o++) {
        char value[200];
        bool given = value_text(o, value, sizeof value);
        used += (size_t)snprintf(text + used, size - used, given ? "--%s%s\n" : "no --%s\n", o->name, value);
    }
}
