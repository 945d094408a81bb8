#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which all-reduce algorithm when: measures, fits the prices of the cost model, writes the table of src/coll/tuning.c.

usage: bench/algorithms.py measure [--place memory,host,network] [--ranks 2,4] [--rounds 3] [--min 64] [--max 16M] ...
       bench/algorithms.py show | fit | write [--file bench/algorithms.json]

measure  runs `coset bench allreduce` for every algorithm, the algorithms in turn, and puts the least of the rounds' medians
         into the file: other work on the machine only adds. Places: memory (shm), host (tcp over loopback), network (a network namespace for each rank, its link
         limited to --rate; needs root). Run it on an idle machine.
show     the measurements as tables, with what the rows would choose.
fit      the prices per round, message, byte sent and byte added that fit best (least squares of the relative error, none
         negative), and how far off they are. Fitted is what was measured with a core for each rank, and between hosts what the
         link decides. To a round between hosts the latency of real cards and switches is added. Rounds, messages and bytes come from the library (`coset info --tuning`).
write    src/coll/tuning.c: the prices, and the rows that `auto` looks up. They are as measured where the measurements can be
         fitted, else as predicted. An algorithm stays while it is within 10 % of the best, so that noise does not cut the
         table to pieces; with long vectors within 2 %. For more than 16 ranks `flat` and `direct`, with which everybody sends to everybody at once, are
         left out: how such crowds end is not measured.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = ROOT / "build/release/bin/coset"
ALGORITHMS = ["flat", "direct", "ring", "rd", "rhd", "tree"]
PLACES = {"network": "network", "memory": "shared memory", "host": "one host"}
CORES = os.cpu_count()
STAYS_WITHIN = 1.10
LONG_STAYS_WITHIN = 1.02  # of long vectors, whose times scatter less
# The rows' numbers of ranks, each with those for which the times are added up: `rhd` is good for powers of two alone.
RANGES = {2: [2], 4: [3, 4], 8: [5, 6, 7, 8], 16: [9, 12, 16], 64: [17, 24, 32, 48, 64]}  # 64 stands for all beyond 16
COLLIDE = ["flat", "direct"]
IN_ORDER = ["flat", "direct"]  # add in rank order; what they send of 16-bit floats is 16 bits
PRICES = ["rounds", "further_messages", "sent_bytes", "crowded_bytes", "added_bytes"]
# With two ranks every round is one message, so they tell nothing of further ones. This is what each costs when 64 of 64
# bytes are sent at once, over loopback: nearly all that a round costs there, since the kernel does most of the receiver's
# work within the sender's call.
MESSAGE_US = 7.0
WIRE_BOUND = 256 << 10  # from here on it is the link that counts, also where ranks share cores
# What namespaces lack: two network cards and a switch, one way, on Ethernet of 1 to 25 Gbit/s.
WIRE_LATENCY_US = 20
IN_BURST = 1 << 10  # above, up to WIRE_BOUND, the token bucket of a shaped link lets bytes pass that a real one would not


# ---- measuring ----

def rows_of(text):
    return json.loads(text[text.index("["):text.rindex("]") + 1])


def bench(args, place, ranks, algorithm):
    """[(bytes, us)]"""
    most = args.max
    if algorithm == "flat":  # in memory longer vectors are not passed through slots; by messages everybody sends everything
        most = "4K" if place == "memory" else "1M"
    command = [str(TOOL), "bench", "allreduce", "--algo", algorithm, "-b", args.min, "-e", most, "-f", "4", "--in-place",
               "--iters", str(args.iters), "--json", "-"]
    if place == "network":
        started = args.space.start_ranks(command)
        out = [p.communicate(timeout=300) for p in started][0][0]
    else:
        transport = "shm" if place == "memory" else "tcp"
        out = subprocess.run([*command, "-n", str(ranks), "--transport", transport], check=True, capture_output=True, text=True,
                             timeout=300).stdout
    rows = rows_of(out)
    if any(row["wrong"] for row in rows):
        sys.exit(f"{algorithm} with {ranks} ranks gives wrong results")
    return [(row["size_bytes"], row["time_us_p50"]) for row in rows]


def measure_place(args, place, ranks):
    seen = {}
    for _ in range(args.rounds):
        for algorithm in ALGORITHMS[:2] if place == "memory" else args.algorithms.split(","):
            for size, us in bench(args, place, ranks, algorithm):
                seen.setdefault((algorithm, size), []).append(us)
    return [{"place": place, "ranks": ranks, "algorithm": a, "bytes": s, "us": round(min(times), 2)}
            for (a, s), times in sorted(seen.items())]


def least_of(points):
    best = {}
    for p in points:
        key = p["place"], p["ranks"], p["algorithm"], p["bytes"]
        if key not in best or p["us"] < best[key]["us"]:
            best[key] = p
    return [best[key] for key in sorted(best)]


def measure(args):
    points = json.loads(args.file.read_text()) if args.file.exists() else []
    for place in args.place.split(","):
        for ranks in map(int, args.ranks.split(",")):
            new = []
            if place == "network":
                sys.path.insert(0, str(ROOT / "tests/netns"))
                import hosts
                with hosts.Hosts(ranks, args.rate) as args.space:
                    new = measure_place(args, place, ranks)
            else:
                new = measure_place(args, place, ranks)
            points = least_of(points + new)
            args.file.write_text("[\n" + ",\n".join(json.dumps(p) for p in points) + "\n]\n")
            print(f"{place}, {ranks} ranks: measured", file=sys.stderr)


# ---- the model ----

def terms(ranks, sizes):
    """(place, ranks, algorithm, bytes) -> what PRICES names"""
    command = [str(TOOL), "info", "--tuning", "--ranks", ",".join(map(str, ranks)), "--sizes", ",".join(map(str, sizes)),
               "--json", "-"]
    out = {}
    for row in json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout):
        if row["hosts"] not in (1, row["ranks"]):
            continue  # several ranks on each of several hosts
        for a in row["algorithms"]:
            a["further_messages"] = max(0, a["messages"] - a["rounds"])
            out[row["place"], row["ranks"], a["algorithm"], row["size_bytes"]] = [a[name] for name in PRICES]
    return out


def least_squares(rows, values, known):
    """Non-negative x that minimises the squares of (rows x - values) / values, by coordinate descent. known: of some j."""
    rows = [[t / v for t in row] for row, v in zip(rows, values)]
    norms = [0 if j in known else sum(r[j] * r[j] for r in rows) for j in range(len(PRICES))]
    x = [known.get(j, 0.0) for j in range(len(PRICES))]
    left = [1 - sum(t * y for t, y in zip(r, x)) for r in rows]
    for _ in range(20000):
        for j, norm in enumerate(norms):
            if not norm:
                continue
            step = max(-x[j], sum(r[j] * e for r, e in zip(rows, left)) / norm)
            x[j] += step
            left = [e - step * r[j] for r, e in zip(rows, left)]
    return x


def undisturbed(point):
    """Does the time say something about the algorithm, and not about ranks that share cores?"""
    return point["ranks"] <= CORES or (point["place"] == "network" and point["bytes"] >= WIRE_BOUND)


def fit(points):
    """place -> (prices in us as written, median relative error of those fitted, number of points)"""
    found = {}
    for place, title in PLACES.items():
        mine = [p for p in points if p["place"] == place and undisturbed(p)]
        if place == "network":
            mine = [p for p in mine if p["bytes"] <= IN_BURST or p["bytes"] >= WIRE_BOUND]
        table = terms(sorted({p["ranks"] for p in mine}), sorted({p["bytes"] for p in mine}))
        rows = [table[title, p["ranks"], p["algorithm"], p["bytes"]] for p in mine]
        prices = least_squares(rows, [p["us"] for p in mine], {} if place == "memory" else {1: MESSAGE_US})
        errors = [abs(sum(t * x for t, x in zip(row, prices)) / p["us"] - 1) for row, p in zip(rows, mine)]
        if place == "network":
            prices[0] += WIRE_LATENCY_US
        found[place] = prices, statistics.median(errors), len(mine)
    return found


def predict(prices, place, ranks, sizes):
    """bytes -> algorithm -> us"""
    out = {}
    for (title, n, algorithm, size), row in terms([ranks], sizes).items():
        if title == PLACES[place] and n == ranks and algorithm in ALGORITHMS:
            out.setdefault(size, {})[algorithm] = sum(t * x for t, x in zip(row, prices))
    return out


# ---- choosing ----

def choose(table):
    """[(size, algorithm)]: as many changes as the tolerance allows, no more."""
    chosen, current = [], None
    for size, row in sorted(table.items()):
        best = min(row, key=row.get)
        within = LONG_STAYS_WITHIN if size >= WIRE_BOUND else STAYS_WITHIN
        if current not in row or row[current] > within * row[best]:
            current = best
        chosen.append((size, current))
    return chosen


def limits(chosen):
    """[(largest size or None, algorithm)]"""
    ends = [None if i + 1 == len(chosen) else size for i, (size, _) in enumerate(chosen)]
    return [(end, a) for (end, (_, a)), (_, following) in zip(zip(ends, chosen), chosen[1:] + [(None, None)]) if a != following]


def tables(points, place):
    """ranks -> bytes -> algorithm -> us, as measured"""
    out = {}
    for p in points:
        if p["place"] == place:
            out.setdefault(p["ranks"], {}).setdefault(p["bytes"], {})[p["algorithm"]] = p["us"]
    return out


def only(table, algorithms):
    return {size: {a: us for a, us in row.items() if a in algorithms} for size, row in table.items()}


def rows_of_ranks(ranks, table):
    rows = limits(choose(table))
    yield ranks, "", rows
    if any(a not in IN_ORDER for _, a in rows) and any(a in IN_ORDER for row in table.values() for a in row):
        yield ranks, ", for sums in rank order and 16-bit floats", limits(choose(only(table, IN_ORDER)))


def times_for(points, prices, place, ranks, sizes):
    """bytes -> algorithm -> us: measured where that says something, else predicted"""
    table = predict(prices, place, ranks, sizes)
    for p in points:
        if (p["place"], p["ranks"]) == (place, ranks) and undisturbed(p) and p["bytes"] in table:
            table[p["bytes"]][p["algorithm"]] = p["us"]
    if ranks <= CORES:  # flat is not measured for long vectors, nor by prediction any good
        table = {s: {a: us for a, us in row.items() if (s, a) in {(p["bytes"], p["algorithm"]) for p in points if
                                                                    (p["place"], p["ranks"]) == (place, ranks)}}
                 for s, row in table.items()}
    return {s: row for s, row in table.items() if row}


def rows_for(points, prices, place):
    sizes = [64 << (2 * i) for i in range(10)]
    for most, counts in RANGES.items():
        sums = {}
        for ranks in counts:
            for size, row in times_for(points, prices, place, ranks, sizes).items():
                for algorithm, us in row.items():
                    of_size = sums.setdefault(size, {})
                    of_size[algorithm] = of_size.get(algorithm, 0) + us
        if most == 64:
            sums = only(sums, [a for a in ALGORITHMS if a not in COLLIDE])
        yield from rows_of_ranks(most, sums)


def source(points):
    fitted = fit(points)
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */", "/* Written by bench/algorithms.py from bench/algorithms.json. */",
             '#include "coll/tuning.h"', "", "#include <limits.h>", "#include <stdint.h>", "",
             "const cst_prices cst_tuned_prices[] = {"]
    for place, title in PLACES.items():
        (a, m, sent, crowded, added), error, count = fitted[place]
        lines.append(f"    /* median error {100 * error:.0f} % of {count} measurements */")
        lines.append(f'    [CST_PLACE_{place.upper()}] = {{"{title}", {a:.4g}, {m:.4g}, {1e3 * sent:.4g}, {1e3 * crowded:.4g}, {1e3 * added:.4g}}},')
    lines += ["};", "", "const cst_tuned_row cst_tuned_rows[] = {"]
    for place in ("network", "host"):
        for ranks, whom, limited in rows_for(points, fitted[place][0], place):
            most = "INT_MAX" if ranks == max(RANGES) else ranks
            lines.append(f"    /* {place}, {'more' if most == 'INT_MAX' else ranks} ranks{whom} */")
            for end, algorithm in limited:
                size = "SIZE_MAX" if end is None else str(end)
                lines.append(f"    {{{most}, {size}, CST_ALGO_{algorithm.upper()}, {'true' if place == 'network' else 'false'}}},")
    lines += ["};", "const int cst_tuned_row_count = sizeof cst_tuned_rows / sizeof *cst_tuned_rows;", ""]
    return "\n".join(lines)


def show(points):
    for place in ("memory", "host", "network"):
        for ranks, table in sorted(tables(points, place).items()):
            chosen = dict(choose(table))
            print(f"\n{PLACES[place]}, {ranks} ranks, f32, us\n")
            print("| bytes | " + " | ".join(ALGORITHMS) + " | chosen |\n|---:|" + "---:|" * len(ALGORITHMS) + "---|")
            for size, row in sorted(table.items()):
                print(f"| {size} | " + " | ".join(f"{row[a]:.1f}" if a in row else "" for a in ALGORITHMS) + f" | {chosen[size]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["measure", "show", "fit", "write"])
    parser.add_argument("--file", type=pathlib.Path, default=ROOT / "bench/algorithms.json")
    parser.add_argument("--place", default="memory,host,network")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iters", type=int, default=30)
    parser.add_argument("--min", default="64")
    parser.add_argument("--max", default="16M")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS), help="those to measure now; others stay as they are")
    parser.add_argument("--rate", default="1gbit")
    args = parser.parse_args()
    if args.action == "measure":
        measure(args)
        return
    points = json.loads(args.file.read_text())
    if args.action == "show":
        show(points)
    elif args.action == "fit":
        for place, (prices, error, count) in fit(points).items():
            print(f"{place}: round {prices[0]:.3g} us, message {prices[1]:.3g} us, byte sent {1e3 * prices[2]:.3g} ns "
                  f"(crowded {1e3 * prices[3]:.3g} more), added {1e3 * prices[4]:.3g} ns; median error {100 * error:.0f} % of {count}")
    else:
        (ROOT / "src/coll/tuning.c").write_text(source(points))


if __name__ == "__main__":
    main()
