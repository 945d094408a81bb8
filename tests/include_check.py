#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the layers: which folder may include which (docs/architecture.md has the same table in words).

An arrow that is not in ALLOWED is an error. To add a folder, give it a row; to add an arrow, argue for it in the
commit that adds it.
"""
import pathlib
import re
import sys

# Folder of src/ -> folders it may include besides itself. Written out, not derived, so that a new arrow shows in review.
ALLOWED = {
    "base": "",
    "cpu": "base",
    "kernels": "cpu base",
    "lattice": "kernels base",
    "codec": "lattice kernels base",
    "net": "base",
    "bootstrap": "net base",
    "transport": "net base",
    "topo": "base",
    "comm": "transport topo kernels base",
    "coll": "comm kernels base",
    "mean": "coll comm codec lattice kernels cpu base",
    "ddp": "mean coll comm kernels cpu base",
    "api": "ddp mean coll comm topo transport bootstrap net codec lattice kernels cpu base",
}
# Parts of src/ with narrower rights than their folder: pure arithmetic that sees integers only.
NARROWER = {"coll/patterns": ""}
BELOW_TRANSPORT = ("base", "cpu", "kernels", "lattice", "codec")
# Outside src/ everything sees include/ only. These look inside; the reason stands beside each.
INSIDE = {
    "tools/bench_kernels": "kernels cpu base",             # times the kernels, which the public API does not show
    "tools/bench_codec": "codec lattice kernels cpu base", # encodes without a communicator
    "tools/learn": "coll base",                            # explains the patterns of coll/patterns step by step
}
FREE = ("tests",)  # tests look everywhere
CHECKED = ("src", "tools", "examples", "bench", "python")

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def row_of(inner):
    """The row that a file of src/ (path relative to src/) belongs to: the narrowest part that holds it."""
    for part in NARROWER:
        if inner.startswith(part + "/"):
            return part
    return inner.split("/")[0]


def rights_of(path):
    """(row, rows it may include) of the file `path`; rows is None for a folder of src/ that has no row."""
    name = path.as_posix()
    if path.parts[0] == "src":
        row = row_of(name[len("src/"):])
        rights = NARROWER.get(row, ALLOWED.get(row))
        return row, None if rights is None else set(rights.split()) | {row}
    for part, rights in INSIDE.items():
        if name.startswith((part + "/", part + ".")):
            return part, set(rights.split())
    return path.parts[0], set()


def reached_row(root, path, name):
    """The row of src/ that `#include "name"` in `path` reaches, or None: a system or public header, a neighbour."""
    beside = (root / path.parent / name).resolve()
    if beside.is_file() and beside.is_relative_to(root / "src"):
        return row_of(beside.relative_to(root / "src").as_posix())
    if beside.is_file() or "/" not in name:
        return None
    return row_of(name) if name.split("/")[0] in ALLOWED else None


def check_file(root, path):
    if path.parts[0] == "src" and len(path.parts) < 3:
        return []
    row, allowed = rights_of(path)
    if allowed is None:
        return [f"{path}: folder src/{row} has no row in the table of layers"]
    errors = []
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        line = text.count("\n", 0, match.start(2)) + 1
        reached = reached_row(root, path, name)
        if reached and reached not in allowed and reached.split("/")[0] not in allowed:
            errors.append(f"{path}:{line}: {row} must not include {name}")
        if name == "coset_transport.h" and row in BELOW_TRANSPORT:
            errors.append(f"{path}:{line}: {row} never sees a transport")
    return errors


def check_tree(root):
    root = root.resolve()
    errors, files = [], 0
    for top in CHECKED:
        for path in sorted((root / top).rglob("*")) if (root / top).is_dir() else []:
            relative = path.relative_to(root)
            if path.suffix not in (".c", ".h", ".inc", ".cc", ".cpp") or relative.as_posix().startswith(FREE):
                continue
            files += 1
            errors += check_file(root, relative)
    for folder in sorted(p.name for p in (root / "src").iterdir() if p.is_dir()):
        if not (root / "src" / folder / "README.md").is_file():
            errors.append(f"src/{folder}: no README.md (purpose, concepts, files, rules)")
    return errors, files


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    errors, files = check_tree(root)
    for error in errors:
        print(error)
    print(f"{files} files, {len(errors)} wrong includes" if errors else f"{files} files keep the layers")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
