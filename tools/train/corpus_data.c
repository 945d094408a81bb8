/* SPDX-License-Identifier: Apache-2.0 */
/* examples/data/kjv.txt as it is, zero-terminated, as a symbol of the program. */
#include "train/corpus.h"

__asm__(".section .rodata\n"
        ".balign 16\n"
        ".globl tool_corpus_text\n"
        "tool_corpus_text:\n"
        ".incbin \"" CORPUS_FILE "\"\n"
        ".byte 0\n"
        ".previous\n");
