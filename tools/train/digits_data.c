/* SPDX-License-Identifier: Apache-2.0 */
/* examples/data/digits.csv as it is, zero-terminated, as a symbol of the program. */
#include "train/digits.h"

__asm__(".section .rodata\n"
        ".balign 16\n"
        ".globl tool_digits_csv\n"
        "tool_digits_csv:\n"
        ".incbin \"" DIGITS_FILE "\"\n"
        ".byte 0\n"
        ".previous\n");
