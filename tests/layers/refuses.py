#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layer checker must refuse what it promises to refuse: small trees with one wrong arrow each."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import include_check  # noqa: E402

# (files, expected words of the only error; None: no error)
CASES = [
    ({"src/kernels/a.c": '#include "base/b.h"\n', "src/base/b.h": ""}, None),
    ({"src/base/a.c": '#include "comm/b.h"\n', "src/comm/b.h": ""}, "base must not include comm/b.h"),
    ({"src/base/a.c": "#include <comm/b.h>\n", "src/comm/b.h": ""}, "base must not include comm/b.h"),
    ({"src/base/a.c": '#include "../comm/b.h"\n', "src/comm/b.h": ""}, "base must not include ../comm/b.h"),
    ({"src/base/a.c": '#  include   "comm/not_there.h"\n'}, "base must not include comm/not_there.h"),
    ({"src/kernels/reduce/a.c": '#include "comm/b.h"\n', "src/comm/b.h": ""}, "kernels must not include comm/b.h"),
    ({"src/codec/a.c": "#include <coset_transport.h>\n"}, "codec never sees a transport"),
    ({"src/codec/a.c": "#include <coset.h>\n#include <stdio.h>\n"}, None),
    ({"src/coll/patterns/a.c": '#include "coll/b.h"\n', "src/coll/b.h": ""}, "coll/patterns must not include coll/b.h"),
    ({"src/coll/patterns/a.c": '#include "coll/patterns/b.h"\n', "src/coll/patterns/b.h": ""}, None),
    ({"src/coll/a.c": '#include "coll/patterns/b.h"\n', "src/coll/patterns/b.h": ""}, None),
    ({"src/strange/a.c": ""}, "has no row"),
    ({"tools/run/a.c": '#include "net/b.h"\n', "src/net/b.h": ""}, "tools must not include net/b.h"),
    ({"tools/run/a.c": '#include "common/b.h"\n', "tools/common/b.h": ""}, None),
    ({"tools/learn/a.c": '#include "coll/b.h"\n', "src/coll/b.h": ""}, None),
    ({"tools/learning/a.c": '#include "coll/b.h"\n', "src/coll/b.h": ""}, "tools must not include coll/b.h"),
    ({"examples/a.c": '#include "api/b.h"\n', "src/api/b.h": ""}, "examples must not include api/b.h"),
]


def errors_of(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if path.parts[len(root.parts)] == "src":
                (root / "src" / path.parts[len(root.parts) + 1] / "README.md").write_text("")
        (root / "src").mkdir(exist_ok=True)
        return include_check.check_tree(root)[0]


def main():
    failed = 0
    for files, expected in CASES:
        errors = errors_of(files)
        good = not errors if expected is None else len(errors) == 1 and expected in errors[0]
        if not good:
            failed += 1
            print(f"{files}: expected {expected!r}, got {errors}")
    print(f"{len(CASES)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
