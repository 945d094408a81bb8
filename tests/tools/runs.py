#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that start ranks: results are right on every transport and algorithm, keys are those of the documents,
ranks leave nothing running, bad input is one line and status 2."""
import json
import os
import subprocess
import sys

COSET = sys.argv[1]
TRANSPORTS = ("threads", "shm", "tcp")
ALGORITHMS = ("auto", "flat", "direct", "ring", "rd", "rhd", "tree", "naive")
BENCH_KEYS = {
    "size_bytes", "count", "dtype", "op", "ranks", "transport", "algo", "codec", "memory", "in_place", "time_us_p50",
    "time_us_p99", "cycle_us_p50", "floor_us_p50", "algbw_gbps", "busbw_gbps", "wire_sent_bytes",
    "wire_received_bytes", "wrong", "cpu_s"}
TRAIN_KEYS = {
    "model", "ranks", "codec", "final_loss", "final_accuracy", "step_ms", "exposed_ms", "bytes_per_step",
    "bits_per_coord", "weights_identical", "weights_hash"}
CODEC_KEYS = BENCH_KEYS | {"bits_per_coord", "excess_over_sampling", "repaired_units", "codec_gbps", "breakeven_gbps"}
failures = []


def run(*arguments, environment=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("COSET_", "OMPI_", "PMI", "SLURM_"))}
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=100, check=False,
                          env=clean | (environment or {}))


def expect(good, what, result):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}\n  status {result.returncode}\n  out: {result.stdout[:600]}\n  err: {result.stderr[:600]}")


def rows(result, what):
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        expect(False, f"{what}: no JSON", result)
        return []


def bench_is_right_everywhere():
    for transport in TRANSPORTS:
        for algorithm in ALGORITHMS:
            what = f"bench allreduce on {transport} by {algorithm}"
            result = run(COSET, "bench", "allreduce", "-n", 3, "--transport", transport, "--algo", algorithm, "-b", 4, "-e",
                         "40K", "-f", 100, "--iters", 3, "--json", "-")
            table = rows(result, what)
            expect(result.returncode == 0 and len(table) == 3, what, result)
            for row in table:
                expect(BENCH_KEYS <= row.keys() and row["wrong"] == 0 and row["ranks"] == 3 and row["transport"] == transport,
                       f"{what}: {row}", result)


def bench_takes_its_options():
    result = run(COSET, "bench", "allreduce", "-n", 2, "--dtype", "bf16", "--op", "avg", "--memory", "malloc", "--in-place",
                 "--rewrite", "-b", 1000, "-e", 1000, "--iters", 5, "--json", "-")
    table = rows(result, "bench with options")
    expect(len(table) == 1 and table[0]["count"] == 500 and table[0]["dtype"] == "bf16" and table[0]["in_place"] is True
           and table[0]["memory"] == "malloc" and table[0]["cycle_us_p50"] > 0 and table[0]["floor_us_p50"] > 0,
           "bench with options", result)
    result = run(COSET, "bench", "allreduce", "-n", 2, "-b", "64K", "-e", "64K", "--iters", 3)
    expect(result.returncode == 0 and "#wrong" in result.stdout and not result.stderr, "bench is quiet in a pipe", result)


def bench_measures_codecs():
    for transport in TRANSPORTS:
        result = run(COSET, "bench", "allreduce", "-n", 3, "--transport", transport, "--codec", "lattice", "--budget", 0.1,
                     "--mean", 5, "-b", "256K", "-e", "256K", "--iters", 3, "--json", "-")
        table = rows(result, f"bench of a codec on {transport}")
        # 65,536 coordinates: the excess has a standard deviation below 1 %, the budget is kept within a tenth of itself
        expect(result.returncode == 0 and len(table) == 1 and CODEC_KEYS <= table[0].keys() and table[0]["wrong"] == 0
               and 0 < table[0]["excess_over_sampling"] < 0.11 and 0 < table[0]["bits_per_coord"] < 16,
               f"bench of a codec on {transport}", result)


def training_gives_the_same_bits():
    hashes = {}
    for transport in TRANSPORTS:
        result = run(COSET, "train", "-n", 3, "--epochs", 1, "--transport", transport, "--json", "-",
                     environment={"COSET_RANK_ORDER": "1"})
        figures = rows(result, f"train on {transport}")
        expect(result.returncode == 0 and figures and TRAIN_KEYS <= figures.keys() and figures["weights_identical"] is True,
               f"train on {transport}", result)
        hashes[transport] = figures and figures["weights_hash"]
    expect(len(set(hashes.values())) == 1, f"in rank order every transport gives the same weights: {hashes}", result)


def a_launcher_is_believed():
    result = run(COSET, "run", "-n", 2, "--", COSET, "bench", "allreduce", "-b", 4, "-e", 4, "--iters", 2)
    expect(result.returncode == 0 and "2 ranks" in result.stdout, "bench under coset run", result)
    result = run(COSET, "run", "-n", 2, "--", COSET, "bench", "allreduce", "-n", 3, "-b", 4, "-e", 4)
    expect(result.returncode == 2, "-n against the launcher", result)


def bad_input_is_one_line():
    for arguments in (["--algo", "nothing"], ["--transport", "nothing"], ["-b", "8", "-e", "4"], ["--dtype", "f31"],
                      ["-n", "0"], ["--iters", "0"], ["--codec", "nothing"], ["--json", "/tmp"], ["--json", "/no/such/file"],
                      ["--codec", "lattice", "--op", "sum"],
                      ["--codec", "lattice", "--dtype", "i32"], ["--codec", "lattice", "--bits", "4", "--budget", "0.1"]):
        result = run(COSET, "bench", "allreduce", *arguments)
        expect(result.returncode == 2 and result.stderr.count("\n") == 1, f"bench allreduce {arguments}", result)
    for transport in TRANSPORTS:  # what only ranks that have met can know is told by one of them
        for algorithm, in_order, words in (("hier", "0", "several hosts"), ("ring", "1", "rank order")):
            result = run(COSET, "bench", "allreduce", "-n", 3, "--transport", transport, "--algo", algorithm,
                         environment={"COSET_RANK_ORDER": in_order})
            expect(result.returncode == 2 and result.stderr.count("\n") == 1 and words in result.stderr and not result.stdout,
                   f"bench allreduce by {algorithm} on {transport}", result)
    for arguments in (["--model", "nothing"], ["-n", "8", "--batch", "7"], ["--batch", "100000"]):
        result = run(COSET, "train", *arguments)
        expect(result.returncode == 2 and result.stderr.count("\n") == 1, f"train {arguments}", result)


def ranks_are_asked_for_the_same():
    """Each rank of a launcher is a command line of its own."""
    for command, same, option, words in (
            ("train --model gpt --size tiny", "", "--steps $((3 + COSET_RANK))", "rank 0 has --steps=3, rank 1 --steps=4"),
            ("train", "--epochs 1", "--seed $COSET_RANK", "rank 0 has --seed=0, rank 1 --seed=1"),
            ("bench ddp", "--params 1000", "--iters $((5 + COSET_RANK))", "rank 0 has --iters=5, rank 1 --iters=6"),
            ("bench allreduce", "-e 64", "$(test $COSET_RANK = 0 || echo --in-place)", "rank 0 has no --in-place, rank 1 --in-place"),
            ("", "", "$(test $COSET_RANK = 0 && echo bench ddp || echo train)", "rank 0 has coset bench ddp, rank 1 coset train")):
        line = f"exec '{COSET}' {command} {same} {option}"
        result = run(COSET, "run", "-n", 2, "--", "sh", "-c", line, environment={"COSET_LATE_MS": "20000"})
        expect(result.returncode == 2 and words in result.stderr and result.stderr.count("give all ranks the same") == 1 and
               not result.stdout, line, result)


def what_cannot_be_printed_is_a_failure():
    for transport in ("shm", "threads"):
        line = f"exec '{COSET}' bench ddp --layers 2 --params 100 --backward-ms 1 --iters 1 --transport {transport} >/dev/full"
        result = run("sh", "-c", line)
        expect(result.returncode == 1 and "standard output cannot be written" in result.stderr, line, result)


def main():
    bench_is_right_everywhere()
    bench_takes_its_options()
    bench_measures_codecs()
    training_gives_the_same_bits()
    a_launcher_is_believed()
    bad_input_is_one_line()
    what_cannot_be_printed_is_a_failure()
    ranks_are_asked_for_the_same()
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
