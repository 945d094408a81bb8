# SPDX-License-Identifier: Apache-2.0
"""Ranks for tests: threads of this process, or processes."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import coset


def on_threads(size: int, body: Callable[[coset.Comm], Any], options: coset.Options | None = None) -> list[Any]:
    """body(comm) on every rank of a job of threads; results in rank order. The first exception is raised again."""
    comms = coset.Comm.threads(size, options)
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def rank(r: int) -> None:
        try:
            results[r] = body(comms[r])
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
            comms[r].abort(repr(error))

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads), "a rank hangs"
    for c in comms:
        c.destroy()
    if errors:
        raise errors[0]
    return results
