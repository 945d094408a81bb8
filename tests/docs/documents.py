#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents keep their word: links lead somewhere, C blocks compile as pasted, Python blocks parse, and every `coset`
command line names a command and options that there are.

    documents.py CC COSET [MPICC]        CC, MPICC: compilers; COSET: the command
"""
import ast
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def documents():
    tops = [ROOT / top for top in ("bench", "docs", "examples", "python", "src", "tests", "tools")]
    paths = [p for top in tops for p in top.rglob("*.md") if "build" not in p.parts]
    return sorted(ROOT.glob("*.md")) + sorted(paths)


def anchor(heading):
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"`", "", heading).lower()).strip().replace(" ", "-")


def wrong_links(path, text):
    for link in LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, part = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"link {link}: there is no such file"
        elif part and part not in map(anchor, HEADING.findall(target.read_text(encoding="utf-8"))):
            yield f"link {link}: there is no such heading"


def wrong_c(code, compiler, mpicc):
    if "coset_mpi.h" in code:
        compiler = mpicc
    if not compiler:
        return None
    done = subprocess.run([compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}",
                           "-x", "c", "-"], input=code, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else None


def wrong_python(code):
    try:
        ast.parse(code)
    except SyntaxError as error:
        return str(error)
    return None


def wrong_blocks(text, compiler, mpicc):
    for language, code in BLOCK.findall(text):
        found = wrong_c(code, compiler, mpicc) if language == "c" else wrong_python(code) if language == "python" else None
        if found:
            yield f"{language} block '{code[:60]!r}...': {found}"


def command_lines(text):
    """What stands after `coset ` in code: in backticks, in fenced blocks, in indented lines."""
    fenced = [line for language, code in BLOCK.findall(text) if language in ("", "sh") for line in code.splitlines()]
    plain = BLOCK.sub("", text)
    indented = [line for line in plain.splitlines() if line.startswith("    ")]
    quoted = re.findall(r"`((?:[A-Z_]+=\S+ )*coset [^`\n]+)`", plain)  # not messages that have the word inside
    for line in fenced + indented + quoted:
        for match in re.finditer(r"(?<![\w/.-])coset ([a-z][^#|&;)\"]*)", line):
            yield match.group(1).split()


@functools.lru_cache(None)
def help_of(coset, *words):
    done = subprocess.run([coset, *words, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def wrong_commands(text, coset):
    for words in command_lines(text):
        command = words[:2] if words[0] == "bench" else words[:1]
        # "coset learn 17", or prose such as `coset bench` and `coset bench NAME`
        if len(command) == 2 and not re.fullmatch("[a-z]+", command[1]):
            command = command[:1]
        told = help_of(coset, *command)
        if told is None:
            yield f"coset {' '.join(words)}: no such command"
            continue
        for word in words[len(command):]:
            if word == "--":
                break
            option = re.match(r"-{1,2}[a-z][\w-]*", word)
            if option and not re.search(rf"(?<![\w-]){re.escape(option.group())}(?![\w-])", told):
                yield f"coset {' '.join(words)}: {' '.join(command)} has no {option.group()}"


def main():
    compiler, coset, mpicc = (sys.argv[1:] + [None])[:3]
    wrong = 0
    for path in documents():
        text = path.read_text(encoding="utf-8")
        for line in [*wrong_links(path, text), *wrong_blocks(text, compiler, mpicc), *wrong_commands(text, coset)]:
            print(f"{path.relative_to(ROOT)}: {line}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
