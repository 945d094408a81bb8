#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tables.inc: the frequencies of the entropy code's 17 static tables.

Table t is for integers k = round(x + theta), x Gaussian of standard deviation 0.25 * 2^(t/4), theta uniform on
(-1/2, 1/2):  P(k) = G(k+1) - 2 G(k) + G(k-1),  G(v) = v Phi(v/sigma) + sigma phi(v/sigma).

Symbols are -K..K and one escape, whose value costs 32 more bits. K is the one of least expected cost. Frequencies sum to
1024, none is zero: start from floor(1024 p), then give (or take) one at a time where it gains most (costs least).

    gen_tables.py [--check] FILE     write FILE, or compare with it (exit status 1 if it differs)
"""
import math
import sys

TABLES = 17
TOTAL = 1024
LARGEST_K = 15
ESCAPE_BITS = 32


def integral_of_normal(v, sigma):
    return v * 0.5 * math.erfc(-v / sigma / math.sqrt(2)) + sigma * math.exp(-v * v / (2 * sigma * sigma)) / math.sqrt(2 * math.pi)


def probability(k, sigma):
    return (integral_of_normal(k + 1, sigma) - 2 * integral_of_normal(k, sigma) + integral_of_normal(k - 1, sigma))


def frequencies(p):
    f = [max(1, math.floor(v * TOTAL)) for v in p]
    while sum(f) != TOTAL:
        if sum(f) < TOTAL:
            gain = [v * math.log2((n + 1) / n) for v, n in zip(p, f)]
            f[gain.index(max(gain))] += 1
        else:
            loss = [v * math.log2(n / (n - 1)) if n > 1 else math.inf for v, n in zip(p, f)]
            f[loss.index(min(loss))] -= 1
    return f


def table(sigma):
    """(cost in bits, K, frequencies of -K..K and of the escape) with the least cost."""
    best = None
    for largest in range(1, LARGEST_K + 1):
        p = [probability(k, sigma) for k in range(-largest, largest + 1)]
        p = [max(v, 1e-15) for v in p]
        p.append(max(1 - sum(p), 1e-15))
        f = frequencies(p)
        cost = sum(-v * math.log2(n / TOTAL) for v, n in zip(p, f)) + p[-1] * ESCAPE_BITS
        if best is None or cost < best[0]:
            best = (cost, largest, f)
    return best


def text():
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */",
             "/* Written by gen_tables.py: per table the largest coded magnitude K, then the frequencies of -K..K and of the",
             " * escape. */"]
    for t in range(TABLES):
        _, largest, f = table(0.25 * 2 ** (t / 4))
        lines.append("{%d, {%s}}," % (largest, ", ".join(map(str, f))))
    return "\n".join(lines) + "\n"


def main():
    check = "--check" in sys.argv
    name = sys.argv[-1]
    if not check:
        with open(name, "w", encoding="ascii") as file:
            file.write(text())
        return 0
    with open(name, encoding="ascii") as file:
        same = file.read() == text()
    if not same:
        print(name + " is not what gen_tables.py writes", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
