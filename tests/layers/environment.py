#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of environment variables (src/base/env.c), docs/environment.md and the code name the same ones."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = re.compile(r'"(COSET_[A-Z_]+)"')


def used_names():
    names = set()
    for top in ("src", "tools"):
        for path in (ROOT / top).rglob("*.[ch]"):
            if path != ROOT / "src/base/env.c":
                names |= set(NAME.findall(path.read_text(encoding="utf-8")))
    return names


def main():
    known = set(NAME.findall((ROOT / "src/base/env.c").read_text(encoding="utf-8")))
    documented = set(re.findall(r"`(COSET_[A-Z_]+)`", (ROOT / "docs/environment.md").read_text(encoding="utf-8")))
    used = used_names()
    # status codes and constants are not variables: only names that somebody calls known or documented count
    wrong = [f"{n}: in env.c, not in docs/environment.md" for n in sorted(known - documented)]
    wrong += [f"{n}: in env.c, read nowhere" for n in sorted(known - used)]
    wrong += [f"{n}: documented, not in env.c" for n in sorted(documented - known) if not n.startswith("COSET_ERR_")
              and n != "COSET_"]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
