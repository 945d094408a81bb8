#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's program is examples/mean.c, which is built; its two commands stand at the top."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = (ROOT / "examples/mean.c").read_text(encoding="utf-8").split("\n", 2)[2]
    block = re.search(r"```c\n(.*?)```", readme, re.DOTALL)
    wrong = []
    if not block or block.group(1) != program:
        wrong.append("README.md: the C program differs from examples/mean.c (without its first two lines)")
    top = readme[:400]
    if "./dev demo" not in top or "./dev test" not in top:
        wrong.append("README.md: ./dev demo and ./dev test must stand at the top")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
