/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a command as one table: each row names an option, says what it takes and where the value goes.
 * Built on argp, so --help comes by itself. Bad input prints one line and exits with status 2.
 *
 *     struct { int ranks; size_t min; const char *algo; bool in_place; } o = {.ranks = 2, .min = 4, .algo = "auto"};
 *     const tool_option options[] = {
 *         TOOL_INT("ranks", 'n', "N", "ranks to start (default 2)", &o.ranks, 1, 1024),
 *         TOOL_SIZE("min", 'b', "SIZE", "smallest size (default 4)", &o.min),
 *         TOOL_TEXT("algo", 0, "NAME", "algorithm (default auto)", &o.algo),
 *         TOOL_FLAG("in-place", 0, "reduce in place", &o.in_place),
 *         TOOL_END,
 *     };
 *     int first = tool_options_parse(argc, argv, options, "Measures ...", NULL);
 */
#ifndef COSET_TOOLS_OPTIONS_H
#define COSET_TOOLS_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;  /* long name without dashes; NULL ends the table */
    int letter;        /* short name, 0 for none */
    const char *takes; /* what the value is called in --help; NULL for a flag */
    const char *text;  /* one line for --help, with the default */
    enum { TOOL_IS_FLAG, TOOL_IS_INT, TOOL_IS_SIZE, TOOL_IS_REAL, TOOL_IS_TEXT, TOOL_IS_OUTPUT, TOOL_IS_CHOICE } kind;
    void *value;
    double low, high; /* inclusive range of numbers */
    const char *const *choices;
} tool_option;

/* clang-format off */
/* Rows of the table: `value` points to a bool (set to true), an int, a size_t (K, M, G are powers of 1024), a double, a
 * string (points into argv), the name of a file that can be written ("-": standard output), or one of the strings of
 * `choices` (an array that ends with NULL). */
#define TOOL_FLAG(name, letter, text, value) {name, letter, NULL, text, TOOL_IS_FLAG, value, 0, 0, NULL}
#define TOOL_INT(name, letter, takes, text, value, low, high) {name, letter, takes, text, TOOL_IS_INT, value, low, high, NULL}
#define TOOL_SIZE(name, letter, takes, text, value) {name, letter, takes, text, TOOL_IS_SIZE, value, 0, 0, NULL}
#define TOOL_REAL(name, letter, takes, text, value, low, high) {name, letter, takes, text, TOOL_IS_REAL, value, low, high, NULL}
#define TOOL_TEXT(name, letter, takes, text, value) {name, letter, takes, text, TOOL_IS_TEXT, value, 0, 0, NULL}
#define TOOL_OUTPUT(name, letter, takes, text, value) {name, letter, takes, text, TOOL_IS_OUTPUT, value, 0, 0, NULL}
#define TOOL_CHOICE(name, letter, takes, text, value, choices) {name, letter, takes, text, TOOL_IS_CHOICE, value, 0, 0, choices}
#define TOOL_END {NULL, 0, NULL, NULL, TOOL_IS_FLAG, NULL, 0, 0, NULL}
/* clang-format on */

/*
 * Fills the values. argv[0] is the command's full name; `about` is its --help text; `positional` names what may stand
 * after the options ("FILE..."), NULL if nothing may. Returns the index of the first positional argument (argc if none);
 * options stop at the first positional argument or at "--"; only where `positional` begins with a + ("+FILE...") may they
 * follow it. Exits with 2 on bad input, with 0 after --help.
 */
int tool_options_parse(int argc, char **argv, const tool_option *options, const char *about, const char *positional);

/* What was asked for, for comparing ranks: `command`, then a line an option, "--steps=3" or "no --steps"; of outputs only
 * whether they were given. What does not fit is left out. */
void tool_options_text(const char *command, const tool_option *options, char *text, size_t size);

/* Prints "NAME: message" as one line on standard error and exits with status 2. */
void tool_bad_input(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* "4096", "64K", "25M", "1G". Returns 0, or -1 if the text is no such size. */
int tool_parse_size(const char *text, size_t *value);
#endif
