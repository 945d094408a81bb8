/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of the `coset` tool. Each is a function in a file or folder of its own; tools/commands.c has the table.
 *
 * run(argc, argv): argv[0] is the command's full name as the user types it ("coset bench allreduce"), the rest are its
 * own arguments. Returns the process's exit status: 0 success, 1 the work failed, 2 bad input (after one line on
 * standard error that says what is wrong and what to do). Every command answers --help.
 */
#ifndef COSET_TOOLS_COMMAND_H
#define COSET_TOOLS_COMMAND_H

typedef struct tool_command {
    const char *name;
    const char *summary; /* one line for --help */
    int (*run)(int argc, char **argv);
    const struct tool_command *below; /* second level (`coset bench NAME`), ends with a NULL name; run is NULL then */
} tool_command;

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* The first level; ends with a NULL name. */
extern const tool_command tool_commands[];

int tool_bench_allreduce(int argc, char **argv);
int tool_bench_codec(int argc, char **argv);
int tool_bench_ddp(int argc, char **argv);
int tool_bench_kernels(int argc, char **argv);
int tool_info(int argc, char **argv);
int tool_learn(int argc, char **argv);
int tool_mean(int argc, char **argv);
int tool_run(int argc, char **argv);
int tool_train(int argc, char **argv);

#endif
