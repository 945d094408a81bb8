# SPDX-License-Identifier: Apache-2.0
"""Turns public headers into declarations that cffi reads: declarations.py OUTPUT HEADER...

Comments go, directives go; `#ifdef __cplusplus` blocks go with their contents; integer constants stay, since cffi
understands `#define NAME 1`. Nothing else of the preprocessor is used in the public headers, and anything else is an
error here, so that a header cannot change its meaning on the way.
"""
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
INTEGER = re.compile(r"#\s*define\s+\w+\s+\d+\s*$")
SKIPPED = re.compile(r"#\s*(include|pragma|ifndef\s+COSET\w*_H\b|define\b|endif)")


def convert(text: str) -> str:
    """The declarations of one header."""
    kept = []
    in_cplusplus = False
    continued = False
    for line in COMMENT.sub("", text).split("\n"):
        line = line.rstrip()
        if continued or in_cplusplus:
            in_cplusplus = in_cplusplus and not line.startswith("#endif")
            continued = line.endswith("\\")
        elif line.startswith("#"):
            continued = line.endswith("\\")
            if re.match(r"#\s*ifdef\s+__cplusplus", line):
                in_cplusplus = True
            elif INTEGER.match(line):
                kept.append(line)
            elif not SKIPPED.match(line):
                raise SystemExit(f"declarations.py: a directive that it does not know: {line}")
        elif line:
            kept.append(line)
    return "\n".join(kept) + "\n"


def main(output: str, *headers: str) -> None:
    parts = []
    for header in headers:
        with open(header, encoding="utf-8") as file:
            parts.append(convert(file.read()))
    with open(output, "w", encoding="utf-8") as file:
        file.write("".join(parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
