#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`coset mean` and `coset bench codec` as a user types them: files that are right, files that lie, options that make no sense.
Bad input is one line and status 2, a failure one line and status 1; nothing hangs, and no output is left behind."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

COSET = sys.argv[1]
failures = []


def run(*arguments):
    return subprocess.run([COSET, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


def expect(good, what, result):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}\n  status {result.returncode}\n  out: {result.stdout[:600]}\n  err: {result.stderr[:600]}")


def refused(what, *arguments):
    result = run(*arguments)
    expect(result.returncode == 2 and result.stderr.count("\n") == 1 and not result.stdout, what, result)


def npy(values, descr="<f4", shape=None):
    shape = f"({len(values)},)" if shape is None else shape
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    code = {"<f4": "f", "<f8": "d", "<f2": "e"}.get(descr, "f")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Files:
    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def __call__(self, content, suffix=".npy"):
        self.count += 1
        path = os.path.join(self.folder, f"{self.count}{suffix}")
        with open(path, "wb") as f:
            f.write(content)
        return path


def vectors(ranks, n, mean, spread, seed=1):
    draw = random.Random(seed)
    common = [draw.gauss(0, mean) for _ in range(n)]
    return [[c + draw.gauss(0, spread) for c in common] for _ in range(ranks)]


def good_files(new):
    for descr, suffix in (("<f4", ".npy"), ("<f8", ".npy"), ("<f2", ".npy")):
        x = vectors(3, 5000, 3, 1)
        out = os.path.join(new.folder, "out" + suffix)
        result = run("mean", *[new(npy(v, descr)) for v in x], "-o", out, "--json", "-", "--steps", 3)
        expect(result.returncode == 0, f"mean of {descr}", result)
        figures = json.loads(result.stdout)
        # 15,000 errors: a standard deviation of 1.2 % of the excess
        expect(0.03 < figures["excess_over_sampling"] < 0.055 and figures["identical_on_all_ranks"] is True,
               f"excess of {descr}", result)
        expect(os.path.getsize(out) == 128 + 5000 * (8 if descr == "<f8" else 4), f"output of {descr}", result)
        os.remove(out)
    layers = {"a": {"dtype": "F32", "shape": [10, 100], "data_offsets": [0, 4000]},
              "b": {"dtype": "F32", "shape": [7], "data_offsets": [4000, 4028]}}
    files = [new(safetensors(layers, struct.pack("<1007f", *v)), ".safetensors") for v in vectors(4, 1007, 1, 0.1)]
    result = run("mean", *files)
    expect(result.returncode == 0 and "all ranks the same    yes" in result.stdout, "mean of safetensors", result)


def odd_numbers(new):
    """Denormals, the largest floats, equal files, one file, one element, none."""
    huge = 3.4e38
    cases = {"large": [[huge] * 999, [-huge] * 999],
             "denormal": [[1e-45, 2e-45] * 600, [3e-45, 0] * 600], "equal": [[1.5] * 3000] * 3,
             "zero": [[0.0] * 3000] * 3, "one element": [[1.0], [2.0]], "one file": [[1.0, 2.0]], "none": [[], []]}
    for what, x in cases.items():
        for codec in ("lattice", "eden", "none"):
            out = os.path.join(new.folder, "odd.npy")
            result = run("mean", *[new(npy(v)) for v in x], "--codec", codec, "-o", out, "--json", "-")
            good = result.returncode == 0 and json.loads(result.stdout)["identical_on_all_ranks"] is True
            # A baseline may refuse what it cannot code, in one line; the lattice takes all.
            good |= codec == "eden" and result.returncode == 1 and result.stderr.count("\n") == 1 and not os.path.exists(out)
            expect(good, f"{what} by {codec}", result)
            if os.path.exists(out):
                os.remove(out)


def not_finite(new):
    """The first file with NaN or infinity is named, and the first such coordinate."""
    nan, inf = float("nan"), float("inf")
    out = os.path.join(new.folder, "never.npy")
    good = new(npy([1.0] * 6))
    layers = {"b": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]},
              "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}
    cases = [([good, new(npy([1, 2, 3, nan, 5, inf]))], 1, "coordinate 3 (from 0) is NaN"),
             ([new(npy([inf, nan, 3, 4, 5, 6])), new(npy([nan] * 6)), good], 0, "coordinate 0 (from 0) is infinity"),
             ([good, good, new(npy([1, 2, 3, 4, 5, -inf], "<f8"))], 2, "coordinate 5 (from 0) is -infinity"),
             ([new(npy([1, 2, 3, 4, nan, 6], "<f2")), good], 0, "coordinate 4 (from 0) is NaN"),
             ([new(safetensors(layers, struct.pack("<6f", 1, 2, 3, 4, 5, nan)), ".safetensors")], 0,
              'coordinate 1 of tensor "b" (from 0) is NaN')]
    for files, which, what in cases:
        for codec in ("lattice", "eden", "none"):
            result = run("mean", *files, "--codec", codec, "-o", out)
            expect(result.returncode == 2 and result.stderr.count("\n") == 1 and not result.stdout and
                   f"{files[which]}: {what}" in result.stderr and not os.path.exists(out), f"{what} by {codec}", result)


def files_that_lie(new):
    good = new(npy([1.0, 2.0, 3.0]))
    whole = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    lies = {
        "empty": new(b""), "no magic": new(b"not numpy at all"), "short": new(npy([1.0, 2.0, 3.0])[:-1]),
        "long": new(npy([1.0, 2.0, 3.0]) + b"\0"), "two arrays": new(2 * npy([1.0, 2.0, 3.0])),
        "shape overflows": new(npy([1.0], shape="(4294967296, 4294967296, 4)")),
        "negative": new(npy([1.0], shape="(-1,)")), "strings": new(npy([1.0], descr="|S4")), "integers": new(npy([1.0], "<i4")),
        "big-endian": new(npy([1.0], ">f4")), "other length": new(npy([1.0, 2.0])), "a folder": new.folder,
        "is not there": os.path.join(new.folder, "nothing.npy"), "no suffix": new(b"\x00" * 64, ""),
        "header past the end": new(struct.pack("<Q", 1 << 40), ".safetensors"),
        "header of all bits": new(b"\xff" * 8, ".safetensors"), "no JSON": new(safetensors(b"{"), ".safetensors"),
        "a list": new(safetensors(b"[1]"), ".safetensors"), "deep": new(safetensors(b"[" * 100000), ".safetensors"),
        "offsets outside": new(safetensors({"a": whole | {"data_offsets": [0, 1 << 50]}}), ".safetensors"),
        "offsets backwards": new(safetensors({"a": whole | {"data_offsets": [8, 0]}}, bytes(8)), ".safetensors"),
        "shape of floats": new(safetensors({"a": whole | {"shape": [1.5]}}, bytes(8)), ".safetensors"),
        "twice the same bytes": new(safetensors({"a": whole, "b": whole}, bytes(8)), ".safetensors"),
        "a hole": new(safetensors({"a": whole, "b": whole | {"data_offsets": [12, 20]}}, bytes(20)), ".safetensors"),
        "an overlap and a hole": new(safetensors({"a": whole, "b": whole | {"data_offsets": [4, 12]}}, bytes(16)), ".safetensors"),
        "a beginning of nobody": new(safetensors({"a": whole | {"data_offsets": [4, 12]}}, bytes(12)), ".safetensors"),
        "an end of nobody": new(safetensors({"a": whole}, bytes(9)), ".safetensors"),
        "integers, safe": new(safetensors({"a": whole | {"dtype": "I32"}}, bytes(8)), ".safetensors"),
    }
    out = os.path.join(new.folder, "never.npy")
    for what, path in lies.items():
        refused(f"a file that is {what}", "mean", good, path, "-o", out)
        refused(f"a first file that is {what}", "mean", path, good, "-o", out)
    # Two orders of the same elements are two vectors.
    rows, columns = (npy([1.0, 2.0, 3.0, 4.0], shape="(2, 2)"), npy([1.0, 2.0, 3.0, 4.0], shape="(2, 2)").replace(b"False,", b"True, "))
    refused("rows and columns", "mean", new(rows), new(columns))
    # The bytes of many tensors in one place would be much more memory than file.
    many = {f"t{i}": {"dtype": "F32", "shape": [250000], "data_offsets": [0, 1000000]} for i in range(5000)}
    refused("5 GB of tensors in a megabyte", "mean", new(safetensors(many, bytes(1000000)), ".safetensors"), good)
    expect(not os.path.exists(out), "no output of what was refused", run("--version"))
    result = run("mean", good, good, "-o", os.path.join(new.folder, "no", "such", "folder.npy"))
    expect(result.returncode == 2 and result.stderr.count("\n") == 1, "output into no folder", result)


def odd_options(new):
    pair = [new(npy(v)) for v in vectors(2, 2000, 1, 1)]
    for arguments in (["--bits", "0"], ["--bits", "33"], ["--bits", "nan"], ["--budget", "0"], ["--budget", "-1"],
                      ["--budget", "inf"], ["--codec", "nothing"], ["--codec", ""], ["--codec", "eden:l2"],
                      ["--protocol", "nothing"], ["--protocol", "tree"], ["--protocol", "star"], ["--steps", "0"],
                      ["--seed", "-1"], ["--protocol", "homomorphic", "--codec", "eden"], ["--y", "-1"], ["--sigma", "x"],
                      ["--bits", "4", "--budget", "0.1"], ["--nothing"]):
        refused(f"mean {arguments}", "mean", *arguments, *pair)
    refused("mean of nothing", "mean")
    for arguments in (["-n", "0"], ["-n", "2000"], ["--dim", "x"], ["--dim", "-4"], ["--mean", "-1"], ["--dist", "cauchy"],
                      ["--codec", "nothing"], ["--steps", "0"], ["--bits", "4", "--budget", "0.1"], ["--dim", "1e30"],
                      ["--codec", "lattice nothing"], ["--dim", "200T"], ["file"]):
        refused(f"bench codec {arguments}", "bench", "codec", *(arguments if "--dim" in arguments else [*arguments, "--dim", 100]))


def bench_codec_measures(_new):
    result = run("bench", "codec", "-n", 3, "--dim", "20K", "--mean", 2, "--steps", 2, "--codec",
                 "lattice lattice:z lattice:e8 lattice:entropy eden none", "--json", "-")
    rows = json.loads(result.stdout) if result.returncode == 0 else []
    expect(len(rows) == 6, "bench codec", result)
    for row in rows:
        lattice = row["codec"].startswith("lattice")
        expect(row["identical_on_all_ranks"] and (not lattice or 0.03 < row["excess_over_sampling"] < 0.055),
               f"bench codec: {row}", result)
    for dim in (0, 1, 5):
        result = run("bench", "codec", "-n", 2, "--dim", dim, "--steps", 2, "--codec", "lattice none eden", "--json", "-")
        expect(result.returncode == 0 and len(json.loads(result.stdout)) == 3, f"bench codec of {dim} coordinates", result)
    result = run("bench", "codec", "-n", 1, "--dim", 100, "--steps", 1, "--codec", "lattice none")
    expect(result.returncode == 0, "bench codec of one rank", result)


def main():
    with tempfile.TemporaryDirectory() as folder:
        new = Files(folder)
        for test in (good_files, odd_numbers, not_finite, files_that_lie, odd_options, bench_codec_measures):
            test(new)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
