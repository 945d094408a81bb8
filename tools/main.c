/* SPDX-License-Identifier: Apache-2.0 */
/* `coset`: finds the command that the words name, and runs it. */
#include "command.h"
#include "common/launch.h"
#include "common/supervise.h"

#include <coset.h>
#include <stdio.h>
#include <string.h>

static void print_help(FILE *out, const char *name, const tool_command *table)
{
    fprintf(out, "Usage: %s COMMAND [OPTION...]\n\nCommands:\n", name);
    for (const tool_command *c = table; c->name; c++)
        fprintf(out, "  %-12s %s\n", c->name, c->summary);
    fprintf(out, "\n`%s COMMAND --help` tells more.\n", name);
}

static const tool_command *find(const tool_command *table, const char *name)
{
    for (const tool_command *c = table; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

static void tell(void *ctx, coset_status status, const char *line)
{
    if (status || tool_launched_rank() <= 0) /* all ranks have the same unknown names: one tells */
        fprintf(stderr, "%s: %s\n", (const char *)ctx, line);
}

/* Also variables that this command would not read: what means nothing here is a mistake in the next one. */
static int run(const tool_command *c, int argc, char **argv)
{
    return coset_check_environment(tell, argv[0]) ? TOOL_USAGE : c->run(argc, argv);
}

/* argv[0] names this level ("coset", then "coset bench"). */
static int dispatch(const tool_command *table, int argc, char **argv)
{
    const char *name = argv[0];
    if (argc < 2) {
        fprintf(stderr, "%s: a command is missing; see `%s --help`\n", name, name);
        return TOOL_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(stdout, name, table);
        return TOOL_OK;
    }
    const tool_command *c = find(table, argv[1]);
    if (!c) {
        fprintf(stderr, "%s: no command '%s'; see `%s --help`\n", name, argv[1], name);
        return TOOL_USAGE;
    }
    char full[128];
    snprintf(full, sizeof full, "%s %s", name, c->name);
    argv[1] = full;
    return c->below ? dispatch(c->below, argc - 1, argv + 1) : run(c, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    static char name[] = "coset";
    if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
        printf("coset %s (wire version %d)\n", coset_version(), COSET_WIRE_VERSION);
        return TOOL_OK;
    }
    if (argc < 1)
        return TOOL_USAGE;
    argv[0] = name;
    return tool_printed(dispatch(tool_commands, argc, argv));
}
